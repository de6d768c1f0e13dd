"""Hints change nothing, checks check, prints print, loops loop; widening; the running program."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import ninetoothed.language as ntl
from ninetoothed.backends.numpy.values import context
from ninetoothed.backends.numpy.values.tile import Tile
from ninetoothed.errors import NineToothedError
from ninetoothed.language import dtypes


@pytest.fixture
def launch():
    with context.launch((4, 3, 2)):
        context.set_program((2, 1, 0))
        yield


def _tile(*values) -> Tile:
    return Tile(np.array(values, np.int32), dtypes.int32)


@pytest.mark.parametrize("hint", [ntl.multiple_of, ntl.max_contiguous, ntl.max_constancy], ids=str)
def test_a_hint_is_its_value(hint):
    x = _tile(1, 2)

    assert hint(x, 8) is x and hint(x, [8]) is x


def test_an_assumption_that_does_not_hold_is_an_error():
    ntl.assume(_tile(1) > 0)
    with pytest.raises(NineToothedError, match=r"ntl\.assume"):
        ntl.assume(_tile(1) > 1)


def test_a_device_assertion_tells_the_program(launch):
    ntl.device_assert(_tile(1, 2) > 0)
    ntl.device_assert(_tile(1, 2) > 1, mask=_tile(0, 1) > 0)
    with pytest.raises(NineToothedError, match=r"program \(2, 1, 0\): too small"):
        ntl.device_assert(_tile(1, 2) > 1, "too small")


def test_a_static_assertion():
    ntl.static_assert(True)
    with pytest.raises(NineToothedError, match="not so"):
        ntl.static_assert(1 > 2, "not so")


def test_prints(launch, capsys):
    ntl.device_print("x:", _tile(10, 11))
    ntl.device_print("x:", _tile(10, 11), hex=True)
    ntl.static_print("a", 1, sep="-")

    lines = capsys.readouterr().out.splitlines()
    assert lines == ["(2, 1, 0) x: [10 11]", "(2, 1, 0) x: ['0xa' '0xb']", "a-1"]


@pytest.mark.parametrize(
    "loop, expected",
    [
        (lambda: ntl.range(3), [0, 1, 2]),
        (lambda: ntl.range(1, _tile(4).reshape(()), num_stages=3), [1, 2, 3]),
        (lambda: ntl.range(0, 7, step=3, loop_unroll_factor=2), [0, 3, 6]),
        (lambda: ntl.static_range(2, 4), [2, 3]),
    ],
)
def test_loops(loop, expected):
    assert list(loop()) == expected


def test_compile_time_values_are_values():
    assert ntl.constexpr(5) == 5
    assert ntl.condition(True) is True
    assert ntl.dtype("fp32") is ntl.float32
    assert ntl.str_to_ty("i1", None) is ntl.int1
    assert ntl.cdiv(7, 2) == 4 and isinstance(ntl.cdiv(7, 2), int)
    assert ntl.TRITON_MAX_TENSOR_NUMEL == 1048576
    assert not ntl.target_info.is_cuda() and not ntl.target_info.cuda_capability_geq(9, 0)


def test_shapes_are_padded_to_powers_of_two():
    x = _tile(1)

    assert ntl.zeros((3, 5), ntl.float32).shape == (4, 8)
    assert ntl.full((7,), 1, ntl.int8).shape == (8,)
    assert ntl.broadcast_to(x, (3,)).shape == (4,)
    assert ntl.reshape(ntl.arange(0, 16), (3, 4)).shape == (4, 4)
    assert x.broadcast_to(6).shape == (8,)
    assert ntl.view(ntl.arange(0, 16), 3, 4).shape == (4, 4)


def test_programs_have_an_index_only_inside_a_launch(launch):
    assert int(ntl.program_id(0)) == 2 and int(ntl.num_programs(2)) == 2
    with pytest.raises(NineToothedError, match="axis 3"):
        ntl.program_id(3)


def test_a_launch_belongs_to_its_thread(launch):
    failures = []

    def elsewhere():
        try:
            ntl.program_id(0)
        except NineToothedError as error:
            failures.append(str(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()

    assert len(failures) == 1 and "only inside a running kernel" in failures[0]


def test_launches_nest(launch):
    with context.launch((1, 1, 1)):
        assert int(ntl.program_id(0)) == 0 and int(ntl.num_programs(0)) == 1

    assert int(ntl.program_id(0)) == 2
