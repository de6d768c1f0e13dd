"""Cross entropy and its gradient: one class is read from a tile, and one is written to it."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def arrangement(logits, target, loss, gradient):
    def arrange_row(tensor):
        arranged = tensor.tile((1, -1))
        arranged.dtype = arranged.dtype.squeeze(0)

        return arranged

    return arrange_row(logits), target.tile((1,)), loss.tile((1,)), arrange_row(gradient)


def application(logits, target, loss, gradient):
    row = ntl.cast(logits, ntl.float32)
    maximum = ntl.max(row)
    numerator = ntl.exp(row - maximum)
    total = ntl.sum(numerator)
    chosen = ntl.cast(logits[target], ntl.float32) - maximum

    loss = ntl.log(total) - chosen
    gradient = numerator / total
    gradient[target] = ntl.exp(chosen) / total - 1.0


tensors = (Tensor(2), Tensor(1), Tensor(1), Tensor(2))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="cross_entropy")


def cross_entropy(logits, target):
    """The losses (n,) of logits (n, classes) for classes (n,), and the gradient of their sum."""
    loss, gradient = logits.new_empty(logits.shape[:1]), logits.new_empty(logits.shape)

    kernel(logits, target, loss, gradient)

    return loss, gradient
