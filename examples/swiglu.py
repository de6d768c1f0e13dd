"""The gated linear unit with a SiLU gate: ``output = input * silu(gate)``."""

import ninetoothed
import ninetoothed.language as ntl
from examples import add
from ninetoothed import Tensor


def application(input, gate, output):
    g = ntl.cast(gate, ntl.float32)
    output = input * g * ntl.sigmoid(g)


tensors = tuple(Tensor(1) for _ in range(3))

kernel = ninetoothed.make(add.arrangement, application, tensors, kernel_name="swiglu")


def swiglu(input, gate):
    """SwiGLU of two tensors of one shape, as a new tensor."""
    output = input.new_empty(input.shape)

    kernel(input.flatten(), gate.flatten(), output.flatten(), BLOCK_SIZE=1024)

    return output
