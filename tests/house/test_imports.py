"""What importing the package may pull in and leave behind: nothing. Each test is a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "paddle", "triton", "sympy", "matplotlib")


def run(program: str, home: Path, *, bytecode: bool = False) -> subprocess.CompletedProcess[str]:
    """Run ``program`` in a fresh interpreter whose home, cache and temporary folders are ``home``."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NINETOOTHED_", "XDG_"))
    }
    environment |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "TMPDIR": str(home)}
    environment["PYTHONPATH"] = str(REPOSITORY)
    # Bytecode is Python's own cache and not of interest, except where a test watches it.
    environment["PYTHONDONTWRITEBYTECODE"] = "" if bytecode else "1"
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )


def modules_after(program: str, home: Path) -> set[str]:
    """The modules, by full name, that are loaded once ``program`` has run."""
    result = run(f"{program}\nimport json, sys; print(json.dumps(sorted(sys.modules)))", home)
    assert result.returncode == 0, result.stderr
    return set(json.loads(result.stdout.splitlines()[-1]))


def heavy(modules: set[str]) -> set[str]:
    """Those of ``modules`` that belong to a framework, a compiler or a plotting library."""
    return {name for name in modules if name.split(".")[0] in HEAVY}


@pytest.mark.parametrize(
    "program",
    [
        "import ninetoothed",
        "import ninetoothed; ninetoothed.Tensor(2).tile((16, 16)); ninetoothed.block_size()",
        "import ninetoothed.language as ntl; ntl.float32, ntl.exp",
        "import ninetoothed.debugging",
        "import ninetoothed.visualization",
        "import ninetoothed; ninetoothed.visualization.visualize_arrangement("
        "lambda x: x.tile((2,)), (ninetoothed.Tensor(1),)).html",
    ],
    ids=["package", "tensors", "language", "debugging", "visualization", "page"],
)
def test_import_pulls_in_no_framework_and_no_compiler(program: str, tmp_path: Path) -> None:
    assert heavy(modules_after(program, tmp_path)) == set()


def test_the_heavy_libraries_would_be_seen(tmp_path: Path) -> None:
    """The check above can fail: what is imported is reported."""
    (tmp_path / "sympy.py").touch()

    assert "sympy" in heavy(modules_after("import ninetoothed, sympy", tmp_path))


def test_frontends_and_backends_are_registered_without_their_libraries(tmp_path: Path) -> None:
    program = (
        "from ninetoothed import plugins\n"
        "for plugin in plugins.listing():\n"
        "    assert not plugin.why, plugin\n"
        "frontends = {name for plugin in plugins.listing() for name in plugin.frontends}\n"
        "backends = {name for plugin in plugins.listing() for name in plugin.backends}\n"
        "assert 'torch' in frontends and {'triton', 'numpy'} <= backends\n"
    )
    assert heavy(modules_after(program, tmp_path)) == set()


def test_import_writes_no_file(tmp_path: Path) -> None:
    result = run("import ninetoothed, ninetoothed.language", tmp_path)

    assert result.returncode == 0, result.stderr
    assert list(tmp_path.rglob("*")) == []


def test_import_prints_nothing(tmp_path: Path) -> None:
    result = run("import ninetoothed, ninetoothed.language", tmp_path)

    assert (result.stdout, result.stderr) == ("", "")


@pytest.mark.parametrize("missing", HEAVY)
def test_import_works_where_a_library_is_absent(missing: str, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        f"sys.modules[{missing!r}] = None  # importing it raises ImportError\n"
        "import ninetoothed, ninetoothed.language as ntl\n"
        "ninetoothed.Tensor(1).tile((16,)); ntl.float16; ntl.sum\n"
    )
    result = run(program, tmp_path)

    assert result.returncode == 0, result.stderr


def test_public_names_are_all_there(tmp_path: Path) -> None:
    names = (
        "Tensor Symbol block_size make jit eval subs bfloat16 float16 float32 float64 int8 int16 "
        "int32 int64 uint8 uint16 uint32 uint64 bool float8_e4m3 float8_e5m2"
    ).split()
    program = f"import ninetoothed\nfor name in {names}: getattr(ninetoothed, name)"
    result = run(program, tmp_path)

    assert result.returncode == 0, result.stderr


def test_a_name_that_does_not_exist_is_an_attribute_error_that_suggests(tmp_path: Path) -> None:
    result = run("import ninetoothed; ninetoothed.Tenso", tmp_path)

    assert "AttributeError" in result.stderr
    assert "Tensor" in result.stderr


def test_a_function_of_the_language_is_evaluated_where_nothing_else_is_loaded(
    tmp_path: Path,
) -> None:
    result = run("import ninetoothed.language as ntl; print(ntl.cdiv(7, 2))", tmp_path)

    assert result.stdout == "4\n", result.stderr


def test_package_is_typed() -> None:
    assert (REPOSITORY / "ninetoothed" / "py.typed").is_file()
