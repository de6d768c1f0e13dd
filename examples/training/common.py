"""What the operators share: arrangements by rows and by blocks."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor, op

BLOCK_SIZE = ninetoothed.block_size()


def precise(tile):
    """A tile in the type that statistics are computed in."""
    return tile if tile.dtype is ntl.float64 else ntl.cast(tile, ntl.float32)


def blocks(*tensors):
    """Vectors in blocks; scalars as they are."""
    return tuple(tensor.tile((BLOCK_SIZE,)) if tensor.ndim else tensor for tensor in tensors)


def row(tensor):
    """A row of a matrix (m, n) a program: (m, 1) tiles of (1, n)."""
    return tensor.tile((1, -1))


def statistic(tensor):
    """An element of a vector (m,) a program, beside rows of a matrix."""
    return tensor.tile((1,)).unsqueeze(1)


def weight(tensor, beside):
    """The whole of a vector (n,) for every row of a matrix."""
    return tensor.tile((-1,)).unsqueeze(0).expand((beside.shape[0], -1))


def vector(dtype=None):
    """A symbolic vector."""
    return Tensor(1, dtype=dtype)


def matrix():
    """A symbolic matrix whose rows are tiles."""
    return Tensor(2, shape_options=(None, {"constexpr": True}))


def by_rows(function, input, *others):
    """A function of a matrix and others, of the rows of a tensor (..., n)."""
    if input.ndim == 2:
        return function(input, *others)

    return function(input.flatten(end_dim=-2), *others).view_as(input)


def operator(name, arrangement, application, tensors, outputs, **options):
    """An operator of these examples; ``outputs`` may say nothing of sizes: (shape, dtype) or `like`."""
    kernel = ninetoothed.make(arrangement, application, tensors, kernel_name=name)
    return op(f"ninetoothed_examples::{name}", kernel, outputs, **options)
