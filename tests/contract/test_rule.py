"""LANGUAGE.md, "The rule of arrangement"."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
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
        (lambda x, y, out: (x.tile((4,)), y.tile((4,)).unsqueeze(0), out.tile((4,))), None),
        (lambda x, y, out: (x.tile((-1,)), y.tile((-1,)).expand((2,)), out.tile((-1,))), None),
        (of_four, (Tensor(shape=(8,)), Tensor(shape=(9,)), Tensor(1))),
    ],
    ids=["rank", "size", "known shapes"],
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
