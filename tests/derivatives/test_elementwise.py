"""Derived backwards of element-wise programs: every rule against differences, programs against autograd."""

from __future__ import annotations

import linecache

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.language.derivatives import RULES
from tests.derivatives.operators import blocks, made

#: Where a function has a derivative, and is no constant.
RANGES = {"acosh": (1.1, 3.0), "acos asin atanh": (-0.9, 0.9), "log log2 log10 log1p": (0.1, 3.0)}
RANGES |= {"sqrt sqrt_rn rsqrt cbrt pow": (0.2, 3.0)}
#: Those that programs below have, and those that take float32 alone and share a rule with another.
CHOSEN = {"where", "clamp", "neg", "div", "max_constancy", "max_contiguous", "multiple_of"}
CHOSEN |= {"sqrt_rn", "div_rn"}
UNARY = [n for n, rule in RULES.items() if len(rule) == 1 and n not in CHOSEN]
BINARY = [n for n, rule in RULES.items() if len(rule) == 2 and n not in CHOSEN]


def function_named(name):
    if name.startswith("libdevice."):
        return getattr(ntl.libdevice, name.partition(".")[2])
    return getattr(ntl, name)


def numbers(name, seed):
    plain = name.rpartition(".")[2]
    low, high = next((r for names, r in RANGES.items() if plain in names.split()), (-2.0, 2.0))
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(21, dtype=torch.float64, generator=generator) * (high - low) + low
    return x.requires_grad_()


@pytest.mark.parametrize("name", UNARY)
def test_every_rule_of_one_operand(name):
    function = function_named(name)

    def application(a, output):
        output = function(a)  # noqa: F841

    assert gradcheck(made(application), (numbers(name, 1),))


@pytest.mark.parametrize("name", BINARY)
def test_every_rule_of_two_operands(name):
    function = function_named(name)

    def application(a, b, output):
        output = function(a, b)  # noqa: F841

    assert gradcheck(made(application), (numbers(name, 1), numbers(name, 2)))


def chosen(a, b, c, output):
    output = ntl.where(a > b, ntl.clamp(a, -1.0, 1.0) / c, -b) + ntl.fma(a, b, c)  # noqa: F841


def silu(a, output):
    output = a * ntl.sigmoid(a)  # noqa: F841


def gelu(a, output):
    output = 0.5 * a * (1 + ntl.erf(a * 0.7071067811865476))  # noqa: F841


def assigned_again(a, b, output):
    x = a
    x = x * b
    x *= a
    x = x - b
    output = x * x  # noqa: F841


def as_floats(a, b, output):
    output = float(a) * float(b) * float(a)  # noqa: F841


@pytest.mark.parametrize(
    ("application", "count"), [(chosen, 3), (silu, 1), (gelu, 1), (as_floats, 2)]
)
def test_programs_twice(application, count):
    inputs = tuple(numbers("add", seed) for seed in range(count))
    operator = made(application)

    assert gradcheck(operator, inputs)
    assert gradgradcheck(operator, inputs, fast_mode=True)


def test_a_variable_that_is_assigned_again_has_each_of_its_values():
    assert gradcheck(made(assigned_again), (numbers("add", 1), numbers("add", 2)))


def test_equal_operands_share_a_gradient_as_in_torch():
    def application(a, b, output):
        output = ntl.maximum(a, b) + ntl.minimum(a, b) * 3  # noqa: F841

    ours = [torch.tensor([1.0, 2.0, 3.0, float("nan")], requires_grad=True) for _ in range(2)]
    theirs = [each.detach().clone().requires_grad_() for each in ours]
    made(application)(*ours).sum().backward()
    (torch.maximum(*theirs) + torch.minimum(*theirs) * 3).sum().backward()

    for one, other in zip(ours, theirs):
        torch.testing.assert_close(one.grad[:3], other.grad[:3])


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_what_is_beside_nan_has_the_whole_gradient_as_in_torch(name):
    function = getattr(ntl, name)

    def application(a, b, output):
        output = function(a, b)  # noqa: F841

    nan = float("nan")
    ours = [torch.tensor(each, requires_grad=True) for each in ([nan, 1.0, nan], [2.0, nan, nan])]
    theirs = [each.detach().clone().requires_grad_() for each in ours]
    made(application)(*ours).sum().backward()
    {"maximum": torch.fmax, "minimum": torch.fmin}[name](*theirs).sum().backward()

    for one, other in zip(ours, theirs):
        torch.testing.assert_close(one.grad, other.grad)


def test_numbers_are_given_again_and_have_no_gradient():
    def application(a, factor, output):
        output = a * a * factor  # noqa: F841

    operator = made(application, tensors=(Tensor(1), Tensor(0), Tensor(1)))
    x = numbers("add", 1)
    operator(x, 3.0).sum().backward()

    torch.testing.assert_close(x.grad, 6 * x.detach())


def test_gradients_of_expanded_empty_and_strided_tensors():
    operator = made(silu)
    for x in (torch.randn(0), torch.randn(40)[::2], torch.randn(()).expand(17)):
        x = x.requires_grad_()
        operator(x).sum().backward()
        y = x.detach().clone().requires_grad_()
        torch.nn.functional.silu(y).sum().backward()
        torch.testing.assert_close(x.grad, y.grad)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_of_narrow_floats_are_computed_in_float32(dtype):
    def silu(a, output):
        x = ntl.cast(a, ntl.float32)
        output = x * ntl.sigmoid(x)  # noqa: F841

    x = torch.linspace(-4, 4, 101, dtype=dtype).requires_grad_()
    made(silu)(x).sum().backward()
    y = x.detach().double().requires_grad_()
    torch.nn.functional.silu(y).sum().backward()

    torch.testing.assert_close(x.grad.double(), y.grad, rtol=torch.finfo(dtype).eps, atol=1e-3)


def test_a_backward_is_a_kernel_like_any_other():
    kernel = ninetoothed.make(blocks, silu, (Tensor(1), Tensor(1)), kernel_name="silu")
    backward = kernel.backward(wrt=("a",))
    # As PyTorch's Inductor does once it has compiled.
    linecache.clearcache()

    assert backward.declaration.call_names == ("a", "output_gradient", "a_gradient")
    assert "sigmoid" in str(backward.program)
    assert "def silu_backward" in backward.source
    x, gradient = torch.randn(37), torch.randn(37)
    found = torch.full_like(x, float("nan"))
    backward(x, gradient, found)
    y = x.clone().requires_grad_()
    torch.nn.functional.silu(y).backward(gradient)
    torch.testing.assert_close(found, y.grad)
    assert backward.backward(wrt=("output_gradient",)).declaration.call_names[0] == "a"


def test_what_is_left_out_of_wrt_has_no_gradient_of_the_gradient_either():
    def application(input, weight, output):
        output = input * input * weight  # noqa: F841

    operator = made(application, wrt=("input",))
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    w = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(operator(x, w).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x, create_graph=True)
    second.square().sum().backward()
    (wanted,) = torch.autograd.grad((2 * x * w.detach()).square().sum(), x, create_graph=True)

    assert w.grad is None
    torch.testing.assert_close(second, wanted)
    torch.testing.assert_close(x.grad, torch.autograd.grad(wanted.square().sum(), x)[0])
