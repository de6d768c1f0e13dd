"""Kernels of packed sequences from C: the values as the longest sequence's shape, and where each begins."""

from __future__ import annotations

import ctypes
import functools
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from tests.aot.kernels import JAGGED, Premade  # noqa: E402
from tests.aot.making import Loaded, built_of, driver, library, needs_cc  # noqa: E402
from tests.aot.reference import View, launch_of  # noqa: E402

pytestmark = needs_cc


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = tmp_path_factory.mktemp("jagged")
    built = built_of(JAGGED["jagged"], "jagged", folder / "made")
    loaded = Loaded(library(built), driver(folder / "driver"))
    loaded.built = built  # type: ignore[attr-defined]
    return loaded


def given(count: int, longest: int, size: int, **changed: Any) -> dict[str, View]:
    """A call's tensors: ``longest`` is the longest of ``count`` sequences."""
    views = {
        "input": View((count, longest, size), (0, size, 1), 0x7000_0000),
        "input.offsets": View((count + 1,), (1,), 0x7100_0000, dtype="int64"),
        "output": View((count, longest, size), (longest * size, size, 1), 0x7200_0000),
    }
    return {**views, **changed}


def launched(c: Loaded, views: dict[str, View]) -> int:
    return c.library.jagged_launch(None, *(ctypes.byref(view.dlpack()) for view in views.values()))


def test_a_launch_is_the_launch_from_python(c: Loaded) -> None:
    (unit,) = c.built.units  # type: ignore[attr-defined]
    edition = next(unit.editions[b.edition] for b in unit.binaries if b.target == "sm_90")
    source, seen = random.Random(0), set()
    for _ in range(200):
        count, longest = source.choice((0, 1, 7, 2**20)), source.choice((0, 1, 5, 16, 160))
        size = source.choice((32, 48, 64, 96, 33))
        views = given(count, longest, size)
        if source.random() < 0.3:
            views["input"] = replace(views["input"], strides=(7, 2 * size + 1, 2))
        if source.random() < 0.3:
            views["output"] = replace(views["output"], address=0x7200_0002)
        expected, before = launch_of(unit, edition, views), c.last().launches
        assert expected is not None
        assert launched(c, views) == 0, c.message()
        assert c.last().launches == before + (expected.programs > 0)
        if expected.programs:
            assert (c.last().label(), c.last().grid) == (
                f"<sm_90 jagged {expected.variant}>",
                expected.programs,
            )
            for number, bytes_ in enumerate(expected.arguments):
                assert bytes(c.last().arguments[number])[: len(bytes_)] == bytes_, views
            seen.add(expected.variant)
    assert seen == {variant.name for variant in edition.variants}


def test_the_published_interface_takes_the_offsets_too(c: Loaded) -> None:
    views, before = given(3, 20, 64), c.last().launches
    result = c.library.launch_jagged(
        ctypes.c_void_p(0), *(view.published() for view in views.values())
    )
    assert (result, c.last().launches) == (0, before + 1), c.message()
    # The address of the offsets is the second argument.
    assert launched(c, views) == 0
    assert int.from_bytes(bytes(c.last().arguments[1])[:8], "little") == 0x7100_0000


@pytest.mark.parametrize(
    "offsets, code, message",
    [
        (View((3,), (1,), 0x7100_0000, dtype="int64"), -7, "`input.offsets` has size 3 .* is 4 in"),
        (View((4,), (2,), 0x7100_0000, dtype="int64"), -7, "stride 2 .*it must be contiguous"),
        (View((4,), (1,), 0x7100_0004, dtype="int64"), -13, "no multiple of the size of int64"),
        (View((4,), (1,), 0x7100_0000, dtype="int32"), -6, "declared with int64"),
        (View((4, 1), (1, 1), 0x7100_0000, dtype="int64"), -5, "2 dimensions; .* declared with 1"),
        (View((4,), (1,), 0, dtype="int64"), -4, "`input.offsets` has elements and no address"),
    ],
)
def test_wrong_offsets_are_refused(c: Loaded, offsets: View, code: int, message: str) -> None:
    before = c.last().launches
    assert launched(c, given(3, 20, 64, **{"input.offsets": offsets})) == code
    assert re.search(message, c.message()), c.message()
    assert c.last().launches == before


def test_strides_are_given_where_dimensions_lie_before_the_sequences(tmp_path: Path) -> None:
    def premake() -> Premade:
        tensors = (
            Tensor(4, jagged_dim=2, dtype=ninetoothed.float16),
            Tensor(4, dtype=ninetoothed.float16),
        )
        module = JAGGED["jagged"]()
        arrangement = functools.partial(module[0].func, shape=(1, 1, 16, 32))  # type: ignore[attr-defined]
        return arrangement, module[1], tensors

    built = built_of(premake, "heads", tmp_path / "made")
    c = Loaded(library(built), driver(tmp_path / "driver"))
    shape = (3, 2, 20, 32)
    views = [
        View(shape, (0, 64 * 32, 32, 1), 0x7000_0000),
        View((4,), (1,), 0x7100_0000, dtype="int64"),
        View(shape, (2 * 20 * 32, 20 * 32, 32, 1), 0x7200_0000),
    ]
    given = [view.dlpack() for view in views]
    assert c.library.heads_launch(None, *map(ctypes.byref, given)) == 0, c.message()
    given[0].strides = None
    assert c.library.heads_launch(None, *map(ctypes.byref, given)) < 0
    assert "`input` has no strides, and is jagged" in c.message()
