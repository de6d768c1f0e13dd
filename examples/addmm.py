"""``beta * input + alpha * (mat1 @ mat2)``, on mm's arrangement and application."""

import ninetoothed
import ninetoothed.language as ntl
from examples import mm
from ninetoothed import Tensor


def arrangement(input, mat1, mat2, beta, alpha, output):
    input_arranged = input.tile((mm.BLOCK_SIZE_M, mm.BLOCK_SIZE_N))
    mat1_arranged, mat2_arranged, output_arranged = mm.arrangement(mat1, mat2, output)

    return input_arranged, mat1_arranged, mat2_arranged, beta, alpha, output_arranged


def application(input, mat1, mat2, beta, alpha, output):
    product = ntl.zeros(output.shape, dtype=ntl.float32)
    mm.application(mat1, mat2, product)
    output = beta * input + alpha * product


tensors = (Tensor(2), Tensor(2), Tensor(2), Tensor(0), Tensor(0), Tensor(2))

kernel = ninetoothed.make(arrangement, application, tensors)


def addmm(input, mat1, mat2, beta=1.0, alpha=1.0):
    """As above, for (m, k) and (k, n); the input is (m, n) or expands to it, as (n,) does."""
    output = mat1.new_empty((mat1.shape[0], mat2.shape[1]))

    kernel(input.expand(output.shape), mat1, mat2, beta, alpha, output)

    return output
