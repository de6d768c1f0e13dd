"""Programs in C that link kernels: of every source without a warning, of many threads with what finds mistakes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="needs Triton")

from ninetoothed.aot.build import Built  # noqa: E402
from tests.aot.kernels import DECLARED  # noqa: E402
from tests.aot.making import (  # noqa: E402
    HERE,
    WARNINGS,
    built,
    built_of,
    driver,
    environment,
    needs,
    needs_cc,
    run,
)

pytestmark = needs_cc

PROGRAMS = HERE / "programs"

COMPILERS = pytest.mark.parametrize("compiler", ["cc", pytest.param("clang", marks=needs("clang"))])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def mm(folder: Path) -> Built:
    return built("mm", folder / "mm")


@COMPILERS
@pytest.mark.parametrize("is_portable", [False, True], ids=["incbin", "portable"])
def test_every_source_compiles_without_a_warning(
    compiler: str, is_portable: bool, folder: Path
) -> None:
    made = built("sdpa", folder / f"{compiler}{is_portable}", is_portable=is_portable)
    binaries = [file for file in made.files if file.endswith((".cubin", ".ptx"))]
    assert bool(binaries) != is_portable
    for source in made.folder.glob("*.c"):
        # From another folder: nothing but the source's own place tells where the binaries are.
        run(compiler, *WARNINGS, "-O2", "-c", source, "-o", folder / "out.o", cwd="/")


@COMPILERS
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_threads_whose_first_call_is_the_first_of_all(
    sanitizer: str, compiler: str, mm: Built, folder: Path
) -> None:
    program = folder / "threads"
    stub = _sanitized(compiler, sanitizer, "threads.c", mm, program, folder)
    said = run(program, env=environment(stub))
    # Each variant's binary is loaded once, whoever comes first.
    assert said.split() == ["16000", "launches,", "2", "modules"]


@COMPILERS
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_threads_that_share_a_stream_share_its_workspace(
    sanitizer: str, compiler: str, folder: Path
) -> None:
    made = built_of(DECLARED["convolution"], "convolution", folder / "convolution")
    program = folder / "workspaces"
    stub = _sanitized(compiler, sanitizer, "workspaces.c", made, program, folder)
    # One for the stream of four, and one for each of the other four.
    assert run(program, env=environment(stub)) == "5 made, 0 given back\n"


def _sanitized(
    compiler: str, sanitizer: str, source: str, made: Built, program: Path, folder: Path
) -> Path:
    """Compiles a program with what finds mistakes; gives the driver's folder."""
    flags = (f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-g", "-O1")
    empty = folder / "empty.c"
    empty.write_text("int main(void) { return 0; }\n")
    command = [compiler, *flags, str(empty), "-o", str(folder / "empty")]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip(f"needs the libraries of {compiler}'s -fsanitize={sanitizer}")
    stub = driver(folder / f"driver-{compiler}-{sanitizer}", False, flags, compiler)
    run(
        *(compiler, "-std=gnu11", *WARNINGS[1:], *flags, f"-I{made.folder}", PROGRAMS / source),
        *(*made.folder.glob("*.c"), stub / "libcuda.so.1", "-o", program, "-ldl", "-lpthread"),
    )
    return stub


def test_a_program_written_against_the_published_interface(folder: Path) -> None:
    made = built("addmm", folder / "addmm")
    program = folder / "published"
    run(
        *("cc", *WARNINGS, f"-I{made.folder}", PROGRAMS / "published.c", *made.folder.glob("*.c")),
        *("-o", program, "-ldl", "-lpthread"),
    )
    assert run(program, env=environment(driver(folder / "driver"))) == "0\n"
