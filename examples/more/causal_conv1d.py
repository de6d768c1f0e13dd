"""Depthwise causal convolution: a block of positions with a halo of those before it."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def arrangement(input, weight, bias, output):
    halo = weight.shape[1] - 1

    input_arranged = input.pad(((0, 0), (0, 0), (halo, 0)))
    input_arranged = input_arranged.tile((1, 1, BLOCK_SIZE + halo), strides=(1, 1, BLOCK_SIZE))
    input_arranged.dtype = input_arranged.dtype.squeeze((0, 1))

    output_arranged = output.tile((1, 1, BLOCK_SIZE))
    output_arranged.dtype = output_arranged.dtype.squeeze((0, 1))

    weight_arranged = weight.tile((1, -1)).unsqueeze(0)
    weight_arranged = weight_arranged.expand((input.shape[0], -1, output_arranged.shape[2]))
    weight_arranged.dtype = weight_arranged.dtype.squeeze(0)

    bias_arranged = bias.tile((1,)).unsqueeze(0).unsqueeze(2)
    bias_arranged = bias_arranged.expand((input.shape[0], -1, output_arranged.shape[2]))

    return input_arranged, weight_arranged, bias_arranged, output_arranged


def application(input, weight, bias, output):
    places = ntl.arange(0, output.shape[0])
    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)

    for k in range(weight.shape[0]):
        accumulator += ntl.cast(weight[k], ntl.float32) * input[places + k]

    output = accumulator + bias


tensors = (Tensor(3), Tensor(2), Tensor(1), Tensor(3))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="causal_conv1d")


def causal_conv1d(input, weight, bias):
    """(b, c, t) convolved with each channel's filter (c, k): no output sees a later input."""
    output = input.new_empty(input.shape)

    kernel(input, weight, bias, output, BLOCK_SIZE=64)

    return output
