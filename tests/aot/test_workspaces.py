"""Kernels whose programs share memory of the device's: whose it is, and when it is given back."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

pytest.importorskip("triton", reason="needs Triton")

from tests.aot.kernels import DECLARED  # noqa: E402
from tests.aot.making import Loaded, built_of, driver, library, needs_cc  # noqa: E402
from tests.aot.reference import View, launch_of  # noqa: E402

pytestmark = needs_cc

SHAPES = {"input": (1, 512, 6, 6), "other": (32, 512, 3, 3), "output": (1, 32, 4, 4)}

COUNTERS = 65536


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("workspaces")
    made = built_of(DECLARED["convolution"], "convolution", folder / "convolution")
    return made, Loaded(library(made), driver(folder / "driver"))


@pytest.fixture
def c(made) -> Iterator[Loaded]:
    _, c = made
    yield c
    c.library.nt_set_workspace(None, ctypes.c_int64(0))
    counter(c, "fake_capturing").value = 0


def counter(c: Loaded, name: str) -> ctypes.c_int:
    return ctypes.c_int.in_dll(c.driver, name)


def views(gap: int = 0) -> dict[str, View]:
    """Tensors that are contiguous, or whose rows have a gap."""
    found = {}
    for name, shape in SHAPES.items():
        strides, step = [], 1
        for dim in reversed(range(4)):
            strides.insert(0, step)
            step = step * shape[dim] + (gap if dim == 3 else 0)
        found[name] = View(shape, tuple(strides))
    return found


def call(c: Loaded, stream: int, given: dict[str, View]) -> int:
    tensors = [ctypes.byref(each.dlpack()) for each in given.values()]
    return c.library.convolution_0_launch(ctypes.c_void_p(stream), *tensors)


def test_contiguous_tensors_of_declared_sizes_are_launched_as_python_does(made, c) -> None:
    built, _ = made
    unit = built.units[0]
    edition = unit.editions[next(b.edition for b in unit.binaries if b.target == "sm_90")]
    expected = launch_of(unit, edition, views())
    assert expected.variant == "exact"
    before = counter(c, "allocations").value
    assert call(c, 5, views()) == 0, c.message()
    last = c.last()
    assert (last.label(), last.grid) == ("<sm_90 convolution exact>", expected.programs)
    assert last.early == 1
    memory = (before + 1) << 32
    found = [bytes(last.arguments[k])[: len(b)] for k, b in enumerate(expected.arguments)]
    moved = [int.from_bytes(b, "little") - memory for b in found[3:5]]
    assert sorted(moved) == [0, COUNTERS]
    assert found[:3] + found[5:] == list(expected.arguments[:3] + expected.arguments[5:])
    assert call(c, 5, views(gap=3)) == 0
    assert c.last().label() == "<sm_90 convolution contiguous>"


def test_a_stream_keeps_its_workspace(c) -> None:
    assert call(c, 11, views()) == 0
    names = ("allocations", "fills", "given_back")
    before = [counter(c, name).value for name in names]
    assert [call(c, 11, views()) for _ in range(3)] == [0, 0, 0]
    assert [counter(c, name).value for name in names] == before
    assert call(c, 12, views()) == 0
    assert [counter(c, name).value for name in names[::2]] == [before[0] + 1, before[2]]


@pytest.mark.parametrize("stream, capturing", [(21, 1), (2, 0)], ids=["captured", "of a thread"])
def test_a_launch_that_no_stream_orders_has_one_to_itself(c, stream: int, capturing: int) -> None:
    counter(c, "fake_capturing").value = capturing
    names = ("allocations", "fills", "given_back")
    before = [counter(c, name).value for name in names]
    assert [call(c, stream, views()) for _ in range(2)] == [0, 0]
    assert [counter(c, name).value for name in names] == [each + 2 for each in before]


def test_the_callers_workspace_is_taken(c) -> None:
    bytes_ = ctypes.c_int64(-1)
    given = [ctypes.byref(each.dlpack()) for each in views().values()]
    assert c.library.convolution_0_workspace_size(ctypes.byref(bytes_), *given) == 0
    assert bytes_.value > COUNTERS
    before = counter(c, "allocations").value
    c.library.nt_set_workspace(ctypes.c_void_p(0x5000_0000), bytes_)
    assert call(c, 31, views()) == 0
    found = [int.from_bytes(bytes(c.last().arguments[k])[:8], "little") for k in (3, 4)]
    assert sorted(found) == [0x5000_0000, 0x5000_0000 + COUNTERS]
    assert counter(c, "allocations").value == before
    c.library.nt_set_workspace(ctypes.c_void_p(0x5000_0000), ctypes.c_int64(bytes_.value - 1))
    assert call(c, 31, views()) == -17
    assert f"needs a workspace of {bytes_.value} bytes" in c.message()


def test_a_call_that_shares_nothing_needs_no_workspace(c) -> None:
    bytes_ = ctypes.c_int64(-1)
    given = [ctypes.byref(each.dlpack()) for each in views(gap=1).values()]
    assert c.library.convolution_0_workspace_size(ctypes.byref(bytes_), *given) == 0
    assert bytes_.value == 0
    wrong = views()
    wrong["other"] = View((1,), (1,))
    given = [ctypes.byref(each.dlpack()) for each in wrong.values()]
    assert c.library.convolution_0_workspace_size(ctypes.byref(bytes_), *given) == -5
