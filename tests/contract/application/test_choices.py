"""A choice of a tile or a number is what `ntl.where` makes of it, and `and`, `or` beside a tile are element-wise.

A case is an application of five elements, which are held in eight lanes, and a number, and what comes out
for each number. Run in Triton's interpreter too, by `tests.contract.on_interpreter`.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import NineToothedError

CASES = {}

X = torch.arange(1.0, 6)


def case(expected):
    def register(application):
        CASES[application.__name__] = application, expected
        return application

    return register


@case({2: 15, -1: 10})
def sum_of_a_choice(x, n, y):
    y = ntl.sum(x if n > 0 else 2)


@case({2: 12.5, -1: 15})
def sum_of_the_number_first(x, n, y):
    value = 2.5 if n > 0 else x
    y = ntl.sum(value, axis=0)


@case({2: 45, -1: 30})
def sum_of_what_is_made_of_a_choice(x, n, y):
    y = ntl.sum((x if n > 0 else 2) * 3)


@case({2: 15, -3: -15})
def sum_of_a_choice_of_the_scalar(x, n, y):
    y = ntl.sum(x if n > 0 else n)


@case({2: 15, -1: 75})
def sum_of_a_tile_or_its_sum(x, n, y):
    y = ntl.sum(x if n > 0 else ntl.sum(x))


@case({2: 1, -1: 10})
def least_of_a_choice(x, n, y):
    y = ntl.min(x if n > 0 else 10)


@case({2: [5.0, 4.0, 3.0, 2.0, 1.0], -1: [2.0] * 5})
def a_flipped_choice(x, n, y):
    y = ntl.flip(x if n > 0 else 2)


@case({2: [1.0, 3.0, 6.0, 10.0, 15.0], -1: [2.0, 4.0, 6.0, 8.0, 10.0]})
def a_scanned_choice(x, n, y):
    y = ntl.cumsum(x if n > 0 else 2, 0)


@case({4: 15, 2: 30, 0: 35})
def a_choice_in_a_choice(x, n, y):
    y = ntl.sum(x if n > 3 else (x * 2 if n > 1 else 7))


@case({4: 5, 2: 15, 0: 15})
def a_choice_of_two_numbers_in_a_choice(x, n, y):
    y = ntl.sum((1 if n > 3 else 3) if n > 1 else x)


@case({2: 10 + 15, 0: 0})
def a_choice_in_each_round(x, n, y):
    total = 0.0
    for k in range(n):
        total += ntl.sum(x if k > 0 else 2)
    y = total


@case({2: 4 * (1 + 4 + 9 + 16 + 25), -1: 8 * 15})
def a_tile_is_multiplied_by_a_choice_in_each_round(x, n, y):
    value = x
    for k in range(3):
        value = value * (x if k == n else 2)
    y = ntl.sum(value)


@case({2: 10})
def a_choice_by_a_size(x, n, y):
    y = ntl.sum(x if x.source.shape[0] > 300 else 2)


@case({2: [3.0, 4.0, 5.0, 6.0, 7.0], 5: [6.0, 7.0, 8.0, 9.0, 10.0]})
def a_choice_of_two_numbers(x, n, y):
    y = x + (5 if n > 3 else n)


def half(value):
    return value / 2


@case({2: 7.5, -1: 5})
def a_choice_of_what_a_helper_returns(x, n, y):
    y = ntl.sum(half(x) if n > 0 else 1)


@case({2: 1, 0: 0})
def what_divides_by_a_size_of_0(x, n, y):
    rest = x.source.shape[0] - 5
    y = (10 // rest if rest > 0 else 1) if n > 0 else (rest > 0 and 10 // rest > 2)


@case({2: 5, 0: 5, -1: 5})
def a_number_or_a_tile(x, n, y):
    y = ntl.sum(n or x)


@case({2: [1.0] * 5, 0: [0.0] * 5})
def a_number_and_a_tile(x, n, y):
    y = n and x


@case({2: [1.0] * 5, 0: [0.0, 0.0, 0.0, 1.0, 1.0]})
def a_true_number_or_a_comparison(x, n, y):
    y = n > 1 or x > 3


@case({2: 2, 0: 0, -1: 0})
def numbers_and_a_comparison(x, n, y):
    y = ntl.sum(n > 1 and n and x > 3)


@case({2: 2, 0: 3, -1: -1})
def a_number_or_a_number(x, n, y):
    y = n or 3


def whole(*tensors):
    return tuple(tensor.tile((-1,)) if tensor.ndim else tensor for tensor in tensors)


@pytest.mark.parametrize("name", CASES)
def test_whichever_is_chosen_what_exists_is_what_the_tile_has(name):
    application, expected = CASES[name]
    kernel = ninetoothed.make(whole, application, (Tensor(1), Tensor(0), Tensor(1)))
    for number, wanted in expected.items():
        y = torch.full((5,), float("nan"))
        kernel(X.to(y.device), number, y)
        torch.testing.assert_close(y, torch.as_tensor(wanted, dtype=y.dtype).expand(5))


def a_choice_of_two_tiles(x, z, n, y):
    y = x if n > 0 else z


def a_kept_choice_of_two_tiles(x, z, n, y):
    v = x * 2 if n > 0 else z * 2
    y = v + x


def a_choice_of_tiles_in_a_choice(x, z, n, y):
    y = x if n > 3 else (z if n > 1 else x)


CHOICES = [a_choice_of_two_tiles, a_kept_choice_of_two_tiles, a_choice_of_tiles_in_a_choice]


@pytest.mark.parametrize("application", CHOICES)
@pytest.mark.parametrize(
    ("size", "dtype", "message"),
    [
        (8, torch.float32, "choice have different shapes"),
        (1, torch.float32, "choice have different shapes"),
        (4, torch.int32, "choice have different element types: .*int32"),
        (4, torch.float16, "choice have different element types: .*float16"),
    ],
)
@pytest.mark.parametrize("is_declared", [False, True])
@pytest.mark.parametrize("way", ["called", "compiled"])
def test_no_choice_is_made_of_two_tiles_that_are_not_alike(
    application, size, dtype, message, is_declared, way
):
    def arrangement(x, z, n, y):
        return x.tile((4,)), z.tile((size,)), n, y.tile((4,))

    if way == "compiled":
        pytest.importorskip("triton")
    declared = [torch.float32, dtype] if is_declared else [None, None]
    arguments = torch.arange(8.0), torch.ones(2 * size, dtype=dtype), 2, torch.zeros(8)
    with pytest.raises(NineToothedError, match=message) as raised:
        tensors = (Tensor(1, dtype=declared[0]), Tensor(1, dtype=declared[1]), Tensor(0), Tensor(1))
        kernel = ninetoothed.make(arrangement, application, tensors)
        if way == "called":
            kernel(*arguments)
        else:
            kernel.compile(*arguments, target=("cuda", 90))
    assert __file__ in str(raised.value)


def softmax_of_what_is_scaled(x, scale, y):
    is_inside = x.offsets(0) < x.source.shape[0]
    scores = ntl.where(is_inside, x, float("-inf")) * (scale * 1.5)
    weights = ntl.exp(scores - ntl.max(scores))
    y = weights / ntl.sum(weights)  # noqa: F841


def test_a_number_that_is_no_scale_leaves_padding_where_it_is():
    """Minus infinity times a scale is what it was; times 0 or less it is not."""
    kernel = ninetoothed.make(
        lambda x, scale, y: (x.tile((-1,)), scale, y.tile((-1,))),
        softmax_of_what_is_scaled,
        (Tensor(1), Tensor(0), Tensor(1)),
    )
    x = torch.arange(5.0)
    for scale in (0.5, -0.5, 0.0, 2, -1, 1e-30, 0.5):
        y = torch.zeros(5)
        kernel(x, scale, y)
        torch.testing.assert_close(y, torch.softmax(x * scale * 1.5, 0))


def a_float_beside_integers(x, n, y):
    v = x if n > 0 else 2.5
    y = v + v  # noqa: F841


def integers_beside_a_number_of_the_call(x, n, scale, y):
    v = scale if n > 0 else x
    y = v + v  # noqa: F841


@pytest.mark.parametrize(
    ("application", "numbers", "expected"),
    [
        (a_float_beside_integers, (1,), 2.0**32),
        (a_float_beside_integers, (0,), 5),
        (integers_beside_a_number_of_the_call, (0, 2.5), 2.0**32),
        (integers_beside_a_number_of_the_call, (1, 2.5), 5),
    ],
)
def test_a_choice_has_the_type_of_both(application, numbers, expected):
    """Twice the greatest int32, rounded to a float32."""
    x, y = torch.full((5,), 2**31 - 1, dtype=torch.int32), torch.zeros(5, dtype=torch.float64)
    ninetoothed.make(
        lambda x, *rest: (x.tile((-1,)), *rest[:-1], rest[-1].tile((-1,))),
        application,
        (Tensor(1), *(Tensor(0) for _ in numbers), Tensor(1)),
    )(x, *numbers, y)
    assert y.tolist() == pytest.approx([expected] * 5, rel=1e-7)


def asked_once(x, z, n, y):
    found = ntl.zeros(x.shape, ntl.float32)
    if ntl.min(z if n > 1 else x) > 1:
        found = found + 1
    y = found


def asked_after_another(x, z, n, y):
    found = ntl.zeros(x.shape, ntl.float32)
    if n > 5:
        found = found + 7
    elif ntl.min(z if n > 1 else x) > 1:
        found = found + 1
    y = found


def as_many_rounds(x, z, n, y):
    found = ntl.zeros(x.shape, ntl.float32)
    for _ in range(ntl.cast(ntl.min(z if n > 1 else x), ntl.int32)):
        found = found + 1
    y = found


def asked_each_round(x, z, n, y):
    found = ntl.zeros(x.shape, ntl.float32)
    while ntl.min((z if n > 1 else x) - found) > 1:
        found = found + 1
    y = found


def asked_each_round_of_variables(x, z, n, y):
    found = ntl.zeros(x.shape, ntl.float32)
    v = x + 0
    w = z + 0
    while ntl.min(w if n > 1 else v) > 1:
        found = found + 1
        v = v - 1
        w = w - 1
    y = found  # noqa: F841


@pytest.mark.parametrize("n", [0, 2, 6])
@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (asked_once, lambda least, n: float(least > 1)),
        (asked_after_another, lambda least, n: 7 if n > 5 else float(least > 1)),
        (as_many_rounds, lambda least, n: max(least, 0)),
        (asked_each_round, lambda least, n: max(least - 1, 0)),
        (asked_each_round_of_variables, lambda least, n: max(least - 1, 0)),
    ],
)
def test_a_choice_that_is_asked_of_has_the_elements_of_what_is_chosen(application, expected, n):
    """In a test and a bound, over rows of three: padding, which reads as 0, was the least."""
    x = torch.tensor([[4.0, 5, 6], [2, 3, 4], [8, 9, 10], [-1, 2, 3]])
    z, y = x.roll(-1, 0).contiguous(), torch.full((4, 3), float("nan"))
    ninetoothed.make(
        lambda x, z, n, y: (x.tile((1, -1)), z.tile((1, -1)), n, y.tile((1, -1))),
        application,
        (Tensor(2), Tensor(2), Tensor(0), Tensor(2)),
    )(x, z, n, y)
    least = (z if n > 1 else x).amin(1).tolist()
    wanted = torch.tensor([[expected(row, n)] * 3 for row in least])
    torch.testing.assert_close(y, wanted.to(y))


def added(x, n, y):
    y = (n and x) + (n or x)


def added_of_two_tiles(x, n, y):
    y = (n and x) + (x and x)


def negated(x, n, y):
    y = -(n and x)


def taken_off_and_added(x, n, y):
    y = (n and x) - (n or x) + (n > 0 and x)


def counted_up(x, n, y):
    count = ntl.zeros(x.shape, ntl.int32)
    for _ in range(3):
        count += n and x
    y = count  # noqa: F841


@pytest.mark.parametrize(
    ("application", "expected"),
    [(added, 2), (added_of_two_tiles, 2), (negated, -1), (taken_off_and_added, 1), (counted_up, 3)],
)
def test_truth_values_of_numbers_and_tiles_count(application, expected):
    """On a device two of them were added in one bit."""
    x, y = torch.arange(1.0, 6), torch.full((5,), float("nan"))
    ninetoothed.make(
        lambda x, n, y: (x.tile((-1,)), n, y.tile((-1,))),
        application,
        (Tensor(1), Tensor(0), Tensor(1)),
    )(x, 7, y)
    assert y.tolist() == [expected] * 5


def by_a_tile_that_a_number_picks(x, m, y):
    y = x[0] if ntl.max(x[max(m - 4, 0)]) > 3.5 else x[1]


def by_where_such_a_tile_is_greatest(x, m, y):
    v = x[0] if ntl.argmax(x[abs(m - 4)], 0) == 3 else x[1]
    y = v + 0


def by_a_number_and_such_a_tile(x, m, y):
    y = x[0] if m > 0 and ntl.max(ntl.flip(x[abs(m - 4)])) > 3.5 else x[1]


def by_such_a_tile_for_a_helper(x, m, y):
    y = half(x[0] if ntl.max(x[max(m - 4, 0)]) > 3.5 else x[1]) * 2


def by_tiles_in_turn(x, m, y):
    total = x[0] * 0
    j = m - 4
    for k in range(3):
        total += x[k] if ntl.max(x[j]) > 4.5 else x[0]
        j = (j + 2) % 3
    y = total - x[0] - x[1]  # noqa: F841


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (by_a_tile_that_a_number_picks, [1, 2, 3, 4]),
        (by_where_such_a_tile_is_greatest, [1, 2, 3, 4]),
        (by_a_number_and_such_a_tile, [1, 2, 3, 4]),
        (by_such_a_tile_for_a_helper, [1, 2, 3, 4]),
        (by_tiles_in_turn, [9, 10, 0, 0]),
    ],
)
def test_a_tile_that_decides_a_choice_may_be_another_later(application, expected):
    """Which tile it was is kept before the choice, which becomes branches: it was kept nowhere."""
    kernel = ninetoothed.make(
        lambda x, m, y: (x.tile((4,)).tile((-1,)), m, y.tile((4,))),
        application,
        (Tensor(1), Tensor(0), Tensor(1)),
    )
    x, y = torch.arange(1.0, 11), torch.full((4,), float("nan"))
    kernel(x, 4, y)
    assert y.tolist() == expected
