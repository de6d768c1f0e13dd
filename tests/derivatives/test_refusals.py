"""What has no derived backward is refused, with the line and the reason."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

import ninetoothed
import ninetoothed.language as ntl
from examples import mm
from ninetoothed import Tensor, like
from ninetoothed.errors import ApplicationError, ArgumentError
from tests.derivatives.operators import blocks, made, matrices, rows
from tests.derivatives.test_rows import arrange_row_of_blocks


def carried(input, output):
    maximum = ntl.full((1, 1), float("-inf"), dtype=ntl.float32)
    for k in range(input.shape[0]):
        maximum = ntl.maximum(maximum, ntl.max(input[k]))
    output[0] = maximum


def read_while_summed(input, output):
    total = ntl.zeros((1, 4), dtype=ntl.float32)
    for k in range(input.shape[0]):
        total += input[k]
        output[k] = total


def left_behind(input, output):
    last = input[0]
    for k in range(input.shape[0]):
        last = input[k] * 2
    output[0] = last


def repeated(input, output):
    x = input
    while ntl.max(x) < 1:
        x = x * 2
    output = x  # noqa: F841


def branching(input, output):
    if ntl.max(input) > 0:
        output = input * 2
    else:
        output = input  # noqa: F841


def sorting(input, output):
    output = ntl.sort(input)  # noqa: F841


def adding_atomically(input, output):
    ntl.atomic_add(output.data_ptr() + output.offsets(), input)


def read_by_a_pointer(input, output):
    output = ntl.load(input.data_ptr() + output.offsets())  # noqa: F841


def stored_twice(input, output):
    output = input * 2
    output = input * 3  # noqa: F841


def reading_its_output(input, output):
    output = input * 2
    output = output * output  # noqa: F841


def remainder(input, output):
    output = input % 2.0  # noqa: F841


def several_ways(input, output):
    for k in range(input.shape[0]):
        output[k] = input[k] + input[input.shape[0] - 1 - k]


def maximum_and_place(input, output):
    value, place = ntl.max(input, axis=1, return_indices=True)
    output = value[:, None] + place  # noqa: F841


def stored_over(input, output):
    for k in range(input.shape[0]):
        output[0] = input[k] * 2


def stored_in_pairs(input, output):
    for k in range(input.shape[0]):
        output[k // 2] = input[k]


def stored_over_after(input, output):
    for k in range(input.shape[0]):
        output[k] = input[k]
    output[0] = input[0] * 2


def read_in_every_round(input, output):
    for i in range(output.shape[0]):
        total = ntl.zeros((1, 4), dtype=ntl.float32)
        for j in range(input.shape[0]):
            total += input[j] * i
        output[i] = total


def read_in_pairs(input, output):
    for k in range(input.shape[0]):
        j = k // 2
        output[k] = input[j]


def compared_with_what_was_there(input, output):
    output = ntl.where(output > 0, input, 0.0)


def bits(input, output):
    output = ntl.cast(ntl.cast(input, ntl.int32, bitcast=True), ntl.float32, bitcast=True)  # noqa: F841


REFUSED = [
    (blocks, compared_with_what_was_there, "changed in place", "ntl.where(output > 0"),
    (blocks, bits, "a value's bits", "ntl.cast(input, ntl.int32, bitcast=True)"),
    (rows, repeated, "while", "while ntl.max(x) < 1:"),
    (rows, branching, "known when the kernel runs", "if ntl.max(input) > 0:"),
    (blocks, sorting, "`ntl.sort` has no derivative", "output = ntl.sort(input)"),
    (blocks, adding_atomically, "an atomic operation", "ntl.atomic_add("),
    (blocks, read_by_a_pointer, "`input` is read by a pointer", "ntl.load(input.data_ptr()"),
    (blocks, stored_twice, "stored to more than once", "output = input * 3"),
    (blocks, reading_its_output, "read after it was stored to", "output = output * output"),
    (blocks, remainder, "`a % b` has no derivative", "output = input % 2.0"),
    (rows, maximum_and_place, "several results", "value, place ="),
    (arrange_row_of_blocks, carried, "`maximum` is carried from one round", "ntl.maximum(maximum"),
    (arrange_row_of_blocks, read_while_summed, "`total` is carried", "output[k] = total|total +="),
    (arrange_row_of_blocks, left_behind, "the last round", "for k in range"),
    (
        arrange_row_of_blocks,
        stored_over,
        "`k` may store to the same tile of `output`",
        "output[0] =",
    ),
    (arrange_row_of_blocks, stored_in_pairs, "only the last is left", "output[k // 2] ="),
    (arrange_row_of_blocks, stored_over_after, "more than once", "output[0] = input[0] * 2"),
    (arrange_row_of_blocks, read_in_every_round, "loop over `i` read the same", "input[j] * i"),
    (arrange_row_of_blocks, read_in_pairs, "read the same tile of `input`", "input[j]"),
    (arrange_row_of_blocks, several_ways, "several ways", "output[k] = input[k] + input"),
]


@pytest.mark.parametrize(("arrangement", "application", "reason", "line"), REFUSED)
def test_the_line_and_the_reason(arrangement, application, reason, line):
    tensors = (Tensor(1), Tensor(1)) if arrangement is blocks else matrices(2)
    if arrangement is arrange_row_of_blocks:
        tensors = (Tensor(2), Tensor(2))

    with pytest.raises(ApplicationError, match=reason) as caught:
        made(application, arrangement, tensors)

    assert caught.value.location is not None, caught.value
    assert any(part in str(caught.value) for part in line.split("|")), caught.value


def copied(input, output):
    output = input * 1.0  # noqa: F841


def test_overlapping_windows():
    def arrangement(input, output):
        return input.tile((4,), strides=(2,), floor_mode=True), output.tile((4,))

    with pytest.raises(ApplicationError, match="of `input`, its windows overlap"):
        made(copied, arrangement)


def total_and_scaled(x, y, total, output):
    found = ntl.sum(x * x)
    total = found  # noqa: F841
    output = y * found  # noqa: F841


def every_program_a_total(x, y, total, output):
    y, output = y.tile((1, 4)), output.tile((1, 4))
    x = x.tile((1, -1)).expand((-1, output.shape[1]))
    return x, y, total.tile((1, 1)).expand((-1, output.shape[1])), output


TOTALS = {"total": ((1, 1), "x"), "output": like("y")}


def test_an_output_that_several_programs_store_to():
    tensors = tuple(Tensor(2) for _ in range(4))
    with pytest.raises(ApplicationError, match="of `total`, several programs.*`hidden`") as caught:
        made(total_and_scaled, every_program_a_total, tensors, TOTALS)
    assert "total = found" in str(caught.value)


def test_a_hidden_output_that_several_programs_store_to_has_no_gradient():
    tensors = tuple(Tensor(2) for _ in range(4))
    operator = made(total_and_scaled, every_program_a_total, tensors, TOTALS, hidden=("total",))
    x = torch.ones(1, 3, requires_grad=True)

    operator(x, torch.ones(1, 10)).sum().backward()

    assert x.grad.tolist() == [[20.0, 20.0, 20.0]]


def test_an_output_whose_windows_overlap():
    def arrangement(input, output):
        return input.tile((4,)), output.tile((4,), strides=(2,), floor_mode=True)

    with pytest.raises(ApplicationError, match="of `output`, its windows overlap"):
        made(copied, arrangement)


def test_what_no_program_reads_is_not_left_unwritten():
    def arrangement(input, output):
        return input[::2].tile((4,)), output.tile((4,))

    input = Tensor(1)
    with pytest.raises(ArgumentError, match="unwritten where no program reads"):
        made(
            copied,
            arrangement,
            (input, Tensor(1)),
            {"output": (((input.shape[0] + 1) // 2,), "input")},
        )


def row_by_row(x, y, output):
    found = arrange_row_of_blocks(x, y)
    return *found, output.tile((1, 1))


def product(x, y, output):
    total = ntl.full((1, 1), 0.0, dtype=ntl.float64)
    for k in range(x.shape[0]):
        total += ntl.sum(x[k] * y[k])
    output = total  # noqa: F841


def product_of(y, first, **options):
    outputs = {"output": ((first.shape[0], 1), first.dtype)}
    return made(product, row_by_row, (first, y, Tensor(2)), outputs, **options)


def test_a_loop_over_another_tensors_tiles_is_named_and_how_it_derives():
    with pytest.raises(ArgumentError, match="`y` .*loop over `k`.*shape.*`wrt`") as caught:
        product_of(Tensor(2), Tensor(2))
    assert "for k in range(x.shape[0]):" in str(caught.value)

    x, y = (torch.randn(2, 8, dtype=torch.float64, requires_grad=True) for _ in range(2))
    first = Tensor(2)
    as_many = Tensor(shape=(None, first.shape[1]))
    assert gradcheck(product_of(as_many, first), (x, y))
    of_one = product_of(Tensor(2), Tensor(2), wrt=("x",))
    assert gradcheck(lambda x: of_one(x, y.detach()), (x,))


def test_rows_that_are_loaded_values():
    from examples.more.indices.embedding import application, arrangement, tensors

    _, table, _ = tensors
    with pytest.raises(ApplicationError, match="`table`.*atomically"):
        made(application, arrangement, tensors, {"output": ((1, table.shape[1]), "table")})


def test_attention_carries_a_maximum():
    from examples.sdpa import kernel

    with pytest.raises(ApplicationError, match="is carried from one round"):
        kernel.backward(wrt=("query",), constants={"is_causal": False})


def test_a_constant_that_calls_may_give_is_asked_for():
    def application(input, power, output):
        if power == 2:
            output = input * input  # noqa: F841
        else:
            output = input * input * input  # noqa: F841

    power = Tensor(0, constexpr=True, value=2)
    tensors = (Tensor(1), power, Tensor(1))

    def arrangement(input, power, output):
        return input.tile((16,)), power, output.tile((16,))

    with pytest.raises(ApplicationError, match=r"each call may give.*constants={'power': \.\.\.}"):
        made(application, arrangement, tensors)
    x = torch.randn(5, requires_grad=True)
    made(application, arrangement, tensors, constants={"power": 3})(x).sum().backward()
    torch.testing.assert_close(x.grad, 3 * x.detach() ** 2)


def test_what_is_changed_in_place():
    def doubled(input):
        input *= 2

    kernel = ninetoothed.make(blocks, doubled, (Tensor(1),))
    with pytest.raises(ArgumentError, match="in place"):
        ninetoothed.op("derived::doubled", kernel, {}, backward="derive")
    with pytest.raises(ArgumentError, match="has no input 'input'"):
        kernel.backward(wrt=("input",))


def test_a_refused_derivation_is_refused_again_alike():
    """So no operators are left of the gradients that there were."""

    def arrangement(bias, input, other, output):
        first, second, tile = mm.arrangement(input, other, output)
        return bias.tile((mm.BLOCK_SIZE_M, mm.BLOCK_SIZE_N)), first, second, tile

    def application(bias, input, other, output):
        accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
        for k in range(input.shape[0]):
            accumulator += ntl.dot(input[k], other[k])
        output = accumulator * accumulator + bias  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, tuple(Tensor(2) for _ in range(4)))
    for _ in range(2):
        with pytest.raises(ApplicationError, match="a loop sums is needed again"):
            ninetoothed.op(
                "derived::refused_twice", kernel, {"output": like("bias")}, backward="derive"
            )


def test_names_of_inputs():
    kernel = ninetoothed.make(blocks, copied, (Tensor(1), Tensor(1)))
    with pytest.raises(ArgumentError, match="no input 'inputs'.*input"):
        kernel.backward(wrt=("inputs",))
    with pytest.raises(ArgumentError, match="each named once"):
        kernel.backward(wrt=("input", "input"))
    with pytest.raises(ArgumentError, match="`wrt` and `atomic` go with"):
        made(copied, backward=None, wrt=("input",))
    with pytest.raises(ArgumentError, match='"derive" or None'):
        made(copied, backward="derived")
    with pytest.raises(ArgumentError, match="saved for it"):
        made(copied, saved=("input",))


def test_an_input_that_no_output_depends_on_has_no_gradient():
    def application(input, steps, output):
        output = input * ntl.floor(steps)  # noqa: F841

    kernel = ninetoothed.make(blocks, application, (Tensor(1), Tensor(1), Tensor(1)))
    with pytest.raises(ArgumentError, match="changes where `steps` does"):
        kernel.backward(wrt=("steps",))
    x, steps = (torch.randn(5, requires_grad=True) for _ in range(2))
    made(application, outputs={"output": like("input")})(x, steps).sum().backward()
    assert steps.grad is None
    torch.testing.assert_close(x.grad, steps.detach().floor())


@pytest.mark.parametrize(
    ("sizes", "lines"), [((8, 16, 16), "rows of this one, which are 8"), ((16, 8, 16), "columns")]
)
def test_a_product_over_too_little(sizes, lines):
    """The line is the user's, not one of the backward that would be made."""
    m, n, k = sizes

    def arrangement(a, b, c):
        c = c.tile((m, n))
        a = a.tile((m, k)).tile((1, -1)).expand((-1, c.shape[1]))
        b = b.tile((k, n)).tile((-1, 1)).expand((c.shape[0], -1))
        a.dtype, b.dtype = a.dtype.squeeze(0), b.dtype.squeeze(1)
        return a, b, c

    def application(a, b, c):
        total = ntl.zeros(c.shape, dtype=ntl.float32)
        for i in range(a.shape[0]):
            total += ntl.dot(a[i], b[i])
        c = total  # noqa: F841

    a, b, c = tensors = Tensor(2), Tensor(2), Tensor(2)
    with pytest.raises(ApplicationError, match=f"No backward.*{lines}.*takes 16") as caught:
        made(application, arrangement, tensors, {"c": ((a.shape[0], b.shape[1]), "a")})

    assert caught.value.location.file == __file__
    assert "total += ntl.dot(a[i], b[i])" in str(caught.value)


def scaled_by(x, scale, output):
    output = x * scale  # noqa: F841


def test_a_refused_second_derivative_points_at_what_the_first_was_made_of():
    def arrangement(x, scale, output):
        x, output = x.tile((1, -1)), output.tile((1, -1))
        return x, scale.unsqueeze(0).tile((1, -1)).expand((output.shape[0], -1)), output

    operator = made(scaled_by, arrangement, (Tensor(2), Tensor(1), Tensor(2)), atomic=True)
    x, scale = torch.ones(2, 5, requires_grad=True), torch.ones(5, requires_grad=True)
    result = operator(x, scale).square().sum()
    (gradient,) = torch.autograd.grad(result, scale, create_graph=True)

    with pytest.raises(ApplicationError, match="an atomic operation") as caught:
        gradient.sum().backward()
    assert caught.value.location.file == __file__
    assert "output = x * scale" in str(caught.value)


def test_what_a_call_makes_wrong_points_at_what_the_backward_was_made_of():
    def application(x, other, output):
        output = ntl.exp(x) + ntl.sum(other)  # noqa: F841

    x, other = torch.ones(5, requires_grad=True), torch.ones(3)
    result = made(application, outputs={"output": like("other")})(x, other)

    with pytest.raises(ArgumentError, match="not the same elements") as caught:
        result.sum().backward()
    assert "output = ntl.exp(x) + ntl.sum(other)" in str(caught.value)


def test_a_number_that_has_no_gradient_is_named_at_the_application():
    tensors = Tensor(1), Tensor(0), Tensor(1)
    operator = made(scaled_by, tensors=tensors)
    result = operator(torch.ones(5), torch.ones((), requires_grad=True))

    with pytest.raises(ArgumentError, match=r"`scale` is a number") as caught:
        result.sum().backward()
    assert "def scaled_by(x, scale, output):" in str(caught.value)
