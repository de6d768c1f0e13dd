"""Instance normalisation, which also returns each channel's mean and deviation.

The images' tiles are arranged as (n, c, 1) and the statistics' as (n, c): dimensions of size 1 aside,
these agree.
"""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def arrangement(input, weight, bias, eps, output, mean, deviation):
    def arrange_image(tensor):
        arranged = tensor.flatten(start_dim=2).tile((1, 1, -1))
        arranged.dtype = arranged.dtype.squeeze((0, 1))

        return arranged

    def arrange_vector(tensor):
        return tensor.tile((1,)).unsqueeze(0).expand((input.shape[0], -1))

    return (
        arrange_image(input),
        arrange_vector(weight),
        arrange_vector(bias),
        eps,
        arrange_image(output),
        mean.tile((1, 1)),
        deviation.tile((1, 1)),
    )


def application(input, weight, bias, eps, output, mean, deviation):
    pixels = ntl.cast(input, ntl.float32)
    average = ntl.sum(pixels) / input.shape[0]
    centered = pixels - average
    variance = ntl.sum(centered * centered) / input.shape[0]
    root = ntl.sqrt(variance + eps)

    output = centered / root * weight + bias
    mean = average
    deviation = root


tensors = (Tensor(4), Tensor(1), Tensor(1), Tensor(0), Tensor(4), Tensor(2), Tensor(2))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="instance_norm")


def instance_norm(input, weight, bias, eps=1e-5):
    """(n, c, h, w) with each channel of each image normalised; the means; the deviations (n, c)."""
    output = input.new_empty(input.shape)
    mean, deviation = (input.new_empty(input.shape[:2]) for _ in range(2))

    kernel(input, weight, bias, eps, output, mean, deviation)

    return output, mean, deviation
