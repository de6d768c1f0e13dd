"""Launches from C beside the same in Python: the variant, the grid and every byte of the arguments."""

from __future__ import annotations

import ctypes
import functools
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton", reason="needs Triton")

from ninetoothed.aot.build import Built  # noqa: E402
from tests.aot import calls  # noqa: E402
from tests.aot.kernels import PREMAKES  # noqa: E402
from tests.aot.making import Loaded, built, driver, library, needs_cc  # noqa: E402
from tests.aot.reference import has_meeting_refused, launch_of, sizes  # noqa: E402

pytestmark = needs_cc

#: Random calls of each kernel; NINETOOTHED_AOT_CALLS asks for more.
COUNT = int(os.environ.get("NINETOOTHED_AOT_CALLS", "100"))


@functools.cache
def loaded(name: str, folder: Path) -> tuple[Built, Loaded]:
    made = built(name, folder / name)
    return made, Loaded(library(made), driver(folder / "driver"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("launches")


def call_c(c: Loaded, name: str, made: Built, given: Mapping[str, Any], is_published: bool) -> int:
    """Calls one of the two interfaces with a stream of 4711."""
    unit = made.units[0]
    stream = ctypes.c_void_p(4711)
    arguments: list[Any] = []
    for parameter in unit.parameters:
        value = given.get(parameter.name)
        if parameter.kind == "tensor":
            arguments.append(value.published() if is_published else ctypes.byref(value.dlpack()))
        elif parameter.kind == "scalar":
            number = ctypes.c_double(value)
            if is_published:
                arguments.append(calls.by_address(number))
            else:
                arguments.append(number)
        elif is_published:
            arguments.append(calls.by_address(ctypes.c_int64(unit.fixed.constants[parameter.name])))
    function = f"launch_{name}" if is_published else f"{name}_launch"
    return getattr(c.library, function)(stream, *arguments)


@pytest.mark.parametrize("name", PREMAKES)
@pytest.mark.parametrize("is_published", (False, True), ids=("dlpack", "published"))
def test_a_launch_from_c_is_the_launch_from_python(
    name: str, is_published: bool, folder: Path
) -> None:
    made, c = loaded(name, folder)
    unit = made.units[0]
    # The recording driver's device has capability 9.0.
    place = next(b.edition for b in unit.binaries if b.target == "sm_90")
    edition = unit.editions[place]
    source, seen, refused = random.Random(name), set(), 0
    before_this: list[Mapping[str, Any]] = []
    for _ in range(COUNT):
        # Often one of the last calls again: what was asked of it then is not asked again.
        if before_this and source.random() < 0.3:
            given = source.choice(before_this)
        else:
            given = calls.random_call(name, unit, source)
        before_this = [given, *before_this[:2]]
        expected = launch_of(unit, edition, given)
        before = c.last().launches
        if expected is not None:
            c.sizes(sizes(expected.arguments))
        result = call_c(c, name, made, given, is_published)
        if expected is None:
            assert result == -10, (given, c.message())
            continue
        is_refused = expected.programs > 0 and has_meeting_refused(unit, edition, given)
        if is_refused and result == -7:
            assert "have not the same elements" in c.message()
            refused += 1
            continue
        if expected.programs > 2**31 - 1:
            assert result == -11, (given, c.message())
            continue
        # Not all that Python refuses C can; what it cannot it runs, and leaves no tensor.
        assert not is_refused or name in ("sdpa", "conv2d", "rope"), given
        assert result == 0, (given, c.message())
        if expected.programs == 0:
            assert c.last().launches == before
            continue
        last = c.last()
        assert last.launches == before + 1
        assert last.label() == f"<sm_90 {name} {expected.variant}>", given
        assert (last.grid, last.block, last.shared) == (expected.programs, 128, 50_000)
        assert last.stream == 4711
        for number, bytes_ in enumerate(expected.arguments):
            assert bytes(last.arguments[number])[: len(bytes_)] == bytes_, (given, number)
        seen.add(expected.variant)
    assert refused > 0 or name not in ("add", "mm", "addmm", "bmm")
    # The calls are such that each variant is launched, but for what no call fulfils: without padding
    # the rows of a convolution's input and of its output are not both multiples of 8.
    unreached = {"conv2d": {"full", "aligned"}}.get(name, set())
    assert seen == {variant.name for variant in edition.variants} - unreached
