"""What may be chosen for a call: what fits the sizes and the device, and always something."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import ninetoothed
import ninetoothed.language as ntl
from examples import mm, softmax
from ninetoothed import Tensor
from ninetoothed.backends.base import Argument, Call, Device
from ninetoothed.backends.triton.options import OPTIONS
from ninetoothed.backends.triton.planning import space as choosing
from ninetoothed.backends.triton.planning.cost_features import Estimator
from ninetoothed.errors import ArrangementError
from ninetoothed.language import dtypes
from tests.tuning.machines import H200

pytestmark = pytest.mark.fixes_options("what is tried is counted")


def tensor(*shape, dtype=dtypes.float32):
    return Argument(shape, tuple(math.prod(shape[d + 1 :]) for d in range(len(shape))), dtype)


def call_of(kernel, *tensors):
    names = [parameter.name for parameter in kernel.tensor_parameters]
    return Call(dict(zip(names, tensors, strict=True)), device=Device("cuda"))


def cached():
    """A cache that is written in tiles of whole heads, heads in blocks."""
    rows = ninetoothed.block_size(lower_bound=16, upper_bound=64)
    columns = ninetoothed.block_size(lower_bound=16, upper_bound=256)

    def arrangement(key, cache):
        return key.tile((rows, columns)), cache.tile((rows, -1))

    def application(key, cache):
        cache = key  # noqa: F841

    return ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2))).definition


@pytest.mark.parametrize(("head", "least"), [(16, 16), (64, 64), (100, 128), (256, 256)])
def test_configurations_that_break_the_rule_are_not_in_the_space(head, least):
    kernel = cached()
    call = call_of(kernel, tensor(300, head), tensor(300, head))
    _, columns = (kernel.names[symbol] for symbol in kernel.meta_symbols)
    ranked = choosing.space_of(kernel, call, H200).ranked
    plainest, grid = choosing.plainest(kernel, call)

    assert ranked and min(config[columns] for config in ranked) == least
    assert plainest[columns] == least and grid == (19, 1)
    assert all(choosing.applies(kernel, call, config, H200) for config in ranked)
    wider = call_of(kernel, tensor(300, head + 1), tensor(300, head + 1))
    fits = [choosing.applies(kernel, wider, config, H200) for config in ranked]
    assert fits == [config[columns] > head for config in ranked]


def test_where_none_fits_the_error_says_which_were_looked_at():
    kernel = cached()
    call = call_of(kernel, tensor(300, 257), tensor(300, 257))
    for choose in (choosing.plainest, lambda *given: choosing.space_of(*given, H200)):
        with pytest.raises(ArrangementError, match=r"(?s)key: \(\d+, \d+\).*looked at") as caught:
            choose(kernel, call)
        assert caught.value.message.count("=256") >= 2 and "=16, " in caught.value.message


def test_a_mismatch_that_no_configuration_decides_lists_none():
    kernel = cached()
    call = call_of(kernel, tensor(300, 16), tensor(30, 16))
    with pytest.raises(ArrangementError, match=r"cache: \(2, 1\)"):
        choosing.plainest(kernel, call)


@pytest.mark.parametrize("count", [1, 3])
def test_the_estimate_chooses_which_ones_count(count):
    kernel = replace(mm.kernel.definition, max_num_configs=count)
    call = call_of(kernel, *[tensor(4096, 4096)] * 3)
    all_of_them = choosing.space_of(mm.kernel.definition, call, H200).ranked

    assert choosing.space_of(kernel, call, H200).ranked == all_of_them[:count]


def test_what_cannot_fit_the_device_is_left_out_before_they_are_counted():
    small = replace(H200, shared_memory_per_block=32 * 1024)
    call = call_of(mm.kernel.definition, *[tensor(4096, 4096, dtype=dtypes.float16)] * 3)
    kernel = replace(mm.kernel.definition, max_num_configs=2)
    ranked = choosing.space_of(kernel, call, small).ranked
    estimator = Estimator(kernel, call, small)

    assert len(ranked) == 2
    assert all(estimator.seconds(config) < math.inf for config in ranked)
    first = choosing.space_of(kernel, call, H200).ranked[0]
    assert estimator.seconds(first) == math.inf


@pytest.mark.parametrize(
    ("given", "warps", "stages"),
    [
        ({"num_warps": 4, "num_stages": 2}, {4}, {2}),
        ({"num_warps": (2, 8), "num_stages": [1, 4]}, {2, 8}, {1, 4}),
        ({"num_warps": [4], "num_stages": range(2, 4)}, {4}, {2, 3}),
    ],
)
def test_warps_and_stages_given_as_one_or_several(given, warps, stages):
    kernel = ninetoothed.make(mm.arrangement, mm.application, mm.tensors, **given).definition
    call = call_of(kernel, *[tensor(4096, 4096, dtype=dtypes.float16)] * 3)
    found = choosing.space_of(kernel, call, H200).ranked

    # Some options have warps and stages of their own.
    deciding = {option.name for option in OPTIONS if option.num_warps is not None}
    free = [config for config in found if not deciding & dict(config.options).keys()]
    assert {config.num_warps for config in free} == warps
    assert {config.num_stages for config in free} == stages


def in_order(input, output):
    output = ntl.sort(input)  # noqa: F841


@pytest.mark.parametrize(
    ("columns", "warps"), [(20, {1}), (128, {1, 2}), (1000, {1, 8, 16}), (4096, {32}), (9000, {32})]
)
def test_what_sorts_has_one_warp_or_few_elements_for_each_thread(columns, warps):
    kernel = ninetoothed.make(softmax.arrangement, in_order, softmax.tensors).definition
    call = call_of(kernel, tensor(9, columns), tensor(9, columns))
    assert {config.num_warps for config in choosing.space_of(kernel, call, H200).ranked} == warps
