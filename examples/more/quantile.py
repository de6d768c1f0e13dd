"""A quantile of each row: a scalar argument, a sort that leaves padding out, and positions in it."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def arrangement(input, q, output):
    input_arranged = input.tile((1, -1))
    input_arranged.dtype = input_arranged.dtype.squeeze(0)

    return input_arranged, q, output.tile((1,))


def application(input, q, output):
    ordered = ntl.sort(ntl.cast(input, ntl.float32))
    places = ntl.arange(0, ordered.shape[0])

    position = q * (input.shape[0] - 1)
    below = ntl.cast(ntl.floor(position), ntl.int32)
    above = ntl.minimum(below + 1, input.shape[0] - 1)

    low = ntl.sum(ntl.where(places == below, ordered, 0.0))
    high = ntl.sum(ntl.where(places == above, ordered, 0.0))

    output = low + (high - low) * (position - below)


tensors = (Tensor(2), Tensor(0), Tensor(1))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="quantile")


def quantile(input, q):
    """The `q` quantile, 0 to 1, of each row of (rows, columns), between neighbours as a mixture."""
    output = input.new_empty(input.shape[:1])

    kernel(input, q, output)

    return output
