"""Group normalisation: a program has the channels of one group, a tile of two dimensions."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

CHANNELS = Symbol("CHANNELS", constexpr=True)


def arrangement(input, weight, bias, eps, output):
    def arrange_groups(tensor):
        arranged = tensor.flatten(start_dim=2).tile((1, CHANNELS, -1))
        arranged.dtype = arranged.dtype.squeeze(0)

        return arranged

    def arrange_vector(tensor):
        arranged = tensor.unsqueeze(1).tile((CHANNELS, 1))

        return arranged.unsqueeze(0).expand((input.shape[0], -1, -1))

    return (
        arrange_groups(input),
        arrange_vector(weight),
        arrange_vector(bias),
        eps,
        arrange_groups(output),
    )


def application(input, weight, bias, eps, output):
    group = ntl.cast(input, ntl.float32)
    count = input.shape[0] * input.shape[1]
    centered = group - ntl.sum(group) / count
    variance = ntl.sum(centered * centered) / count

    output = centered * ntl.rsqrt(variance + eps) * weight + bias


tensors = (Tensor(4), Tensor(1), Tensor(1), Tensor(0), Tensor(4))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="group_norm")


def group_norm(input, num_groups, weight, bias, eps=1e-5):
    """(n, c, h, w) with each group of neighbouring channels of each image normalised."""
    output = input.new_empty(input.shape)

    kernel(input, weight, bias, eps, output, CHANNELS=input.shape[1] // num_groups)

    return output
