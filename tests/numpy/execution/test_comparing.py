"""`debugging.check(against=…)`: each element that NumPy stored is what a second backend stores."""

from __future__ import annotations

import ctypes
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.backends.base import Backend, Plan
from ninetoothed.debugging import check
from ninetoothed.errors import DeviceError, DifferingStoreError
from ninetoothed.plugins import backend_named

WRONG = 1e3


class Second(Backend):
    """Runs kernels on NumPy too, and then spoils some elements of what it was given.

    Args:
        spoiled: the place of an address among a plan's values, and the places of float32 elements there.
    """

    name = "second"
    device_kinds = ("cpu", "toy")

    def __init__(self, spoiled=()):
        self.spoiled = dict(spoiled)
        self.addresses = []

    def plan(self, kernel, call, values=None):
        plan = backend_named("numpy").plan(kernel, call)

        def run(stream, *values):
            self.addresses.append(values)
            with check():
                plan.run(stream, *values)
            for place, elements in self.spoiled.items():
                for element in elements:
                    ctypes.c_float.from_address(values[place] + 4 * element).value = WRONG

        return Plan(run)


def blocks(*tensors):
    return tuple(t.tile((4,)) if t.ndim else t for t in tensors)


def two_stores(x, y, z):
    y = x * 2
    z = x + 1  # noqa: F841


def of_two(x):
    kernel = ninetoothed.make(blocks, two_stores, (Tensor(1), Tensor(1), Tensor(1)))
    y, z = (torch.full_like(x, float("nan")) for _ in range(2))
    kernel(x, y, z)
    torch.testing.assert_close((y, z), (x * 2, x + 1))
    return y, z


def test_a_backend_that_agrees_is_not_told_of():
    second = Second()
    with check(against=second):
        of_two(torch.arange(10.0))
    assert len(second.addresses) == 1


def test_the_first_store_that_differs_is_named_with_its_line_program_and_index():
    with check(against=Second({1: [6, 9], 2: [5]})), pytest.raises(DifferingStoreError) as caught:
        of_two(torch.arange(10.0))

    message = caught.value.message
    assert (
        "program (1,) stores 12.0 to `y` at (6,), and the second backend has 1000.0 there"
        in message
    )
    assert "Of the 4 elements that this store leaves, 1 differ; of all of `y`, 2 do" in message
    first = inspect.getsourcelines(two_stores)[1]
    assert (caught.value.location.file, caught.value.location.line) == (__file__, first + 1)


def test_of_two_stores_to_an_element_the_last_is_named():
    def application(x, y):
        y = x
        y += 1

    kernel = ninetoothed.make(blocks, application, (Tensor(1), Tensor(1)))
    x, y = torch.arange(8.0), torch.empty(8)
    with check(against=Second({1: [0]})), pytest.raises(DifferingStoreError) as caught:
        kernel(x, y)
    assert caught.value.location.line == inspect.getsourcelines(application)[1] + 2


def test_an_element_that_only_the_second_backend_stores_to_is_told_of():
    with (
        check(against=Second({0: [3]})),
        pytest.raises(
            DifferingStoreError, match=r"stores 1000.0 to `x` at \(3,\), and NumPy nothing"
        ),
    ):
        of_two(torch.arange(10.0))


def test_floats_may_differ_by_as_much_as_is_said():
    x = torch.arange(10.0)
    with check(against=Second({1: [6]}), rtol=100):
        of_two(x)
    with check(against=Second({1: [6]}), rtol=0, atol=10), pytest.raises(DifferingStoreError):
        of_two(x)


def test_nan_is_nan():
    with check(against=Second()):
        kernel = ninetoothed.make(blocks, two_stores, (Tensor(1), Tensor(1), Tensor(1)))
        x = torch.full((3,), float("nan"))
        kernel(x, torch.empty(3), torch.empty(3))


def test_arguments_in_one_memory_are_so_in_the_copies():
    """One in place, and two views of one buffer; each is as far from a multiple of 256 as it was."""
    second = Second()
    buffer = torch.arange(20.0)
    kernel = ninetoothed.make(blocks, two_stores, (Tensor(1), Tensor(1), Tensor(1)))
    with check(against=second):
        kernel(buffer[:5], buffer[:5], buffer[7:12])
    assert buffer.tolist() == [0, 2, 4, 6, 8, 5, 6, 1, 3, 5, 7, 9, *range(12, 20)]
    ((x, y, z),) = second.addresses
    assert x == y != buffer.data_ptr()
    assert (x % 256, z % 256) == (buffer.data_ptr() % 256, (buffer.data_ptr() + 28) % 256)


def test_atomics_scalars_jagged_and_bfloat16_are_compared():
    def application(x, factor, y):
        y = x * factor  # noqa: F841

    def arrangement(x, factor, y):
        return x.tile((1, 2, -1)), factor, y.tile((1, 2, -1))

    tensors = (Tensor(3, jagged_dim=1), Tensor(0), Tensor(3, jagged_dim=1))
    kernel = ninetoothed.make(arrangement, application, tensors)
    x = torch.nested.nested_tensor(
        [torch.ones(n, 4, dtype=torch.bfloat16) for n in (3, 0, 5)], layout=torch.jagged
    )
    y = torch.nested.nested_tensor_from_jagged(torch.zeros_like(x.values()), x.offsets())
    second = Second()
    with check(against=second):
        kernel(x, 3, y)
    assert y.values().unique().tolist() == [3.0]
    assert len(second.addresses[0]) == 5

    def counted(x, counts):
        ntl.atomic_add(counts.source[x], 1)

    kernel = ninetoothed.make(lambda x, c: (x.tile((4,)), c), counted, (Tensor(1), Tensor(1)))
    counts = torch.zeros(3, dtype=torch.int32)
    with check(against=Second()):
        kernel(torch.tensor([0, 2, 2, 1, 2]), counts)
    assert counts.tolist() == [1, 1, 3]


def test_a_kind_of_device_is_another_way_to_say_it(monkeypatch):
    import ninetoothed.plugins

    second = Second({2: [0]})
    monkeypatch.setattr(ninetoothed.plugins, "backend_for", lambda kind: {"toy": second}[kind])
    context = check(against="toy")
    monkeypatch.undo()
    with context, pytest.raises(DifferingStoreError, match="program \\(0,\\) stores 1.0 to `z`"):
        of_two(torch.arange(10.0))


def test_a_device_that_is_not_there_is_said():
    if torch.cuda.is_available():
        pytest.skip("needs a machine without one")
    with check(against="cuda"), pytest.raises(DeviceError):
        of_two(torch.arange(10.0))
    with pytest.raises(DeviceError, match="No backend serves devices of kind 'abacus'"):
        check(against="abacus")


_WITH_THE_INTERPRETER = """
from tests.examples.interpreter import Interpreter

import torch
from examples import layer_norm, mm, sdpa
from ninetoothed.debugging import check

with check(against=Interpreter(True)):
    x, w = torch.randn(5, 70), torch.randn(70)
    torch.testing.assert_close(mm.mm(x, x.T), x @ x.T)
    layer_norm.layer_norm(x, w, w)
    sdpa.sdpa(*(torch.randn(1, 2, 21, 16) for _ in range(3)))
print("compared")
"""


def test_triton_s_interpreter_may_be_the_second_backend():
    pytest.importorskip("triton")
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", _WITH_THE_INTERPRETER],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "compared\n", done.stderr


def test_it_ends_with_the_context():
    with check(against=Second({1: [0]})):
        pass
    of_two(torch.arange(10.0))
    with check():
        of_two(torch.arange(10.0))


@pytest.mark.parametrize("backend", ["cpu", backend_named("numpy")], ids=["kind", "backend"])
def test_numpy_is_not_compared_with_itself(backend):
    with pytest.raises(DeviceError, match=r"On 'cpu' .* compare with another one"):
        check(against=backend)
