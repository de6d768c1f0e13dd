"""Loops that transpose what they carry. As a program it compiles them: ``python -m`` this module.

It ends with an error where Triton's compiler does not: that takes no signal until it returns.
"""

from __future__ import annotations

import faulthandler
import json
from collections.abc import Callable

import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

SIZE, ROUNDS = 8, 3


def transposed(x, n, y):
    a = ntl.full((8, 8), 1.0, ntl.float32) + ntl.arange(0, 8)
    for _ in range(n):
        a = ntl.trans(a) * 2
    y = a + x  # noqa: F841


def loaded_by_few_threads(x, n, y):
    a = x
    for _ in range(n):
        a += a.permute((1, 0))
    y = a  # noqa: F841


def reduced(x, n, y):
    a = ntl.full((8, 8), 1.0, ntl.float32) + ntl.arange(0, 8)
    for _ in range(n):
        a = a + ntl.trans(a)
    y = x + ntl.max(ntl.max(a, 1), 0)  # noqa: F841


def in_a_branch(x, n, y):
    a = ntl.full((8, 8), 1.0, ntl.float32) + ntl.arange(0, 8)
    for k in range(n):
        if k > 0:
            a = ntl.trans(a)
        else:
            a = a + 1
    y = a + x  # noqa: F841


def through_another_variable(x, n, y):
    a = x
    b = x + 1
    for _ in range(n):
        c = ntl.trans(a)
        a = b * 2
        b = c
    y = a + b  # noqa: F841


def reshaped(x, n, y):
    a = ntl.full((8, 8), 1.0, ntl.float32) + ntl.arange(0, 8)
    for _ in range(n):
        a = a + ntl.reshape(ntl.trans(ntl.reshape(a, (4, 16))), (8, 8))
    y = x + ntl.max(ntl.max(a, 1), 0)  # noqa: F841


def by_a_number(x, n, y):
    a, most = x, 1.0
    for _ in range(n):
        a = ntl.trans(a * most)
        most = ntl.max(ntl.max(a, 1), 0)
    y = a  # noqa: F841


def of_three_dimensions(x, n, y):
    a = ntl.full((8, 8, 2), 1.0, ntl.float32) + ntl.arange(0, 2)
    for _ in range(n):
        a = a + ntl.permute(a, (1, 0, 2))
    y = x + ntl.sum(a, 2)  # noqa: F841


def in_an_inner_loop(x, n, y):
    total = x
    for k in range(n):
        a = ntl.full((8, 8), 1.0, ntl.float32) + ntl.arange(0, 8) * k
        for _ in range(n):
            a = a + ntl.trans(a)
        total += a
    y = total  # noqa: F841


APPLICATIONS = (
    transposed,
    loaded_by_few_threads,
    reduced,
    in_a_branch,
    through_another_variable,
    reshaped,
    by_a_number,
    of_three_dimensions,
    in_an_inner_loop,
)


def made(application: Callable[..., None]) -> ninetoothed.Kernel:
    def arrangement(x, n, y):
        return x.tile((SIZE, SIZE)), n, y.tile((SIZE, SIZE))

    declared = Tensor(shape=(SIZE, SIZE)), Tensor(0), Tensor(shape=(SIZE, SIZE))
    return ninetoothed.make(arrangement, application, declared)


def case_what_they_give() -> None:
    start = torch.ones(8, 8) + torch.arange(8.0)
    x = torch.arange(64.0).reshape(8, 8)
    both = start + start.T
    folded = start.clone()
    for _ in range(ROUNDS):
        folded = folded + folded.reshape(4, 16).T.reshape(8, 8)
    one, other = x, x + 1
    for _ in range(ROUNDS):
        one, other = other * 2, one.T
    expected = {
        transposed: 8 * start.T + x,
        loaded_by_few_threads: 4 * (x + x.T),
        reduced: x + 4 * both.max(),
        in_a_branch: start + 1 + x,
        through_another_variable: one + other,
        reshaped: x + folded.max(),
        by_a_number: x.T * 63**3,
        of_three_dimensions: x + 8 * 3,
        in_an_inner_loop: x + 12 * both,
    }
    for application in APPLICATIONS:
        y = torch.zeros(8, 8)
        made(application)(x, ROUNDS, y)
        assert torch.equal(y, expected[application]), application.__name__


def _compiled() -> list[str]:
    """The names of those that were compiled, none in more than a minute."""
    found = []
    for application in APPLICATIONS:
        faulthandler.dump_traceback_later(60, exit=True)
        for num_warps in (1, 4):
            x = torch.zeros(SIZE, SIZE)
            where = {"target": ("cuda", 90), "num_warps": num_warps}
            assert made(application).compile(x, ROUNDS, x.clone(), **where).asm["cubin"]
        found.append(application.__name__)
    faulthandler.cancel_dump_traceback_later()
    return found


if __name__ == "__main__":
    print(json.dumps(_compiled()))
