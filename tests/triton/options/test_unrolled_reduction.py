"""Reductions over windows: small ones are loaded an element of all of them at a time."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from ninetoothed.backends.triton.options import unrolled_reduction  # noqa: E402
from ninetoothed.backends.triton.translation import specialize  # noqa: E402
from tests.corpus.package import config_of  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402
from tests.triton.options.cases.unrolled_reduction import KERNELS  # noqa: E402


def text(name, size, shape=(2, 4, 8, 8), unrolled=1, count=1):
    kernel = KERNELS[name]
    output = torch.empty(shape[0], shape[1], shape[2] // size, shape[3] // size)
    call = kernel.call_of(*[torch.empty(shape)] * count, output, WINDOW=size, BLOCK_SIZE=8)
    config = config_of({}, 4, 1, {"unrolled_reduction": unrolled} if unrolled else {})
    return specialize(kernel.definition, call, config).emitted.text


def test_each_element_of_a_window_is_loaded_by_itself_and_without_a_mask():
    found = text("total", 2)

    assert found.count("tl.load(") == 4
    assert "mask" not in found
    assert "next_power_of_2" not in found


def test_all_tensors_that_meet_are_unrolled():
    assert text("product", 2, count=2).count("tl.load(") == 8


def test_programs_beyond_the_last_window_stay_masked():
    assert text("total", 2, shape=(1, 3, 8, 6)).count("mask=") == 5


def test_a_value_with_a_name_of_its_own_is_left():
    assert not unrolled_reduction.window_sizes(KERNELS["softmax"].definition)
    assert unrolled_reduction.window_sizes(KERNELS["total"].definition)


@pytest.mark.parametrize(("size", "offered"), [(2, (1,)), (3, ())])
def test_small_windows_are_unrolled(size, offered):
    from ninetoothed.backends.triton.planning.choices import choices

    kernel = KERNELS["total"]
    output = torch.empty(2, 4, 8 // size, 8 // size)
    call = kernel.call_of(torch.empty(2, 4, 8, 8), output, WINDOW=size, BLOCK_SIZE=8)
    environment = kernel.definition.environment(call)
    found = choices(kernel.definition, call, environment, given={})

    assert found == [tuple(("unrolled_reduction", value) for value in offered)]


@pytest.mark.parametrize("options", [None, "unrolled_reduction=0"])
def test_in_the_interpreter(options):
    assert failures("tests.triton.options.cases.unrolled_reduction", options) == {}
