"""`ninetoothed.op` on PyTorch: what its own checks of operators, compilers and transformations say."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from torch.fx.experimental.proxy_tensor import make_fx

import ninetoothed
from ninetoothed import Symbol, Tensor, like
from ninetoothed.errors import ArgumentError

NUMBERS = itertools.count()


def elementwise(*tensors):
    return tuple(tensor.tile((16,)) if tensor.ndim else tensor for tensor in tensors)


def cubed(input, output):
    output = input * input * input  # noqa: F841


def cubed_backward(input, gradient, output):
    output = 3 * input * input * gradient  # noqa: F841


def doubled(input):
    input *= 2


def both(input, one, two):
    one = input + 1  # noqa: F841
    two = input * 2  # noqa: F841


def made(application, outputs, **options):
    """An operator of an element-wise application, under a name of its own."""
    count = application.__code__.co_argcount
    kernel = ninetoothed.make(elementwise, application, tuple(Tensor(1) for _ in range(count)))
    return ninetoothed.op(
        f"tests::{application.__name__}_{next(NUMBERS)}", kernel, outputs, **options
    )


@pytest.fixture
def cube():
    backward = made(
        cubed_backward,
        {"output": like("input")},
        backward=lambda h, x, g: (6 * x * g * h, 3 * x * x * h),
        saved=("input", "gradient"),
    )
    return made(
        cubed,
        {"output": like("input")},
        backward=lambda gradient, x: backward(x, gradient),
        saved=("input",),
    )


@pytest.fixture
def product():
    """A product of a column and a row, whose output is like none of its inputs."""
    rows = Symbol("ROWS", constexpr=True)

    def arrangement(column, row, output):
        output = output.tile((rows, -1))
        return (
            column.tile((rows,)).unsqueeze(1),
            row.tile((-1,)).unsqueeze(0).expand((output.shape[0], 1)),
            output,
        )

    def application(column, row, output):
        output = column[:, None] * row[None, :]  # noqa: F841

    column, row = Tensor(1), Tensor(1)
    kernel = ninetoothed.make(arrangement, application, (column, row, Tensor(2)))
    outputs = {"output": ((column.shape[0], row.shape[0]), column.dtype)}
    return ninetoothed.op(f"tests::product_{next(NUMBERS)}", kernel, outputs)


def test_it_makes_the_output(product):
    column, row = torch.randn(5), torch.randn(7)

    assert torch.equal(product(column, row, ROWS=4), column[:, None] * row)


def test_what_is_given_as_a_constant_is_no_argument():
    kernel = ninetoothed.make(
        lambda x, y: (
            x.tile((Symbol("B", constexpr=True),)),
            y.tile((Symbol("B", constexpr=True),)),
        ),
        cubed,
        (Tensor(1), Tensor(1)),
    )
    name = f"tests::constant_{next(NUMBERS)}"
    operator = ninetoothed.op(name, kernel, {"output": like("input")}, constants={"B": 4})

    assert operator(torch.full((9,), 2.0)).tolist() == [8.0] * 9


def test_several_outputs_are_a_tuple():
    one, two = made(both, {"one": like("input"), "two": like("input")})(torch.ones(3))

    assert one.tolist() == two.tolist() == [2, 2, 2]


def test_what_is_no_output_is_changed_in_place():
    x = torch.ones(3)

    assert made(doubled, {})(x) is None
    assert x.tolist() == [2, 2, 2]


@pytest.mark.parametrize("shape", [(20,), (0,)])
@pytest.mark.parametrize("is_differentiated", [False, True])
def test_opcheck(cube, shape, is_differentiated):
    x = torch.randn(shape, dtype=torch.float64, requires_grad=is_differentiated)

    results = torch.library.opcheck(registered(cube), (x,))

    assert set(results.values()) == {"SUCCESS"}


def registered(operator):
    """What PyTorch has registered under an operator's name."""
    namespace, _, name = operator.definition.name.partition("::")
    return getattr(getattr(torch.ops, namespace), name).default


def test_opcheck_of_one_in_place():
    operator = made(doubled, {})

    results = torch.library.opcheck(registered(operator), (torch.randn(20),))

    assert set(results.values()) == {"SUCCESS"}


def test_opcheck_of_an_output_of_another_shape(product):
    results = torch.library.opcheck(registered(product), (torch.randn(5), torch.randn(7), 4))

    assert set(results.values()) == {"SUCCESS"}


def test_gradients(cube):
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)

    assert torch.autograd.gradcheck(cube, (x,))
    assert torch.autograd.gradgradcheck(cube, (x,))


def test_gradients_of_strided_views(cube):
    x = torch.randn(10, dtype=torch.float64, requires_grad=True)

    assert torch.autograd.gradcheck(lambda x: cube(x[::2]), (x,))


def test_the_first_call_may_be_compiled(cube):
    compiled = torch.compile(lambda x: cube(x) + 1, fullgraph=True, backend="aot_eager")
    x = torch.randn(5, requires_grad=True)

    y = compiled(x)
    y.sum().backward()

    torch.testing.assert_close(y, x**3 + 1)
    torch.testing.assert_close(x.grad, 3 * x.detach() ** 2)


def test_sizes_that_change_are_compiled_once(product):
    counter = CompileCounter()
    compiled = torch.compile(
        lambda x, y: product(x, y, 4), fullgraph=True, backend=counter, dynamic=True
    )
    for size in (3, 5, 9):
        x, y = torch.randn(size), torch.randn(7)
        assert torch.equal(compiled(x, y), x[:, None] * y)

    assert counter.frame_count == 1


def test_inductor(cube):
    compiled = torch.compile(lambda x: cube(x * 2) + 1, fullgraph=True)
    x = torch.randn(33)

    torch.testing.assert_close(compiled(x), (2 * x) ** 3 + 1)


def test_an_exported_program_has_it(cube, tmp_path):
    class Module(torch.nn.Module):
        def forward(self, x):
            return cube(x) + 1

    size = torch.export.Dim("size", min=2)
    program = torch.export.export(Module(), (torch.randn(5),), dynamic_shapes=({0: size},))
    torch.export.save(program, tmp_path / "program.pt2")
    again = torch.export.load(tmp_path / "program.pt2").module()
    x = torch.randn(9)

    torch.testing.assert_close(again(x), x**3 + 1)


def test_functional_transformations(cube):
    x = torch.randn(3, 4)

    gradient = torch.func.grad(lambda x: cube(x).sum())

    torch.testing.assert_close(gradient(x[0]), 3 * x[0] ** 2)
    torch.testing.assert_close(torch.vmap(gradient)(x), 3 * x**2)
    torch.testing.assert_close(
        torch.func.jacrev(torch.func.jacrev(lambda x: cube(x).sum()))(x[0]), torch.diag(6 * x[0])
    )


def test_vmap_in_two_nests(cube):
    x = torch.randn(2, 3, 4)

    torch.testing.assert_close(torch.vmap(torch.vmap(cube))(x), x**3)
    torch.testing.assert_close(torch.vmap(cube, in_dims=1)(x[0]), x[0].T ** 3)


def test_make_fx_keeps_it(cube):
    graph = make_fx(lambda x: cube(x) + 1)(torch.randn(5))

    assert cube.definition.name.partition("::")[2] in graph.code


def test_checkpointing(cube):
    x = torch.randn(5, requires_grad=True)
    torch.utils.checkpoint.checkpoint(cube, x, use_reentrant=False).sum().backward()

    torch.testing.assert_close(x.grad, 3 * x.detach() ** 2)


def test_a_launch_is_one_break_of_a_graph():
    kernel = ninetoothed.make(elementwise, cubed, (Tensor(1), Tensor(1)))

    def function(x):
        output = torch.empty_like(x)
        kernel(x, output)
        return output + 1

    x = torch.randn(20)
    function(x)

    assert torch._dynamo.explain(function)(x).graph_break_count == 1


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("cube", {"output": like("input")}), "'namespace::name', not 'cube'"),
        ((None, {"output": like("input")}), "'namespace::name', not None"),
        (("t::x", ["output"]), "`outputs` says of each by its name, not \\['output'\\]"),
        (
            ("t::x", {"output": like("input")}, 3),
            '`backward` is a function, "derive" or None, not 3',
        ),
        (("t::x", {"outptu": like("input")}), "no tensor of kernel.*Did you mean.*output"),
        (("t::x", {"input": like("output")}), "does not store to `input`"),
        (("t::x", {"output": like("inptu")}), "no tensor among the inputs.*input"),
        (("t::x", {"output": torch.float16}), "must be `like"),
        (("t::x", {"output": ((Symbol("n"),), "input")}), "neither a size of an input"),
        (("t::x", {"output": ((3,), "nothing")}), "element type 'nothing'"),
        (("t::x", {}, lambda g: g), "no `backward`"),
        (("t::x", {"output": like("input")}, lambda g: g, ("inptu",)), "`saved` has 'inptu'"),
        (("t::x", {"output": like("input")}, None, (), {"B": 1}), "'B', which is no constant"),
    ],
)
def test_mistakes_are_named(arguments, words):
    kernel = ninetoothed.make(elementwise, cubed, (Tensor(1), Tensor(1)))

    with pytest.raises(ArgumentError, match=f"(?s){words}"):
        ninetoothed.op(arguments[0], kernel, *arguments[1:])


def squared_apart(input, square, twice):
    square = input * input  # noqa: F841
    twice = input * 2  # noqa: F841


@pytest.fixture
def squared():
    """A square whose backward needs an output that calls do not return."""
    return made(
        squared_apart,
        {"square": like("input"), "twice": like("input")},
        backward=lambda gradient, twice: gradient * twice,
        saved=("twice",),
        hidden=("twice",),
    )


@pytest.mark.parametrize(
    "way",
    [
        lambda f: f,
        lambda f: torch.compile(f, fullgraph=True, backend="aot_eager"),
        lambda f: lambda x: torch.vmap(f)(x[None])[0],
    ],
    ids=["eager", "compiled", "vmap"],
)
def test_what_is_hidden_is_saved_and_not_returned(squared, way):
    x = torch.randn(5, requires_grad=True)
    way(squared)(x).sum().backward()

    assert torch.equal(squared(x), x * x)
    assert torch.equal(x.grad, 2 * x)
    assert torch.equal(torch.func.grad(lambda x: squared(x).sum())(x.detach()), 2 * x)


def test_a_second_derivative_does_not_lose_what_is_hidden(squared):
    x = torch.randn(5, requires_grad=True)
    (gradient,) = torch.autograd.grad(squared(x).sum(), x, create_graph=True)

    with pytest.raises(ArgumentError, match="not given the gradients of what is hidden: twice"):
        torch.autograd.grad(gradient.sum(), x)
    with pytest.raises(ArgumentError, match="is hidden: twice"):
        torch.func.grad(lambda x: torch.func.grad(lambda x: squared(x).sum())(x).sum())(x.detach())


def test_a_number_that_requires_grad_is_named():
    def scaled(input, factor, output):
        output = input * factor  # noqa: F841

    def arrangement(input, factor, output):
        return input.tile((4,)), factor, output.tile((4,))

    kernel = ninetoothed.make(arrangement, scaled, (Tensor(1), Tensor(0), Tensor(1)))
    outputs = {"output": like("input")}
    operator = ninetoothed.op("t::scaled_by_a_number", kernel, outputs, backward="derive")
    x, factor = torch.ones(3), torch.tensor(2.5)

    with pytest.raises(ArgumentError, match="`factor` is a number.*no gradient"):
        operator(x, factor.clone().requires_grad_()).sum().backward()
    with pytest.raises(ArgumentError, match="`factor` is a number"):
        torch.func.jvp(lambda f: operator(x, f), (factor,), (factor,))
    x.requires_grad_()
    operator(x, factor).sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 2.5))


def test_a_derived_backward_loads_what_is_hidden():
    outputs = {"square": like("input"), "twice": like("input")}
    operator = made(squared_apart, outputs, backward="derive", hidden=("square",))
    x = torch.randn(5, requires_grad=True)
    operator(x).sum().backward()

    assert torch.equal(operator(x), 2 * x)
    assert torch.equal(x.grad, torch.full((5,), 2.0))


@pytest.mark.parametrize(
    ("hidden", "words"),
    [(("squar",), "no output.*Did you mean.*square"), (("square", "twice"), "all outputs are")],
)
def test_what_cannot_be_hidden_is_named(hidden, words):
    with pytest.raises(ArgumentError, match=words):
        made(squared_apart, {"square": like("input"), "twice": like("input")}, hidden=hidden)


def test_the_dtype_of_tensors_that_were_declared_without_is_that_of_all_of_them():
    """It is None, whichever is meant: a table's was that of the indices before it, in silence."""
    x, other = Tensor(1), Tensor(1)

    def added(input, other, output):
        output = input + other  # noqa: F841

    kernel = ninetoothed.make(
        lambda *tensors: tuple(tensor.tile((16,)) for tensor in tensors),
        added,
        (x, other, Tensor(1)),
    )
    operator = ninetoothed.op(
        f"tests::one_type_{next(NUMBERS)}", kernel, {"output": ((x.shape[0],), other.dtype)}
    )
    whole, halves = torch.arange(5), torch.full((5,), 0.5)
    torch.testing.assert_close(operator(halves, halves), torch.ones(5))
    for function in (operator, torch.vmap(lambda *given: operator(*given))):
        batch = (whole, halves) if function is operator else (whole[None], halves[None])
        with pytest.raises(
            ArgumentError, match=r"`input` .*int64, `other` .*float32\. Give the name"
        ):
            function(*batch)
    named = ninetoothed.op(
        f"tests::one_type_{next(NUMBERS)}", kernel, {"output": ((x.shape[0],), "other")}
    )
    torch.testing.assert_close(named(whole, halves), whole + halves)


def test_what_is_no_kernel_is_named():
    with pytest.raises(ArgumentError, match="takes a kernel, as `make` returns it, not <function"):
        ninetoothed.op("t::x", cubed, {"output": like("input")})


@pytest.mark.parametrize(
    "input, words",
    [
        (lambda: torch.ones(6).to_sparse(), "`input` is sparse"),
        (lambda: torch.ones(6, dtype=torch.complex64).conj(), "`input` is a conjugated view"),
    ],
)
def test_an_input_of_which_no_output_can_be_made_is_named(cube, input, words):
    with pytest.raises(ArgumentError, match=words):
        cube(input())


def test_a_call_with_too_many_arguments_says_of_what(cube):
    with pytest.raises(TypeError, match=r"operator 'tests::cubed_\d+'\(\) takes 1 positional"):
        cube(torch.ones(6), 3)


def test_a_wrong_number_of_gradients_is_named():
    operator = made(cubed, {"output": like("input")}, backward=lambda g: (g, g))

    with pytest.raises(ArgumentError, match="gave 2 gradients, and there are 1"):
        operator(torch.randn(3, requires_grad=True)).sum().backward()


def test_a_name_is_taken_once(cube):
    with pytest.raises(ArgumentError, match="give this one another name"):
        ninetoothed.op(cube.definition.name, cube.kernel, {"output": like("input")})


def test_a_call_without_tensors_is_named(cube):
    with pytest.raises(ArgumentError, match="takes at least one tensor; it got float"):
        cube(1.0)


def test_an_operator_whose_inputs_are_given_by_name_is_compiled_whole():
    kernel = ninetoothed.make(elementwise, cubed, (Tensor(1), Tensor(1)))
    operator = ninetoothed.op(
        "tests::by_name", kernel, {"output": like("input")}, backward="derive"
    )
    x = torch.randn(37)

    compiled = torch.compile(lambda x: operator(input=x), backend="eager", fullgraph=True)
    assert torch.equal(compiled(x), operator(x))


@pytest.mark.parametrize("name", ["tests::class", "import::x", "tests::é", "é::x", "x", "a::b::c"])
def test_a_name_that_is_none_of_an_operator(name):
    kernel = ninetoothed.make(elementwise, cubed, (Tensor(1), Tensor(1)))
    with pytest.raises(ArgumentError, match="an operator's name is 'namespace::name'"):
        ninetoothed.op(name, kernel, {"output": like("input")})
