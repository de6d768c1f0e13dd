"""LANGUAGE.md, "Numbers": a Python float meets float64 tensors as float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError
from ninetoothed.language import operations

X = torch.tensor([-3.0, 0.1, 5.0, 0.7, 0.3, 2.0], dtype=torch.float64)
N = X.numpy()
CHOSEN = np.where(N > 0, 0.3, 0.7)


def tiles(*tensors):
    return tuple(tensor.tile((8,)) if tensor.ndim else tensor for tensor in tensors)


def result(application, *arguments, out=None):
    out = torch.zeros_like(X) if out is None else out
    # Where tests run on a device, what a module holds is not there.
    device = torch.get_default_device()
    arguments = [a.to(device) if isinstance(a, torch.Tensor) else a for a in (*arguments, out)]
    dims = [a.ndim if isinstance(a, torch.Tensor) else 0 for a in arguments]
    ninetoothed.make(tiles, application, tuple(map(Tensor, dims)))(*arguments)
    return arguments[-1].cpu().numpy()


#: Of several values; those of the random numbers take integers.
NAMES = sorted(
    operations.names(
        lambda row: row.is_elementwise and len(row.operands) > 1 and row.home != "random"
    )
)


@pytest.mark.parametrize("name", NAMES)
def test_an_operation_takes_a_literal_as_it_takes_a_tile_of_it(name):
    function = getattr(ntl, name)
    count = len(operations.find(name).operands)
    for place in range(count):

        def with_literal(x, c, y):
            y = function(*(0.3 if k == place else x for k in range(count)))  # noqa: F841, B023

        def with_tile(x, c, y):
            y = function(*(c if k == place else x for k in range(count)))  # noqa: F841, B023

        tile = torch.full_like(X, 0.3)
        try:
            expected = result(with_tile, X, tile)
        except Exception:  # Of whichever backend: it takes no floats.
            continue
        assert result(with_literal, X, tile).tolist() == expected.tolist()


def test_libdevice_takes_a_literal():
    def power(x, y):
        y = ntl.libdevice.pow(x, 0.3)  # noqa: F841

    expected = np.power(np.abs(N), 0.3)
    assert result(power, X.abs()) == pytest.approx(expected, rel=1e-12)


def stored(x, y):
    y = 0.3  # noqa: F841


def chosen(x, y):
    y = ntl.where(x > 0, 0.3, 0.7)  # noqa: F841


def chosen_beside_an_integer(x, y):
    y = ntl.where(x > 0, 1, 0.7)  # noqa: F841


def held(x, y):
    number = ntl.where(x > 0, 0.3, 0.7)
    y = ntl.maximum(number, 0.4) * x  # noqa: F841


def negated(x, y):
    y = 0.1 - -ntl.where(x > 0, 0.3, 0.7) * 0.1  # noqa: F841


def compared(x, y):
    y = (x == 0.1) + 2 * (x <= 0.3)  # noqa: F841


def summed(x, y):
    total = 0.1
    for _ in range(3):
        total = total + 0.1
    y = total + ntl.sum(x) * 0  # noqa: F841


def cast(x, y):
    y = x + ntl.cast(0.3, ntl.float64)  # noqa: F841


def smaller(x, y):
    y = min(max(x, 0.3), 0.7)  # noqa: F841


def sliced(x, y):
    y = x
    y[1:3] = 0.3


def at_a_place(x, y):
    y = x
    y.source[0] = 0.3


def added(x, y):
    ntl.atomic_add(y, 0.3)


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (stored, np.full(6, 0.3)),
        (chosen, CHOSEN),
        (chosen_beside_an_integer, np.where(N > 0, 1, 0.7)),
        (held, np.maximum(CHOSEN, 0.4) * N),
        (negated, 0.1 + CHOSEN * 0.1),
        (compared, (N == 0.1) + 2.0 * (N <= 0.3)),
        (summed, np.full(6, 0.1 + 0.1 + 0.1 + 0.1)),
        (cast, N + 0.3),
        (smaller, np.clip(N, 0.3, 0.7)),
        (sliced, np.where((np.arange(6) > 0) & (np.arange(6) < 3), 0.3, N)),
        (at_a_place, np.where(np.arange(6) == 0, 0.3, N)),
        (added, np.full(6, 0.3)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_literal_is_float64(application, expected):
    assert result(application, X).tolist() == expected.tolist()


def branch(x, n, y):
    if n > 0:
        number = 0.3
    else:
        number = 0.7
    y = x * number  # noqa: F841


def choice(x, n, y):
    y = 0.3 if n > 0 else 0.7  # noqa: F841


def multiplied_choice(x, n, y):
    y = x * (0.3 if n > 0 else 0.7)  # noqa: F841


def scalar(x, n, y):
    y = ntl.where(x > 0, n, 0.7)  # noqa: F841


@pytest.mark.parametrize(
    ("application", "expected"),
    [(branch, N * 0.3), (choice, np.full(6, 0.3)), (multiplied_choice, N * 0.3), (scalar, CHOSEN)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_literal_that_the_running_kernel_chooses_is_float64(application, expected):
    assert result(application, X, 0.3).tolist() == expected.tolist()


def larger(a, b):
    return ntl.maximum(ntl.maximum(a, b), 0.1)


def plus_a_tenth(a):
    return a + 0.1


def the_larger_and_its_place(a, i, b, j):
    return ntl.where(a > b, a, b), ntl.where(a > b, i, j)


def scanned(x, y):
    narrow = ntl.associative_scan(ntl.full(x.shape, 0.0, ntl.float32), 0, larger)
    for _ in range(2):
        narrow = ntl.clamp(narrow, 0.3, 2.0)
    y = narrow  # noqa: F841


def reduced(x, y):
    held = ntl.full(x.shape, 0.0, ntl.float32)
    for _ in range(2):
        held = ntl.maximum(held, ntl.minimum(ntl.reduce(held, 0, larger) + 1, 0.3))
    y = held  # noqa: F841


def reduced_with_places(x, y):
    held = ntl.full(x.shape, 0.0, ntl.float32)
    best, place = ntl.reduce((held, ntl.arange(0, 8)), 0, the_larger_and_its_place)
    y = ntl.maximum(best, 0.3) + 0 * place  # noqa: F841


def function_maps(x, y):
    narrow = ntl.map_elementwise(plus_a_tenth, ntl.full(x.shape, 0.0, ntl.float32))
    y = ntl.maximum(narrow, 0.3)  # noqa: F841


@pytest.mark.parametrize("application", [scanned, reduced, reduced_with_places, function_maps])
def test_what_a_function_makes_of_float32_meets_literals_as_float32(application):
    assert set(result(application, X).tolist()) == {float(np.float32(0.3))}


def test_what_a_function_makes_of_float64_meets_literals_as_float64():
    def wide(x, y):
        y = ntl.associative_scan(ntl.zeros(x.shape, ntl.float64), 0, larger)  # noqa: F841

    assert result(wide, X)[1:].tolist() == [0.1] * (len(X) - 1)


def test_of_float64_a_function_maps_to_float64():
    def wide(x, y):
        y = ntl.maximum(ntl.map_elementwise(plus_a_tenth, x - x), 0.05)  # noqa: F841

    assert set(result(wide, X).tolist()) == {0.1}


def test_beside_narrower_tiles_literals_stay_theirs():
    def narrow(z, x, y):
        least = z
        for _ in range(2):
            least = ntl.maximum(least, 0.3)
        y = ntl.clamp(least, 0.1, 0.6) + 0 * x  # noqa: F841

    z = X.float()
    expected = np.clip(z.cpu().numpy(), np.float32(0.3), np.float32(0.6))
    assert result(narrow, z, X).tolist() == expected.astype(np.float64).tolist()
    assert result(narrow, z, z, out=torch.zeros_like(z)).tolist() == expected.tolist()


def least(n, s, x, y):
    y = ntl.minimum(n, 0.1) + 0 * x  # noqa: F841


def product(n, s, x, y):
    y = n * 0.3 - 0.7 / (n + 4) + s * 0.1 + (n > 0) * 0.3 + 0 * x  # noqa: F841


def quotient(n, s, x, y):
    y = n / 3 + s / 7 + 1 / (n + 4) + n.shape[0] / 9 + 0 * x  # noqa: F841


def remainder(n, s, x, y):
    y = n // 0.3 + n % 0.3 + 0 * x  # noqa: F841


def held(n, s, x, y):
    v = n
    v = v * 0.3
    w = s
    w /= 3
    y = v + w + 0 * x  # noqa: F841


def compared(n, s, x, y):
    y = ntl.where(s * 0.1 == 0.30000000000000004, n * 1.0, 0.1) + 0 * x  # noqa: F841


def operand(n, s, x, y):
    y = (s and 0.3) + (s - 3 or 0.7) + 0 * x  # noqa: F841


def chosen(n, s, x, y):
    y = ntl.where(n > 0, n, 0.3) + (n if s > 5 else 0.1) + 0 * x  # noqa: F841


WHOLE = np.arange(-3, 3)


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (least, np.minimum(WHOLE, 0.1)),
        (product, WHOLE * 0.3 - 0.7 / (WHOLE + 4) + 3 * 0.1 + (WHOLE > 0) * 0.3),
        (quotient, WHOLE / 3 + 3 / 7 + 1 / (WHOLE + 4) + 8 / 9),
        (remainder, WHOLE // 0.3 + WHOLE % 0.3),
        (held, WHOLE * 0.3 + 1.0),
        (compared, WHOLE * 1.0),
        (operand, WHOLE * 0 + 1.0),
        (chosen, np.where(WHOLE > 0, WHOLE, 0.3) + 0.1),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_beside_integers_a_literal_is_float64_in_a_call_that_has_such_elements(
    application, expected, dtype
):
    found = result(application, torch.from_numpy(WHOLE).to(dtype), 3, X)
    assert np.allclose(found, expected, rtol=1e-15, atol=1e-15)


def test_beside_integers_a_literal_is_float32_elsewhere():
    def integers(n, y):
        y = n * 0.3 + n / 3  # noqa: F841

    found = result(integers, torch.arange(-2, 4, dtype=torch.int32), out=torch.zeros(6))
    single = np.arange(-2, 4, dtype=np.float32)
    assert np.allclose(found, single * np.float32(0.3) + single / np.float32(3), rtol=1e-6)


def whole(x, y):
    y = 300  # noqa: F841


def sliced_whole(x, y):
    y[1:3] = -1


@pytest.mark.parametrize("application", [whole, sliced_whole])
def test_an_integer_that_does_not_fit_is_no_element(application):
    out = torch.zeros(6, dtype=torch.uint8)
    with pytest.raises(
        ApplicationError, match=r"(300|-1) does not fit 'y', whose elements are uint8"
    ):
        result(application, X, out=out)
    assert set(result(application, X, out=out.short()).tolist()) <= {0, 300, -1}
