"""Where each row's largest element is, the first of several: an output of another element type."""

import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def arrangement(input, output):
    input_arranged = input.tile((1, -1))
    input_arranged.dtype = input_arranged.dtype.squeeze(0)

    return input_arranged, output.tile((1,))


def application(input, output):
    output = ntl.argmax(input, axis=0)


tensors = (Tensor(2), Tensor(1, dtype=torch.int64))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="argmax")


def argmax(input):
    """The index of the maximum of each row of (..., columns), as a new tensor of int64."""
    output = torch.empty(input.shape[:-1], dtype=torch.int64, device=input.device)

    kernel(input.flatten(end_dim=-2), output.flatten())

    return output
