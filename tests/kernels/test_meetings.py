"""Which tiles meet in an application, as data: before any size is known."""

from __future__ import annotations

import pytest

import ninetoothed
import ninetoothed.language as ntl
from examples import mm, sdpa
from ninetoothed import Symbol, Tensor, block_size
from ninetoothed.kernels.meetings.values import Values
from ninetoothed.kernels.meetings.walk import meetings

BLOCK = block_size()


def met(kernel, **constants):
    """The parameters that meet, with their dimensions."""
    return {
        tuple((side.use.parameter, *side.dims) for side in meeting.sides)
        for meeting in meetings(kernel.specializations.of(constants))
    }


def blocks(*tensors):
    return tuple(t.tile((BLOCK,)) if t.ndim else t for t in tensors)


def vectors(application, *tensors):
    return ninetoothed.make(blocks, application, tensors or (Tensor(1), Tensor(1), Tensor(1)))


def test_a_product_contracts_one_dimension_and_is_stored_to_the_others():
    assert met(mm.kernel) == {
        (("input", 1), ("other", 0)),
        (("input", 0), ("output", 0)),
        (("other", 1), ("output", 1)),
    }


def test_attention_is_followed_through_its_loop():
    found = met(sdpa.kernel, is_causal=False)
    assert {(("query", 1), ("key", 1)), (("key", 0), ("value", 0))} <= found
    assert (("value", 1), ("output", 1)) in found
    assert met(sdpa.kernel, is_causal=True) == found


def test_dimensions_that_are_declared_equal_need_no_look():
    def application(x, w, y):
        y = x + w  # noqa: F841

    size = Symbol("size")
    assert met(vectors(application, *(Tensor(1, shape=(size,)) for _ in range(3)))) == set()
    assert len(met(vectors(application))) == 3


def test_a_tensor_with_other_set_meets_nothing():
    def application(x, w, y):
        y = x + w  # noqa: F841

    kernel = vectors(application, Tensor(1), Tensor(1, other=0), Tensor(1))
    assert met(kernel) == {(("x", 0), ("y", 0))}


def test_what_is_not_used_meets_nothing():
    def application(x, w, y):
        unused = x + w  # noqa: F841
        y = x  # noqa: F841

    assert met(vectors(application)) == {(("x", 0), ("y", 0))}


def test_a_reduction_takes_its_dimension_away():
    def application(x, w, y):
        y = w * ntl.sum(x)  # noqa: F841

    assert met(vectors(application)) == {(("w", 0), ("y", 0))}


def test_only_the_branch_that_a_constant_chooses_is_looked_at():
    def application(x, w, flag, y):
        if flag:
            y = x
        else:
            y = w  # noqa: F841

    kernel = vectors(application, Tensor(1), Tensor(1), Tensor(0, constexpr=True), Tensor(1))
    assert met(kernel, flag=True) == {(("x", 0), ("y", 0))}
    assert met(kernel, flag=False) == {(("w", 0), ("y", 0))}
    # Whether a number that comes with each call chooses the one or the other, nobody knows yet.
    kernel = vectors(application, Tensor(1), Tensor(1), Tensor(0), Tensor(1))
    assert met(kernel) == {(("x", 0), ("y", 0)), (("w", 0), ("y", 0))}


@pytest.mark.parametrize("count", [1, 4])
def test_loops_that_follow_one_another_add_to_what_a_value_is_made_of(count):
    """What a value had before a loop is no news of it, in whichever of its rounds the value changes."""

    def application(x, w, y, count):
        total = x[0] + w[0]
        for _ in range(x.shape[0]):
            for _ in ntl.static_range(count):
                for k in range(x.shape[0]):
                    if k > 1:
                        total -= total + x[k]
            if x.shape[0] > 2:
                total -= total + x[0]
        y[0] = total

    def arrangement(x, w, y, count):
        return *(t.tile((BLOCK,)).tile((-1,)) for t in (x, w, y)), count

    tensors = Tensor(1), Tensor(1), Tensor(1), Tensor(0, constexpr=True)
    kernel = ninetoothed.make(arrangement, application, tensors)
    found = meetings(kernel.specializations.of({"count": count}))
    # Each with each.
    assert len(found) <= 24 * count**2


def added_or_left(branches):
    def application(x, w, n, y):
        value = x + 0
        for k in branches:
            if n > k:
                value = x if n == 2 * k else value
            else:
                value = value + w
        y = value  # noqa: F841

    return application


def added_or_multiplied(branches):
    def application(x, w, n, y):
        value, other = w + 0, x + 0
        for k in branches:
            if ntl.max(value) > k:
                value = value * (value - other)
            else:
                other = other + value
        y = value + other  # noqa: F841

    return application


def in_exchange(branches):
    def application(x, w, n, y):
        value, other = w + 0, x + 0
        for k in branches:
            if n > k:
                value, other = other, value * 2
        y = value + other  # noqa: F841

    return application


@pytest.mark.parametrize("made", [added_or_left, added_or_multiplied, in_exchange])
def test_branches_in_a_row_do_not_double_what_is_looked_at(made, monkeypatch):
    pairs, pair = [], Values.pair

    def counted(self, node, *sides):
        pairs.append(node)
        pair(self, node, *sides)

    monkeypatch.setattr(Values, "pair", counted)

    def looked_at(count):
        """How many pairs there are in so many branches."""
        tensors = Tensor(1), Tensor(1), Tensor(0), Tensor(1)
        kernel = vectors(made(tuple(range(count))), *tensors)
        pairs.clear()
        assert (("x", 0), ("y", 0)) in met(kernel)
        return len(pairs)

    # In each branch as many as there were before it.
    assert looked_at(16) <= 8 * looked_at(8)


def test_positions_meet_what_is_stored_there_before_the_slices_behind_them():
    def arrangement(x, z, w):
        return x.tile((4, 2, 2)), z.tile((4, 2)), w.tile((4, 2, 2))

    def application(x, z, w):
        x[:, z] = w

    kernel = ninetoothed.make(arrangement, application, (Tensor(3), Tensor(2), Tensor(3)))
    assert met(kernel) == {(("z", 0), ("w", 0)), (("z", 1), ("w", 1))}
