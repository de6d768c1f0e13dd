"""LANGUAGE.md, "The rule of arrangement"."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ArrangementError
from ninetoothed.tensors.arrange import Arrangement
from tests.contract.kernels import arange, empty


def pairwise(x, y, out):
    out = x + y  # noqa: F841


def of_four(x, y, out):
    return x.tile((4,)), y.tile((4,)), out.tile((4,))


def kernel_of(arrangement=of_four, tensors=None):
    return ninetoothed.make(arrangement, pairwise, tensors or (Tensor(1), Tensor(1), Tensor(1)))


def test_one_program_runs_for_each_element_of_the_outermost_shape():
    """One program runs for each element of it."""

    def count(x, out):
        out = out + 1  # noqa: F841

    out = torch.zeros(3, 5)
    kernel = ninetoothed.make(lambda x, out: (x, out), count, (Tensor(2), Tensor(2)))
    kernel(empty(3, 5), out)

    assert torch.equal(out, torch.ones(3, 5))


def test_scalars_are_exempt():
    """scalars are exempt"""

    def application(x, scale, out):
        out = x * scale  # noqa: F841

    def arrangement(x, scale, out):
        return x.tile((1, 4)), scale, out.tile((1, 4))

    out = empty(2, 5)
    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(0), Tensor(2)))
    kernel(arange(2, 5), 3, out)

    assert torch.equal(out, arange(2, 5) * 3)


@pytest.mark.parametrize(
    ("arrangement", "tensors"),
    [
        (lambda x, y, out: (x.tile((-1,)), y.tile((-1,)).expand((2,)), out.tile((-1,))), None),
        (of_four, (Tensor(shape=(8,)), Tensor(shape=(9,)), Tensor(1))),
    ],
    ids=["size", "known shapes"],
)
def test_a_mismatch_that_can_be_proved_is_an_error_at_make(arrangement, tensors):
    """A mismatch is an `ArrangementError` naming every parameter with its outermost shape: at `make`
    where it can be proved"""
    with pytest.raises(ArrangementError) as caught:
        kernel_of(arrangement, tensors)

    named = [
        line.strip().split(": (")[0] for line in caught.value.message.splitlines() if ": (" in line
    ]
    assert named == ["x", "y", "out"]


def test_any_other_mismatch_is_an_error_at_the_call():
    """else at the call"""
    kernel = kernel_of()
    out = empty(9)
    with pytest.raises(ArrangementError) as caught:
        kernel(arange(9), arange(8), out)

    for line in ("x: (3,)", "y: (2,)", "out: (3,)"):
        assert line in caught.value.message
    assert torch.equal(out, empty(9))


def test_the_call_checks_once_per_new_set_of_shapes(monkeypatch):
    """once per new set of shapes"""
    checked = []
    original = Arrangement.verify
    monkeypatch.setattr(Arrangement, "verify", lambda *given: checked.append(1) or original(*given))
    kernel = kernel_of()
    for _ in range(5):
        kernel(arange(9), arange(9), empty(9))
    once = len(checked)
    kernel(arange(8), arange(8), empty(8))

    assert once >= 1
    assert len(checked) == 2 * once


def test_the_error_comes_again_for_the_same_shapes():
    kernel = kernel_of()
    for _ in range(2):
        with pytest.raises(ArrangementError, match="outermost"):
            kernel(arange(9), arange(8), empty(9))


def test_different_tiles_of_different_sizes_may_have_the_same_outermost_shape():
    def arrangement(x, y, out):
        y = y.tile((2,)).tile((2,))
        return x.tile((4,)), y, out.tile((4,))

    def both(x, y, out):
        out = x + y.shape[0]  # noqa: F841

    out = empty(8)
    ninetoothed.make(arrangement, both, (Tensor(1), Tensor(1), Tensor(1)))(
        arange(8), arange(8), out
    )

    assert torch.equal(out, arange(8) + 2)


# Dimensions of size 1 aside.


@pytest.mark.parametrize(
    "arrangement",
    [
        lambda x, y, out: (x.tile((1, 4)), y.tile((1, 4)).unsqueeze(2), out.tile((1, 4))),
        lambda x, y, out: (x.tile((1, 4)).unsqueeze(2), y.tile((1, 4)), out.tile((1, 4))),
        lambda x, y, out: (x.tile((1, 4)), y.tile((1, 4)).unsqueeze(1), out.tile((1, 4))),
        lambda x, y, out: (x.tile((1, 4)).unsqueeze(0), y.tile((1, 4)), out.tile((1, 4))),
        lambda x, y, out: (
            x.tile((1, 4)).unsqueeze(0),
            y.tile((1, 4)).unsqueeze(2),
            out.tile((1, 4)),
        ),
    ],
)
@pytest.mark.parametrize("shape", [(3, 9), (1, 9), (3, 2), (1, 1), (0, 5), (4, 0)])
def test_dimensions_of_size_1_make_no_difference(arrangement, shape):
    """`(n, c, 1)` and `(n, c)` agree"""
    kernel = kernel_of(arrangement, (Tensor(2), Tensor(2), Tensor(2)))
    x, y = arange(*shape), arange(*shape) * 10
    out = empty(*shape)
    kernel(x, y, out)

    assert torch.equal(out, x + y)


def test_shapes_of_nothing_but_1_agree():
    """`(1,)` and `(1, 1)` too"""

    def arrangement(x, y, out):
        return x.tile((-1,)), y.tile((-1,)).unsqueeze(0), out.tile((-1,)).unsqueeze(0).unsqueeze(0)

    kernel = kernel_of(arrangement)
    out = empty(5)
    kernel(arange(5), arange(5), out)

    assert torch.equal(out, arange(5) * 2)


def elements(x, y, out):
    return x.tile((1,) * x.ndim), y.tile((1,) * y.ndim), out.tile((1,) * out.ndim)


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 1), (1, 3), (3,)),
        ((3,), (3, 1), (1, 3)),
        ((1, 3), (3, 1), (3, 1)),
        ((2, 1, 3), (2, 3), (1, 2, 3)),
        ((1, 1, 1), (1,), (1, 1)),
        ((2, 3), (2, 3, 1), (2, 1, 3)),
    ],
)
def test_which_dimensions_are_1_may_show_in_the_call(shapes):
    def summed(x, y, out):
        out += ntl.sum(ntl.ravel(x)) + 10 * ntl.sum(ntl.ravel(y))

    kernel = ninetoothed.make(elements, summed, tuple(Tensor(len(shape)) for shape in shapes))
    x, y = (arange(*shape) for shape in shapes[:2])
    out = torch.zeros(*shapes[2])
    kernel(x, y, out)

    assert torch.equal(out.flatten(), 11 * arange(x.numel()))
    with pytest.raises(ArrangementError, match="dimensions of size 1 aside"):
        kernel(torch.ones(*[2] * x.ndim), y, out)


def test_a_dimension_that_is_1_in_the_call_may_stand_where_others_have_their_programs():
    """The size that stands there, which is written shortest, is not the number of the programs."""

    def arrangement(given, y):
        return given.tile((2, 3)).tile((1, -1)).permute((1, 0)), y.tile((2, 3))

    def first(given, y):
        y = given[0, 0]  # noqa: F841

    kernel = ninetoothed.make(arrangement, first, (Tensor(2), Tensor(2)))
    given, y = arange(5, 3), empty(5, 3)
    kernel(given, y)

    assert torch.equal(y, given)
    with pytest.raises(ArrangementError, match="dimensions of size 1 aside"):
        kernel(given, empty(5, 4))


# Parameters that the compiled program never touches.


def ignored(x, y, out):
    out = x  # noqa: F841


@pytest.mark.parametrize(
    "arrangement",
    [
        of_four,
        lambda x, y, out: (x.tile((4,)), y.tile((-1,)).expand((2,)), out.tile((4,))),
        lambda x, y, out: (x.tile((4,)), y.unsqueeze(0), out.tile((4,))),
        lambda x, y, out: (x.tile((4,)), y.squeeze(0), out.tile((4,))),
    ],
    ids=["sizes", "provably another", "rank", "an operation that does not fit"],
)
@pytest.mark.parametrize(
    "y", [torch.ones(3), torch.ones(2, 3, 4), torch.ones(()), torch.ones(5, dtype=torch.complex64)]
)
def test_a_parameter_that_is_never_touched_is_exempt(arrangement, y):
    """and so is a parameter that the compiled program never touches"""
    kernel = ninetoothed.make(arrangement, ignored, (Tensor(1), Tensor(1), Tensor(1)))
    out = empty(9)
    kernel(arange(9), y, out)

    assert torch.equal(out, arange(9))


def test_the_tile_of_what_is_never_touched_may_be_of_any_size():
    def arrangement(x, y, out):
        return x.tile((4,)), y.tile((-1,)), out.tile((4,))

    kernel = ninetoothed.make(arrangement, ignored, (Tensor(1), Tensor(1), Tensor(1)))
    out = empty(9)
    kernel(arange(9), torch.ones(2**21, dtype=torch.int8), out)

    assert torch.equal(out, arange(9))


def test_what_a_constant_decides_against_is_not_touched():
    def either(x, y, out, first):
        if first:
            out = x
        else:
            out = y  # noqa: F841

    tensors = (Tensor(1), Tensor(1), Tensor(1), Tensor(0, constexpr=True))

    def arrangement(x, y, out, first):
        return *of_four(x, y, out), first

    kernel = ninetoothed.make(arrangement, either, tensors)
    for first in (True, False):
        out = empty(9)
        x, y = (arange(9), torch.ones(30)) if first else (torch.ones(30), arange(9))
        kernel(x, y, out, first)
        assert torch.equal(out, arange(9))
        with pytest.raises(ArrangementError, match=r"(?s)outermost.*\(8,\)"):
            kernel(y, x, out, first)


# Where shapes depend on meta symbols.


def block(tensor, size):
    return tensor.tile((1, size))


def test_configurations_that_break_the_rule_are_not_in_the_space():
    """Only one block covers a row: its count is the 1 that another shape has."""
    size = ninetoothed.block_size(lower_bound=1, upper_bound=64)

    def arrangement(x, y, out):
        return block(x, size), y.tile((1,)), block(out, size)

    def scaled(x, y, out):
        out = x * y[:, None]  # noqa: F841

    for columns in (1, 5, 33, 64):
        kernel = ninetoothed.make(arrangement, scaled, (Tensor(2), Tensor(1), Tensor(2)))
        x, y, out = arange(3, columns), arange(3) + 1, empty(3, columns)
        kernel(x, y, out)
        assert torch.equal(out, x * y[:, None])


def test_an_operation_that_fits_some_configurations_only():
    size = ninetoothed.block_size(lower_bound=2, upper_bound=32)

    def arrangement(x, y, out):
        return tuple(block(each, size).squeeze(1) for each in (x, y, out))

    kernel = kernel_of(arrangement, (Tensor(2), Tensor(2), Tensor(2)))
    x, out = arange(3, 17), empty(3, 17)
    kernel(x, x, out)

    assert torch.equal(out, x * 2)


def test_an_error_where_nothing_is_left_says_which_were_looked_at():
    size = ninetoothed.block_size(lower_bound=2, upper_bound=32)

    def arrangement(x, y, out):
        return block(x, size), y.tile((1,)), block(out, size)

    def scaled(x, y, out):
        out = x * y[:, None]  # noqa: F841

    kernel = ninetoothed.make(
        arrangement, scaled, (Tensor(2), Tensor(1), Tensor(2)), kernel_name="scaled"
    )
    with pytest.raises(ArrangementError) as caught:
        kernel(arange(3, 33), arange(3), empty(3, 33))

    message = caught.value.message
    assert "kernel `scaled`: the outermost shapes" in message
    assert "x: (3, " in message and "y: (3,)" in message
    for looked_at in (2, 4, 8, 16, 32):
        assert f"={looked_at}\n" in f"{message}\n"


def test_an_attention_writes_its_cache_where_one_block_covers_the_head():
    """Tiles of the cache match those of the heads only if the head is one block."""
    rows = ninetoothed.block_size(lower_bound=2, upper_bound=16)
    columns = ninetoothed.block_size(lower_bound=4, upper_bound=64)

    def arrangement(key, cache, out):
        key = key.tile((1, rows, columns))
        cache = cache.tile((1, rows, -1))
        return key, cache, out.tile((1, rows, -1))

    def application(key, cache, out):
        cache = key  # noqa: F841
        out = key * 2  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, (Tensor(3), Tensor(3), Tensor(3)))
    for size in (3, 24, 64):
        key = arange(2, 7, size)
        cache, out = torch.full((2, 7, size), float("nan")), empty(2, 7, size)
        kernel(key, cache, out)
        assert torch.equal(cache, key) and torch.equal(out, key * 2)
