"""Along which axes kernels may be divided, read from their accesses."""

from __future__ import annotations

import pytest

import ninetoothed
from examples import bmm, conv2d, fused_rms_norm, layer_norm, mm, rope, softmax, swiglu
from ninetoothed import Symbol, Tensor
from ninetoothed.kernels.sharding import shardings

SUMS = frozenset({"output"})


def found(kernel):
    return [(each.dims, each.sums) for each in shardings(kernel.specializations.shown)]


@pytest.mark.parametrize(
    "kernel, wanted",
    [
        (
            mm.kernel,
            [
                ({"input": 0, "output": 0}, frozenset()),
                ({"other": 1, "output": 1}, frozenset()),
                ({"input": 1, "other": 0}, SUMS),
            ],
        ),
        (
            bmm.kernel,
            [
                ({"input": 0, "other": 0, "output": 0}, frozenset()),
                ({"input": 1, "output": 1}, frozenset()),
                ({"other": 2, "output": 2}, frozenset()),
                ({"input": 2, "other": 1}, SUMS),
            ],
        ),
        (softmax.kernel, [({"input": 0, "output": 0}, frozenset())]),
        (fused_rms_norm.kernel, [({"input": 0, "output": 0}, frozenset())]),
        (layer_norm.kernel, [({"input": 0, "output": 0}, frozenset())]),
        (
            rope.kernel,
            [
                ({"input": 0, "output": 0}, frozenset()),
                ({"input": 1, "sin_table": 0, "cos_table": 0, "output": 1}, frozenset()),
            ],
        ),
        (swiglu.kernel, [({"input": 0, "gate": 0, "output": 0}, frozenset())]),
        (conv2d.kernel, [({"other": 0, "output": 1}, frozenset())]),
    ],
    ids=("mm", "bmm", "softmax", "rms_norm", "layer_norm", "rope", "swiglu", "conv2d"),
)
def test_axes_of_examples(kernel, wanted):
    assert found(kernel) == wanted


BLOCK = Symbol("BLOCK", constexpr=True)


def of(application, unit=BLOCK, **options):
    def arrangement(*tensors):
        return tuple(tensor.tile((unit,)) for tensor in tensors)

    return ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)), **options)


def highest_of_block(input, output):
    output = ninetoothed.language.max(input)  # noqa: F841


def counted(input, output):
    output = input + output.offsets(0)  # noqa: F841


def by_length(input, output):
    output = input / input.source.shape[0]  # noqa: F841


def by_stride(input, output):
    output = input * input.stride(0)  # noqa: F841


def plain(input, output):
    output = input + 1  # noqa: F841


@pytest.mark.parametrize("application", [counted, by_length, by_stride])
def test_what_depends_on_where_or_how_many_elements_are_is_whole(application):
    assert found(of(application)) == []


def test_tiles_of_a_size_that_is_given_are_divided_where_the_size_is_no_matter():
    assert found(of(plain)) == [({"input": 0, "output": 0}, frozenset())]
    assert found(of(highest_of_block)) == []


def test_windows_that_overlap_are_whole():
    def arrangement(input, output):
        return input.tile((3,), strides=(1,)), output.tile((1,))

    kernel = ninetoothed.make(arrangement, highest_of_block, (Tensor(1), Tensor(1)))

    assert found(kernel) == []


def test_a_sum_that_is_scaled_after_is_no_sum_of_parts():
    from examples import addmm

    assert all(not sums for _, sums in found(addmm.kernel))


def test_the_gradient_of_what_all_rows_share_is_summed():
    """A derived backward begins its sums with `full`."""
    axes = found(mm.kernel.backward(wrt=("other",)))

    assert ({"input": 0, "output_gradient": 0}, frozenset({"other_gradient"})) in axes
