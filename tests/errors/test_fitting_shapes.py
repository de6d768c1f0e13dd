"""Shapes that cannot be: one error with its place, the same on CPUs and where a kernel is compiled for a device.

At `make` where it is so for all sizes, else at the call, where the sizes that are given do not fit.
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from ninetoothed.errors import ApplicationError, CompilationError, ShapeError  # noqa: E402
from tests.errors.making import refusal, whole  # noqa: E402


def halves(x, y):
    first, second = ntl.split(x)
    y = first + second


def as_squares(x, y):
    y = ntl.reshape(x, (5, 5))


def as_planes(x, y):
    y = x.view(x.shape[0], 2 * x.shape[1])


def repeated(x, y):
    y = ntl.broadcast_to(x, (4, 9))


def turned(x, y):
    y = ntl.trans(x)


def copied(x, y):
    y = x


def counted(x, y):
    y = x + ntl.arange(0, 3)[None, :]


def gathered(x, y):
    y = ntl.gather(x, ntl.zeros((4, 2), ntl.int32), 0)


def joined(x, y):
    y = ntl.sum(ntl.join(x, ntl.zeros((3, 3), ntl.float32)), axis=2)


def interleaved(x, y):
    y = ntl.interleave(x, ntl.zeros((3, 3), ntl.float32))


@pytest.mark.parametrize(
    ("application", "source", "destination", "said"),
    [
        (
            halves,
            (3, 3),
            (3,),
            "ntl.split` needs a last dimension of size 2, but the shape is [4, 4]",
        ),
        (halves, (2, 1), (2,), "but the shape is [2, 1]"),
        (
            as_squares,
            (4, 8),
            (4, 8),
            "[4, 8] has 32 elements and cannot become [8, 8], which has 64",
        ),
        (
            as_planes,
            (4, 8),
            (4, 8),
            "[4, 8] has 32 elements and cannot become [4, 16], which has 64",
        ),
        (repeated, (4, 8), (4, 8), "[4, 8] does not broadcast to [4, 16]"),
        (copied, (8, 1), (1, 8), "[8, 1] cannot be stored to `y`, which is of shape [1, 8]"),
        (copied, (1, 8), (8, 1), "[1, 8] cannot be stored to `y`, which is of shape [8, 1]"),
        (turned, (1, 8), (1, 8), "[8, 1] cannot be stored to `y`, which is of shape [1, 8]"),
        (counted, (4, 8), (4, 8), "shapes match or are 1, but got [4, 8] and [1, 4]"),
        (gathered, (4, 8), (4, 8), "like the source but in axis 0, yet got [4, 2] for [4, 8]"),
        (joined, (4, 8), (4, 8), "shapes match or are 1, but got [4, 8] and [4, 4]"),
        (interleaved, (4, 8), (4, 16), "shapes match or are 1, but got [4, 8] and [4, 4]"),
    ],
)
def test_sizes_that_do_not_fit_are_one_error_wherever(application, source, destination, said):
    pytest.importorskip("triton", reason="needs Triton's compiler")
    tensors = tuple(Tensor(len(shape)) for shape in (source, destination))
    kernel = ninetoothed.make(whole, application, tensors)
    x, y = torch.zeros(source), torch.zeros(destination)
    with pytest.raises(ShapeError) as on_cpu:
        kernel(x, y)
    with pytest.raises(ShapeError) as compiled:
        kernel.compile(x, y, target=("cuda", 90))
    assert said in str(on_cpu.value)
    assert str(compiled.value) == str(on_cpu.value)
    assert on_cpu.value.location.file == __file__
    assert isinstance(on_cpu.value, ApplicationError) and isinstance(on_cpu.value, CompilationError)


def test_a_configuration_whose_sizes_do_not_fit_is_left_to_the_search():
    """It is what a configuration that does not compile is."""
    assert issubclass(ShapeError, CompilationError)


def negative_size(x, y):
    y = ntl.reshape(x, (-1, 8))


def no_size(x, y):
    y = ntl.zeros((0, 8), ntl.float32)


def size_below_0(x, y):
    y = ntl.zeros((-4, 8), ntl.float32)


def half_a_size(x, y):
    y = ntl.broadcast_to(x, (4, 8.5))


def a_tile_as_size(x, y):
    y = ntl.reshape(x, (x, 8))


def no_shape(x, y):
    y = ntl.reshape(x, None)


def axis_twice(x, y):
    y = ntl.sum(ntl.expand_dims(x, (0, 0)), axis=0)


def axis_of_a_float(x, y):
    y = ntl.sum(ntl.expand_dims(x, 1.0), axis=0)


def order_of_floats(x, y):
    y = ntl.trans(x, (1.0, 0))


def sum_of_both(x, y):
    y = ntl.sum(x, axis=(0, 1))


def sum_along_a_list(x, y):
    s = x.sum([0])
    y = x + s


def sum_along_a_shape(x, y):
    y = ntl.sum(x, x.shape)


def greatest_of_both(x, y):
    y = ntl.max(x, (0, 1), keep_dims=True)


def least_of_both(x, y):
    y = ntl.min(x, axis=[1], keep_dims=True)


def running_along_both(x, y):
    y = ntl.cumsum(x, (0, 1))


def sorted_along_both(x, y):
    y = ntl.sort(x, (0, 1))


def along_a_type(x, y):
    y = ntl.sum(x, x.dtype)


def kept_by_a_text(x, y):
    y = ntl.sum(x, 0, keep_dims="a")


def kept_by_nothing(x, y):
    y = ntl.sum(x, 0, keep_dims=None)


def kept_by_a_float(x, y):
    y = ntl.max(x, 0, keep_dims=1.0)


def kept_by_a_tuple(x, y):
    y = ntl.sum(x, 0, keep_dims=(1,))


def a_number_joined(x, y):
    y = ntl.sum(ntl.join(x, 2.0), axis=2)


def nothing_joined(x, y):
    y = ntl.sum(ntl.join(x), axis=2)


def a_text_joined(x, y):
    y = ntl.sum(ntl.join(x, "x"), axis=2)


def a_number_repeated(x, y):
    y = ntl.broadcast_to(3.0, (4, 8))


def planes_one_after_another(x, y):
    y = ntl.cat(x, x, can_reorder=True)


def along_a_dimension(x, y):
    y = ntl.cat(x, x, can_reorder=True, dim=0)


def from_below_0(x, y):
    y = x + ntl.arange(-4, 4)[None, :]


def to_the_front(x, y):
    y = x + ntl.arange(8, 4)[None, :]


def to_a_tile(x, y):
    y = x + ntl.arange(0, x)[None, :]


def third_half(x, y):
    y = ntl.split(ntl.join(x, x))[2]


def full_of_several(x, y):
    y = ntl.full((4, 8), ntl.arange(0, 8), ntl.float32)


def of_no_type(x, y):
    y = ntl.zeros((4, 8))


def in_no_order(x, y):
    y = ntl.permute(x)


def sum_of_one(x, y):
    y = ntl.add(x)


def quotient_of_one(x, y):
    y = ntl.cdiv(x)


def greatest_of_one(x, y):
    y = ntl.maximum(x)


def where_it_holds(x, y):
    y = ntl.where(x > 0, x)


def root_of_nothing(x, y):
    y = ntl.sqrt()


@pytest.mark.parametrize(
    ("application", "said"),
    [
        (in_no_order, "`ntl.permute` needs each of 2 dimensions"),
        (sum_of_one, "`ntl.add` needs `x`, `y`, but got no `y`"),
        (quotient_of_one, "`ntl.cdiv` needs `x`, `div`, but got no `div`"),
        (greatest_of_one, "`ntl.maximum` needs `x`, `y`, but got no `y`"),
        (where_it_holds, "`ntl.where` needs `condition`, `x`, `y`, but got no `y`"),
        (root_of_nothing, "`ntl.sqrt` needs `x`, but got no `x`"),
        (negative_size, "A tile's size must be 1 or more, but got -1"),
        (no_size, "A tile's size must be 1 or more, but got 0"),
        (size_below_0, "A tile's size must be 1 or more, but got -4"),
        (half_a_size, "A tile's size must be an integer, but got 8.5"),
        (a_tile_as_size, "A tile's size must be an integer, but got a tile of shape"),
        (no_shape, "A tile's size must be an integer, but got None"),
        (axis_twice, "was given an axis twice: (0, 0)"),
        (axis_of_a_float, "An axis must be an integer, but got 1.0"),
        (order_of_floats, "An axis must be an integer, but got 1.0"),
        (
            sum_of_both,
            "got a tuple: `ntl.sum` goes along one dimension (or, without an axis, along",
        ),
        (sum_along_a_list, "An axis must be an integer, but got a tuple"),
        (sum_along_a_shape, "An axis must be an integer, but got a tuple"),
        (greatest_of_both, "got a tuple: `ntl.max` goes along one dimension"),
        (least_of_both, "got a tuple: `ntl.min` goes along one dimension"),
        (running_along_both, "`ntl.cumsum` goes along one dimension; call it once for each"),
        (sorted_along_both, "`ntl.sort` goes along one dimension; call it once for each"),
        (along_a_type, "An axis must be an integer, but got an element type"),
        (kept_by_a_text, "`keep_dims` of `ntl.sum` must be True or False, but got 'a'"),
        (kept_by_nothing, "`keep_dims` of `ntl.sum` must be True or False, but got None"),
        (kept_by_a_float, "`keep_dims` of `ntl.max` must be True or False, but got 1.0"),
        (kept_by_a_tuple, "`keep_dims` of `ntl.sum` must be True or False, but got a tuple"),
        (a_number_joined, "`ntl.join` needs tiles, but got 2.0"),
        (nothing_joined, "`ntl.join` needs `a`, `b`, but got no `b`"),
        (a_text_joined, "`ntl.join` needs tiles, but got 'x'"),
        (a_number_repeated, "`ntl.broadcast_to` needs tiles, but got 3.0"),
        (planes_one_after_another, "`ntl.cat` takes two one-dimensional tiles"),
        (along_a_dimension, "`ntl.cat` takes `input`, `other`, `can_reorder`, but got `dim`"),
        (from_below_0, "`ntl.arange` begins at 0 or later, but got -4"),
        (to_the_front, "`ntl.arange` ends after its start, but got 8 and 4"),
        (to_a_tile, "`ntl.arange` needs integers"),
        (third_half, "There is no item 2 of 2"),
        (full_of_several, "`ntl.full` takes one value, but got a tile of shape [8]"),
        (of_no_type, "`ntl.zeros` needs `shape`, `dtype`, but got no `dtype`"),
    ],
)
def test_what_fits_no_size_is_an_error_at_make(application, said):
    assert said in refusal(application)
