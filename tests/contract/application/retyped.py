"""Applications in which a variable gets another type after a tile was chosen, of three elements of four.

Each is given ``x``, of which tiles are chosen, ``y``, and the numbers ``n``, which decides, and ``f``.
"""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def backwards(value):
    w = value
    return ntl.gather(w, w.shape[0] - 1 - ntl.arange(0, w.shape[0]), 0)


def a_number_becomes_a_tile(x, y, n, f):
    total = f
    chosen = x[2] if n > 1 else x[3]
    total += backwards(chosen)
    for k in range(y.shape[0]):
        y[k] = total


def a_number_is_chosen_a_tile(x, y, n, f):
    total = f
    total = x[2] if n > 1 else x[3]
    y[0] = backwards(total) + f


def an_integer_becomes_a_sum(x, y, n, f):
    total = n
    chosen = x[2] if n > 1 else x[3]
    total += ntl.sum(backwards(chosen)) + f
    y[0] = total + chosen * 0 - n


def a_tile_becomes_one_of_another_type(x, y, n, f):
    total = x[0].to(ntl.float16)
    chosen = x[2] if n > 1 else x[3]
    total = total * 0 + backwards(chosen).to(ntl.float32) + f
    y[0] = total


def within_a_loop(x, y, n, f):
    for k in range(y.shape[0]):
        total = f
        chosen = x[2] if n > k else x[3]
        total += backwards(chosen)
        y[k] = total


def within_a_branch(x, y, n, f):
    if n > 0:
        total = f
        chosen = x[2] if n > 1 else x[3]
        total += backwards(chosen)
    else:
        total = x[0]
    y[0] = total


OLD = -7.0
#: What is stored to the first tile of ``y``, with 2 for ``n`` and -1.5 for ``f``: the third tile of ``x``
#: is 7, 8, 9; backwards there is nothing, 9, 8 and 7.
CASES = [
    (a_number_becomes_a_tile, [OLD, 7.5, 6.5]),
    (a_number_is_chosen_a_tile, [OLD, 7.5, 6.5]),
    (an_integer_becomes_a_sum, [22.5, 22.5, 22.5]),
    (a_tile_becomes_one_of_another_type, [OLD, 7.5, 6.5]),
    (within_a_loop, [OLD, 7.5, 6.5]),
    (within_a_branch, [OLD, 7.5, 6.5]),
]


def kernel_of(application):
    def arrangement(x, y, n, f):
        return x.tile((3,)).tile((4,)), y.tile((3,)).tile((4,)), n, f

    tensors = (Tensor(1), Tensor(1), Tensor(0), Tensor(0))
    return ninetoothed.make(arrangement, application, tensors)
