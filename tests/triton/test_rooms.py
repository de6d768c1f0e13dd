"""Which folder of the backend may know which: checked over all imports, lazy and type-only ones too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ninetoothed.backends.triton

ROOT = Path(ninetoothed.backends.triton.__file__).parent
NAME = "ninetoothed.backends.triton"

#: In the order in which a kernel meets them: each knows those before it, but for what is said below.
ROOMS = ("specialization", "analysis", "ir", "printers", "options", "planning")

#: What comes after a configuration is chosen, and need not know how.
LAST = ("compiler", "runtime")


def imported(file: Path) -> Iterator[str]:
    """The backend's modules that a file imports, below its name."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(NAME):
            for alias in node.names:
                yield f"{node.module}.{alias.name}".removeprefix(NAME).strip(".")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith(NAME):
                    yield alias.name.removeprefix(NAME).strip(".")


def known(room: str) -> set[str]:
    """The folders that a folder imports from, itself apart."""
    found = {m.partition(".")[0] for file in (ROOT / room).glob("*.py") for m in imported(file)}
    return {each for each in found if (ROOT / each).is_dir()} - {room}


@pytest.mark.parametrize("place", range(len(ROOMS) - 1))
def test_a_room_knows_none_of_the_rooms_after_it(place: int) -> None:
    assert not known(ROOMS[place]) & set(ROOMS[place + 1 :])


@pytest.mark.parametrize("room", LAST)
def test_compiler_and_runtime_know_no_option(room: str) -> None:
    assert not known(room) & {"options", "planning"}


def test_options_do_not_know_one_another() -> None:
    for file in (ROOT / "options").glob("*.py"):
        if file.name != "__init__.py":
            others = {m for m in imported(file) if m.startswith("options")}
            assert all(m.startswith("options.option.") for m in others), file.name


def test_only_the_pipeline_in_gluon_asks_a_printer() -> None:
    """Whether a program has a translation it finds out by translating it."""
    asking = {
        file.name
        for file in (ROOT / "options").glob("*.py")
        if any(m.startswith("printers") for m in imported(file))
    }
    assert asking == {"tma_pipeline.py"}
