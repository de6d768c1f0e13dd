"""Root-mean-square normalisation along the last dimension: one program holds one row."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def arrangement(input, eps, output):
    return input.tile((1, -1)), eps, output.tile((1, -1))


def application(input, eps, output):
    row = ntl.cast(input, ntl.float32)
    mean_square = ntl.sum(row * row) / input.shape[-1]
    output = row * ntl.rsqrt(mean_square + eps)


shape_options = (None, {"constexpr": True})
tensors = (
    Tensor(2, shape_options=shape_options),
    Tensor(0),
    Tensor(2, shape_options=shape_options),
)

kernel = ninetoothed.make(arrangement, application, tensors)


def rms_norm(input, eps=1e-6):
    """A tensor (..., columns) over the root mean square of its rows, as a new tensor."""
    output = input.new_empty(input.shape)

    kernel(input.flatten(end_dim=-2), eps, output.flatten(end_dim=-2))

    return output
