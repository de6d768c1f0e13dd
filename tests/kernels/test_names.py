"""Names that a user may choose and that a generated source has another use for."""

from __future__ import annotations

import keyword
import linecache

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ArgumentError, ArrangementError


def whole(*tensors):
    return tuple(tensor.tile((-1,)) if tensor.ndim else tensor for tensor in tensors)


def function(text, name):
    """The function of this name that a text defines."""
    file = f"<{name}: {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace = {"ntl": ntl}
    exec(compile(text, file, "exec"), namespace)
    return namespace[name]


def called(kernel, *numbers):
    """What a kernel makes of the numbers from -2 to 2, and whether a device's compiler takes it."""
    x, y = torch.arange(5, dtype=torch.int32) - 2, torch.zeros(5, dtype=torch.int32)
    kernel(x, *numbers, y)
    assert "ptx" in kernel.compile(x, *numbers, y, target=("cuda", 90)).asm
    return y.tolist()


@pytest.mark.parametrize(
    "lines, expected",
    [
        ("floor_remainder = x % 3\n y = floor_remainder % 2", [1, 0, 0, 1, 0]),
        ("floor_quotient = x // 3\n y = floor_quotient // 2", [-1, -1, 0, 0, 0]),
        ("both = x > 0\n y = ntl.where(both and x < 2 and both, 1, 0)", [0, 0, 0, 1, 0]),
        ("either = x > 0 or x < -1\n y = ntl.where(either or x == 0, 1, 0)", [1, 0, 1, 1, 1]),
        ("flip_existing = ntl.flip(x)\n y = ntl.flip(flip_existing)", [-2, -1, 0, 1, 2]),
        ("exclude_lowest = x + 1\n y = exclude_lowest + ntl.max(x)", [1, 2, 3, 4, 5]),
        ("tl = x + 1\n y = tl * 2", [-2, 0, 2, 4, 6]),
        ("triton = x + 1\n y = triton * 2", [-2, 0, 2, 4, 6]),
        ("libdevice = x + 1\n y = libdevice * 2", [-2, 0, 2, 4, 6]),
    ],
)
def test_a_variable_may_have_the_name_of_a_function_that_the_source_calls(lines, expected):
    application = function(f"def application(x, y):\n {lines}\n", "application")
    assert called(ninetoothed.make(whole, application, (Tensor(1), Tensor(1)))) == expected


@pytest.mark.parametrize("name", ["both", "é", "tl", "triton", "_", "__", "ﬁ"])
def test_a_function_may_have_any_name(name):
    ascii_name = "fi" if name == "ﬁ" else name
    application = function(f"def {name}(x, y):\n y = x > 0 and x < 2\n", ascii_name)
    kernel = ninetoothed.make(whole, application, (Tensor(1), Tensor(1)))
    assert called(kernel) == [0, 0, 0, 1, 0]


@pytest.mark.parametrize("name", ["class", "None", "é", "tl", "triton", "_", "a b", "", 3])
def test_a_kernel_name_is_one_that_every_compiler_takes(name):
    application = function("def application(x, y):\n y = x\n", "application")
    tensors = (Tensor(1), Tensor(1))
    if name == "":
        # It stands for the application's.
        name = " "
    with pytest.raises(ArgumentError, match="kernel_name must be an identifier of letters"):
        ninetoothed.make(whole, application, tensors, kernel_name=name)


@pytest.mark.parametrize("name", ["tl", "triton", "gl", "libdevice"])
def test_what_a_call_gives_is_not_called_as_a_module_of_the_source(name):
    application = function(f"def application(x, {name}, y):\n y = x + {name}\n", "application")
    with pytest.raises(ArgumentError, match=f"`{name}` is what a generated source calls"):
        ninetoothed.make(whole, application, (Tensor(1), Tensor(0), Tensor(1)))
    block = Symbol(name, constexpr=True)
    application = function("def application(x, y):\n y = x\n", "application")
    with pytest.raises(ArgumentError, match=f"`{name}` is what a generated source calls"):
        ninetoothed.make(
            lambda *tensors: tuple(t.tile((block,)) for t in tensors),
            application,
            (Tensor(1), Tensor(1)),
        )


@pytest.mark.parametrize("name", keyword.kwlist)
def test_a_symbol_is_no_word_of_pythons(name):
    with pytest.raises(ArrangementError, match=f"`{name}` is a word of Python's"):
        Symbol(name, constexpr=True)


def test_a_symbols_name_is_what_python_reads():
    block = Symbol("ﬁ", constexpr=True)
    application = function("def application(x, y):\n y = x + 1\n", "application")
    kernel = ninetoothed.make(
        lambda *tensors: tuple(t.tile((block,)) for t in tensors), application, (Tensor(1),) * 2
    )
    x, y = torch.arange(3.0), torch.zeros(3)
    kernel(x, y, ﬁ=4)
    assert y.tolist() == [1, 2, 3]
    assert "ptx" in kernel.compile(x, y, fi=4, target=("cuda", 90)).asm


def test_a_symbol_and_a_parameter_may_be_called_self():
    def application(x, self):
        self = x + 1  # noqa: F841

    block = Symbol("self", constexpr=True)
    x, y = torch.arange(3.0), torch.zeros(3)
    ninetoothed.make(whole, application, (Tensor(1), Tensor(1)))(x=x, self=y)
    assert y.tolist() == [1, 2, 3]

    application = function("def application(x, y):\n y = x + 2\n", "application")
    kernel = ninetoothed.make(
        lambda *tensors: tuple(t.tile((block,)) for t in tensors), application, (Tensor(1),) * 2
    )
    for _ in range(2):
        kernel(x, y, self=4)
    assert y.tolist() == [2, 3, 4]

    outputs = {"y": ninetoothed.like("x")}
    operator = ninetoothed.op("ninetoothed_tests::called_self", kernel, outputs=outputs)
    assert operator(x, self=4).tolist() == [2, 3, 4]
