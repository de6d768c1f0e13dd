"""Programs that stay: which may, what they look like, and that results stay right."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from examples import mm  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from ninetoothed.backends.triton.options import persistent  # noqa: E402
from ninetoothed.backends.triton.planning.choices import choices  # noqa: E402
from ninetoothed.backends.triton.specialization.target import Target  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of, specialize  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402
from tests.triton.options.test_descriptors import BLOCKS, HOPPER, compiled  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")


def product(dtype=torch.float16):
    shapes = ((200, 328), (328, 264), (200, 264))
    call = TEN["mm"].call_of(*(torch.empty(shape, dtype=dtype) for shape in shapes))
    return TEN["mm"], call, Config(tuple(BLOCKS.items()), 4, 3)


def tried(kernel, call, config, device=HOPPER):
    return choices(kernel.definition, call, environment_of(kernel.definition, call, config), device)


def is_tried(*arguments):
    return any(("persistent", 1) in chosen for chosen in tried(*arguments))


def test_products_by_descriptor_may_stay():
    both = {("descriptors", 1), ("persistent", 1)}

    assert any(both <= set(chosen) for chosen in tried(*product()))


def test_products_by_address_may_not():
    assert not is_tried(*product(torch.float32))
    assert not is_tried(*product(), Target("cuda", 80, 32))


def test_attention_may_not():
    # Its loop holds more than one tile of the result.
    assert not persistent.is_possible(TEN["sdpa"].definition, {"key"})


@pytest.mark.parametrize("name", ["mm", "bmm", "addmm"])
def test_the_products_of_the_ten_may_stay(name):
    assert persistent.is_possible(TEN[name].definition, {"input", "other", "mat1", "mat2"})


def asks_where_it_is(input, other, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        total += ntl.dot(input[k], other[k])
    output = total + ntl.program_id(0)


def stores_as_it_goes(input, other, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        total += ntl.dot(input[k], other[k])
        output = total


def goes_twice(input, other, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        total += ntl.dot(input[k], other[k])
    for k in range(input.shape[0]):
        total += ntl.dot(input[k], other[k])
    output = total


@pytest.mark.parametrize("application", [asks_where_it_is, stores_as_it_goes, goes_twice])
def test_what_is_no_loops_body_may_not(application):
    kernel = ninetoothed.make(mm.arrangement, application, tuple(Tensor(2) for _ in range(3)))

    assert not persistent.is_possible(kernel.definition, {"input", "other"})


def test_a_product_by_a_tile_that_stays_while_the_loop_runs_may_not():
    def arrangement(query, key, output):
        rows = query.tile((64, -1))
        keys = key.tile((64, -1)).tile((-1, 1)).expand((rows.shape[0], -1))
        keys.dtype = keys.dtype.squeeze(1)

        return rows, keys, output.tile((64, -1))

    def application(query, key, output):
        total = ntl.zeros(output.shape, dtype=ntl.float32)
        for i in range(key.shape[0]):
            scores = ntl.dot(query, ntl.trans(key[i]))
            total += ntl.dot(ntl.cast(scores, key.dtype.dtype), key[i])
        output = total  # noqa: F841

    matrix = {"shape_options": (None, {"constexpr": True})}
    tensors = tuple(Tensor(2, **matrix) for _ in range(3))
    kernel = ninetoothed.make(arrangement, application, tensors)

    assert not persistent.is_possible(kernel.definition, {"key"})


def test_the_loop_is_flattened():
    kernel, call, config = product()
    options = (("descriptors", 1), ("persistent", 1))
    specialized = specialize(kernel.definition, call, Config(config.values, 4, 3, options))

    assert specialized.is_persistent and specialized.num_programs == 4 * 3
    assert (
        "tl.num_programs(0), flatten=True):\n        program = number\n" in specialized.emitted.text
    )


def test_the_result_is_stored_in_two_halves_where_it_is_wide():
    kernel, call, config = product()
    options = (("descriptors", 1), ("persistent", 1))
    wide = specialize(kernel.definition, call, Config(config.values, 4, 3, options))
    values = tuple((BLOCKS | {"BLOCK_SIZE_N": 64}).items())
    narrow = specialize(kernel.definition, call, Config(values, 4, 3, options))

    assert wide.described["output_descriptor"].extents == (64, 64)
    assert narrow.described["output_descriptor"].extents == (64, 64)
    assert wide.emitted.text.count("output_descriptor.store(") == 2
    assert narrow.emitted.text.count("output_descriptor.store(") == 1


@pytest.mark.parametrize("name", ["mm", "bmm", "addmm"])
def test_the_machine_code_is_one_pipeline(name, monkeypatch):
    ptx = compiled(name, ("cuda", 90), monkeypatch, descriptors=1, persistent=1).asm["ptx"]

    # What fills the pipeline stands there once, before the loop over tiles and rounds.
    assert "cp.async.bulk.tensor" in ptx and "wgmma.mma_async" in ptx


def test_results_in_the_interpreter():
    assert not failures("tests.triton.options.cases.descriptors", "descriptors=1,persistent=1")


@pytest.mark.parametrize("options", ["descriptors=1", "descriptors=1,persistent=1"])
def test_every_example_in_the_interpreter(options, monkeypatch):
    from tests.examples.test_interpreter import test_every_example

    monkeypatch.setenv("NINETOOTHED_OPTIONS", options)
    test_every_example("specialised", "examples", 200)
