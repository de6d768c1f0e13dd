"""LANGUAGE.md, "Numbers": an integer divided by 0 is 0, in that element alone, on every backend.

To LLVM it is undefined: what keeps a divisor from being 0 it takes to hold, for all that is computed.
So each program here has a condition that its result depends on, and a divisor that is 0 where it does
not hold. Run in Triton's interpreter too, by `tests.contract.on_interpreter`.
"""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from tests.contract.application.meanings import Case, made

X = np.array([5, -7, 0, 4, 9], np.int32)
D = np.array([2, 0, 3, 0, -4], np.int32)


def by_zero(function):
    """A function of `X` and divisors, and 0 where those are."""

    def called(x, d):
        return np.where(d == 0, 0, function(x, np.where(d == 0, 1, d)))

    return called


def quotients(x, d, out):
    out = x // d * 100 + x % d


def rounded_up(x, d, out):
    out = ntl.cdiv(x, ntl.abs(d)) + x.cdiv(div=ntl.abs(d))


def of_numbers(x, n, out):
    out = x // n + x % n + 7 // n + 7 % n + ntl.cdiv(7, n)


def by_truth_values(x, d, out):
    out = ntl.where(d > 2, (x > 1) // (d > 2) + (x > 1) % (d > 2), 5)


def by_a_chosen_tile(x, d, out):
    part = ntl.where(d > 2, 4, 0)
    v = x
    v //= part
    w = x
    w %= part
    out = ntl.where(d > 2, v * 100 + w, -1)


def by_a_chosen_tile_rounded_up(x, d, out):
    part = ntl.where(d > 2, 4, 0)
    out = ntl.where(d > 2, ntl.cdiv(x, part) + x.cdiv(part), -1)


def by_a_chosen_number(x, n, out):
    part = ntl.where(n > 3, 4, 0)
    out = ntl.where(n > 3, x + 17 // part, -1)


def by_what_a_branch_gave(x, n, out):
    part = n - n
    if n > 3:
        part = n - 1
    out = ntl.where(n > 3, x + 17 // part, -1)


def by_a_number(x, n, out):
    out = ntl.where(n != 0, x // n, -1)


def by_a_size(x, d, out):
    size = d.source.shape[0]
    out = ntl.where(size != 0, x // size + x.source.shape[0] // size, -1)


def in_a_loop(x, n, out):
    total = x * 0
    for k in range(n):
        total += ntl.where(k > 0, x // k, 100)
    out = total


def in_a_loop_of_known_length(x, n, out):
    total = x * 0
    for k in range(3):
        total += ntl.where(k > 0, x % k, 100)
    out = total + n


def by_positions(x, n, out):
    place = ntl.arange(0, 5)
    out = ntl.where(place > n, 24 // place + x, -1)


#: Each with what of its condition its compiled code is to have, as LLVM writes it.
CASES = [
    (Case(quotients, (X, D), by_zero(lambda x, d: x // d * 100 + x % d)), "umax"),
    (Case(rounded_up, (X, D), by_zero(lambda x, d: -((-x) // abs(d)) * 2)), r"icmp eq i32 %\d+, 0"),
    (Case(of_numbers, (X, 0), lambda x, n: x * 0), "umax"),
    (Case(by_truth_values, (X, D), lambda x, d: np.where(d > 2, x > 1, 5)), ""),
    (
        Case(by_a_chosen_tile, (X, D), lambda x, d: np.where(d > 2, x // 4 * 100 + x % 4, -1)),
        "i32 1, i32 4|i32 4, i32 1",
    ),
    (
        Case(by_a_chosen_tile_rounded_up, (X, D), lambda x, d: np.where(d > 2, -(-x // 4) * 2, -1)),
        "i32 1, i32 4|i32 4, i32 1",
    ),
    (Case(by_a_chosen_number, (X, 2), lambda x, n: x * 0 - 1), ""),
    (Case(by_what_a_branch_gave, (X, 2), lambda x, n: x * 0 - 1), r"i1 %\d+, i32 %\d+, i32 0"),
    (Case(by_a_number, (X, 0), lambda x, n: x * 0 - 1), r"icmp (eq|ne) i32 %[12], 0"),
    (Case(by_a_size, (X, D[:0]), lambda x, d: x * 0 - 1), r"icmp (eq|ne) i32 %[12], 0"),
    (Case(in_a_loop, (X, 3), lambda x, n: 100 + x + x // 2), "sdiv"),
    (Case(in_a_loop_of_known_length, (X, 3), lambda x, n: 103 + x % 2), "100"),
    (Case(by_positions, (X, 0), lambda x, n: [-1, 17, 12, 12, 15]), "umax"),
]

NAMED = pytest.mark.parametrize(
    ("case", "kept"), CASES, ids=[case.application.__name__ for case, _ in CASES]
)


@NAMED
def test_an_integer_by_zero_is_zero_and_nothing_else_changes(case, kept):
    kernel, arguments, expected = made(case)
    kernel(*arguments)

    assert arguments[-1].tolist() == expected.tolist()


def compiled(made):
    """What LLVM makes of a kernel with arguments."""
    pytest.importorskip("triton")
    if os.environ.get("TRITON_INTERPRET"):
        pytest.skip("needs Triton's compiler, and its interpreter was chosen")
    kernel, *arguments = made
    found = kernel.compile(*arguments, target=("cuda", 90))
    assert found.asm["cubin"]
    return str(found.asm["llir"])


@NAMED
def test_no_condition_is_lost_in_what_is_compiled(case, kept):
    kernel, arguments, _ = made(case)
    code = compiled((kernel, *arguments))

    assert "unreachable" not in code
    assert re.search(kept, code), code


def of_a_stored_tile(z, y):
    z = ntl.full(z.shape, 3, ntl.int32)
    y = ntl.sum(z[1] % z + 1)


def stored():
    """A kernel whose sum leaves out what does not exist of a tile that it divides by; its arguments."""
    kernel = ninetoothed.make(
        lambda z, y: (z.tile((5,)), y.tile((1,))), of_a_stored_tile, (Tensor(1), Tensor(1))
    )
    return kernel, torch.zeros(7, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)


def test_a_sum_of_what_was_divided_has_the_elements_that_exist():
    kernel, z, y = stored()
    kernel(z, y)

    assert y.tolist() == [5, 2]


def test_the_mask_of_such_a_sum_is_compiled():
    code = compiled(stored())

    *_, chosen = re.findall(r"select i1 %(\d+), i32 %\d+, i32 0", code[: code.index("shfl.sync")])
    assert f"%{chosen} = and i1" in code
    assert "i32 3, i32 1" in code
