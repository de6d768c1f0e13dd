"""What the operators share: arrangements by rows and by blocks, and sums over many rows."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor, op

BLOCK_SIZE = ninetoothed.block_size()

#: One program of a sum over rows takes so many tiles of so many rows.
ROWS, STEPS, COLUMNS = 16, 8, 128


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


def operator(name, arrangement, application, tensors, outputs, **options):
    """An operator of these examples; ``outputs`` may say nothing of sizes: (shape, dtype) or `like`."""
    kernel = ninetoothed.make(arrangement, application, tensors, kernel_name=name)
    return op(f"ninetoothed_examples::{name}", kernel, outputs, **options)


def sum_over_rows(name, application, matrices, statistics=0):
    """An operator that sums over the rows what an application makes of tiles of matrices.

    The application is given some tiles of the matrices (m, n), in a level above, and of the vectors
    (m,), the statistics, and stores a row of sums. These are few, one for each group of rows, and
    summed in the same order each time.
    """

    def arrangement(*tensors):
        *inputs, sums = tensors

        def arranged_matrix(tensor):
            arranged = tensor.tile((ROWS, COLUMNS)).tile((STEPS, 1))
            arranged.dtype = arranged.dtype.squeeze(1)
            return arranged

        arranged = [arranged_matrix(tensor) for tensor in inputs[:matrices]]
        for tensor in inputs[matrices:]:
            groups = tensor.tile((ROWS,)).tile((STEPS,)).unsqueeze(1)
            arranged.append(groups.expand((-1, arranged[0].shape[1])))
        return *arranged, sums.tile((1, COLUMNS))

    tensors = [Tensor(2) for _ in range(matrices)] + [Tensor(1) for _ in range(statistics)]
    kernel = ninetoothed.make(
        arrangement, application, (*tensors, Tensor(2)), kernel_name=f"{name}_sums"
    )
    rows, columns = tensors[0].shape
    groups = (rows + ROWS * STEPS - 1) // (ROWS * STEPS)
    sums = op(
        f"ninetoothed_examples::{name}_sums",
        kernel,
        {"sums": ((groups, columns), ninetoothed.float32)},
    )
    return lambda *arguments: sums(*arguments).sum(0)
