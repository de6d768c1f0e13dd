"""Products with a matrix of weights (n, k), fused with what stands before and after them in a decoder.

With up to `FEW` rows nothing but reading the weights should take time: a program holds some rows of the
weight, walks along k, and its threads multiply and add elements, 16 bytes of a row at a time. The
normalisation before it is computed by each program anew. With more rows the matrix units do it.
"""

import functools

import ninetoothed
import ninetoothed.language as ntl
from examples import mm
from examples.fused_rms_norm import fused_rms_norm
from examples.swiglu import application as joined
from ninetoothed import Symbol, Tensor, block_size

#: So many rows at most are multiplied element by element.
FEW = 4

#: So many elements of 16 bits a thread reads at once.
RUN = 8

BLOCK_SIZE_N = Symbol("BLOCK_SIZE_N", constexpr=True)
BLOCK_SIZE_K = Symbol("BLOCK_SIZE_K", constexpr=True)


def few_arrangement(input, scale, weight, eps, residual, output, is_normalized):
    """All rows of the input beside each block of rows of the weight (parts, n, k)."""
    weight_arranged = weight.tile((1, BLOCK_SIZE_N, BLOCK_SIZE_K)).tile((-1, 1, -1))
    weight_arranged.dtype = weight_arranged.dtype.squeeze(1)

    def arrange_input(tensor):
        arranged = tensor.unsqueeze(1).tile((-1, 1, BLOCK_SIZE_K)).tile((1, 1, -1))
        arranged.dtype = arranged.dtype.squeeze((0, 1))

        return arranged.expand((-1, weight_arranged.shape[1], -1))

    def arrange_columns(tensor):
        return tensor.tile((-1, BLOCK_SIZE_N)).unsqueeze(2)

    return (
        arrange_input(input),
        arrange_input(scale.unsqueeze(0)),
        weight_arranged,
        eps,
        arrange_columns(residual),
        arrange_columns(output),
        is_normalized,
    )


def factor(squares, input, eps, is_normalized):
    """What normalises each row: one over its root mean square."""
    if is_normalized:
        return ntl.rsqrt(ntl.sum(squares, axis=2) / input.source.shape[1] + eps)
    else:
        return 1.0


def silu(gate):
    return gate * ntl.sigmoid(gate)


def by_threads(products, num_rows, block, columns):
    """The sums of neighbours along k, which one thread has."""
    return ntl.sum(ntl.reshape(products, (num_rows, block, columns // RUN, RUN)), axis=3)


def multiplied(input, scale, weight, eps, output, is_normalized):
    """The rows of the input, normalised or as they are, times rows of the weight."""
    sums = ntl.zeros(
        (output.shape[0], output.shape[1], input.dtype.shape[2] // RUN), dtype=ntl.float32
    )
    squares = ntl.zeros((input.dtype.shape[0], 1, input.dtype.shape[2] // RUN), dtype=ntl.float32)

    for k in range(input.shape[0]):
        x = ntl.cast(input[k], ntl.float32)

        if is_normalized:
            squares += by_threads(x * x, input.dtype.shape[0], 1, input.dtype.shape[2])
            x = x * scale[k]

        sums += by_threads(
            ntl.cast(weight[0, k], ntl.float32) * x,
            output.shape[0],
            output.shape[1],
            input.dtype.shape[2],
        )

    return ntl.sum(sums, axis=2) * factor(squares, input, eps, is_normalized)


def plain(input, scale, weight, eps, residual, output, is_normalized):
    output = multiplied(input, scale, weight, eps, output, is_normalized)


def biased(input, scale, weight, eps, residual, output, is_normalized):
    """With the residual, which is a bias for all rows, added."""
    output = residual + multiplied(input, scale, weight, eps, output, is_normalized)


def gated(input, scale, weight, eps, residual, output, is_normalized):
    gate = ntl.zeros(
        (output.shape[0], output.shape[1], input.dtype.shape[2] // RUN), dtype=ntl.float32
    )
    up = ntl.zeros(
        (output.shape[0], output.shape[1], input.dtype.shape[2] // RUN), dtype=ntl.float32
    )
    squares = ntl.zeros((input.dtype.shape[0], 1, input.dtype.shape[2] // RUN), dtype=ntl.float32)

    for k in range(input.shape[0]):
        x = ntl.cast(input[k], ntl.float32)

        if is_normalized:
            squares += by_threads(x * x, input.dtype.shape[0], 1, input.dtype.shape[2])
            x = x * scale[k]

        gate += by_threads(
            ntl.cast(weight[0, k], ntl.float32) * x,
            output.shape[0],
            output.shape[1],
            input.dtype.shape[2],
        )
        up += by_threads(
            ntl.cast(weight[1, k], ntl.float32) * x,
            output.shape[0],
            output.shape[1],
            input.dtype.shape[2],
        )

    by = factor(squares, input, eps, is_normalized)
    output = silu(ntl.sum(gate, axis=2) * by) * (ntl.sum(up, axis=2) * by)


def added(input, scale, weight, eps, residual, output, is_normalized):
    sums = ntl.zeros(
        (output.shape[0], output.shape[1], input.dtype.shape[2] // RUN), dtype=ntl.float32
    )

    for k in range(input.shape[0]):
        sums += by_threads(
            ntl.cast(weight[0, k], ntl.float32) * ntl.cast(input[k], ntl.float32),
            output.shape[0],
            output.shape[1],
            input.dtype.shape[2],
        )

    output = residual + ntl.sum(sums, axis=2)


def rows():
    return Tensor(2, shape_options=({"constexpr": True}, None))


few_tensors = (
    *(rows(), Tensor(1), Tensor(3), Tensor(0), rows(), rows()),
    Tensor(0, constexpr=True),
)


@functools.cache
def make_few(application, num_warps):
    return ninetoothed.make(
        few_arrangement,
        application,
        few_tensors,
        kernel_name=f"{application.__name__}_product_of_few_rows",
        num_warps=num_warps,
    )


#: A tile of weights as its rows, its columns and the warps that share it, by the application and the
#: rows of the input: the best that `benchmarks.llama.few_rows` found on an H200 at an 8B Llama's sizes.
TILES = {
    (plain, 1): (16, 512, 4),
    (plain, 2): (4, 1024, 2),
    (gated, 1): (4, 2048, 4),
    (gated, 2): (4, 256, 1),
    (added, 1): (4, 2048, 4),
    (added, 2): (4, 1024, 2),
}
TILES |= {(biased, num_rows): TILES[plain, num_rows] for num_rows in (1, 2)}


def added_arrangement(
    input,
    weight,
    residual,
    output,
    BLOCK_SIZE_M=block_size(),
    BLOCK_SIZE_N=block_size(),
    BLOCK_SIZE_K=block_size(),
):
    """As `examples.mm`, with the weight (n, k), and what is added."""
    input_arranged, weight_arranged, output_arranged = mm.arrangement(
        input, weight.permute((1, 0)), output, BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K
    )

    return (
        input_arranged,
        weight_arranged,
        residual.tile((BLOCK_SIZE_M, BLOCK_SIZE_N)),
        output_arranged,
    )


def many_added(input, weight, residual, output):
    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)

    for k in range(input.shape[0]):
        accumulator += ntl.dot(input[k], weight[k])

    output = residual + accumulator


added_kernel = ninetoothed.make(
    added_arrangement, many_added, tuple(Tensor(2) for _ in range(4)), kernel_name="added_product"
)


def joined_arrangement(up, gate, output, BLOCK_SIZE=1024):
    """Columns of a product that lie beside each other."""
    return tuple(tensor.tile((1, BLOCK_SIZE)) for tensor in (up, gate, output))


joined_kernel = ninetoothed.make(
    joined_arrangement, joined, tuple(Tensor(2) for _ in range(3)), kernel_name="joined_columns"
)


def few(application, input, scale, weight, eps, residual, output, tile=None):
    """Launch a product of few rows, with another tile than the usual one if that is given."""
    block, columns, num_warps = tile or TILES.get((application, input.shape[0]), (4, 256, 1))

    make_few(application, num_warps)(
        input,
        input[0] if scale is None else scale,
        weight,
        eps,
        residual,
        output,
        scale is not None,
        BLOCK_SIZE_N=block,
        BLOCK_SIZE_K=max(RUN, min(columns, 1 << (input.shape[1] - 1).bit_length())),
    )

    return output


def linear(input, weight, scale=None, eps=0.0, output=None, bias=None):
    """An input (m, k) times the transpose of a weight (n, k); normalised and scaled before, if wanted."""
    if output is None:
        output = input.new_empty((input.shape[0], weight.shape[0]))

    if bias is not None:
        bias = bias.expand(output.shape)

    if input.shape[0] <= FEW:
        application, residual = (plain, output) if bias is None else (biased, bias)
        return few(application, input, scale, weight.unsqueeze(0), eps, residual, output)

    if scale is not None:
        input = fused_rms_norm(input, scale, eps)

    if bias is None:
        mm.kernel(input, weight.T, output)
    else:
        added_kernel(input, weight, bias, output)

    return output


def swiglu(input, weight, scale=None, eps=0.0, output=None):
    """SwiGLU of an input (m, k), for a weight (2, n, k) of the gate and of what it gates."""
    if output is None:
        output = input.new_empty((input.shape[0], weight.shape[1]))

    if input.shape[0] <= FEW:
        return few(gated, input, scale, weight, eps, output, output)

    gate, up = linear(input, weight.flatten(0, 1), scale, eps).chunk(2, 1)
    joined_kernel(up, gate, output)

    return output


def add_linear(residual, input, weight, output=None):
    """A residual (m, n) and an input (m, k) times the transpose of a weight (n, k); in place by default."""
    output = residual if output is None else output

    if input.shape[0] <= FEW:
        return few(added, input, None, weight.unsqueeze(0), 0.0, residual, output)

    added_kernel(input, weight, residual, output)

    return output
