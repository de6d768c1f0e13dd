"""The best expert of each token: an index that is computed, and what stands there in another tile."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def arrangement(scores, values, output):
    def arrange_row(tensor):
        arranged = tensor.tile((1, -1))
        arranged.dtype = arranged.dtype.squeeze(0)

        return arranged

    return arrange_row(scores), arrange_row(values), output.tile((1,))


def application(scores, values, output):
    output = values[ntl.argmax(scores, axis=0)]


tensors = (Tensor(2), Tensor(2), Tensor(1))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="top1")


def top1(scores, values):
    """From each row of `values` (n, experts) the element where the row of `scores` is largest."""
    output = values.new_empty(values.shape[:1])

    kernel(scores, values, output)

    return output
