"""Files and folders stay small enough to be read: no long file, no full folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDERS = ("ninetoothed", "tests", "benchmarks", "examples", "plugins", "docs")
MOST_LINES = 450
MOST_FILES = 20


def files() -> list[Path]:
    return [
        path
        for folder in FOLDERS
        for path in (REPOSITORY / folder).rglob("*")
        if path.is_file() and path.parent.name != "__pycache__" and not path.name.startswith(".")
    ]


def test_no_module_is_too_long():
    lines = {
        str(path.relative_to(REPOSITORY)): path.read_text(encoding="utf-8").count("\n")
        for path in files()
        if path.suffix == ".py"
    }
    assert len(lines) > 500
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}


def test_no_folder_is_too_full():
    counts = Counter(str(path.parent.relative_to(REPOSITORY)) for path in files())
    assert {folder: count for folder, count in counts.items() if count > MOST_FILES} == {}
