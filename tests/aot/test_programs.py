"""Programs in C, C++ and Rust that link the kernels: as a user builds them, with what finds mistakes too."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="needs Triton")

from ninetoothed.aot.build import Built  # noqa: E402
from tests.aot.kernels import DECLARED  # noqa: E402
from tests.aot.making import HERE, WARNINGS, built, built_of, driver, environment, needs_cc, run  # noqa: E402

pytestmark = needs_cc

PROGRAMS = HERE / "programs"

#: What is wrong in the C++ and the Rust program's second call.
REFUSED = "`{}` has "


def needs(tool: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(tool) is None, reason=f"needs {tool}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def mm(folder: Path) -> Built:
    return built("mm", folder / "mm")


@pytest.mark.parametrize("compiler", ["cc", pytest.param("clang", marks=needs("clang"))])
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


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_threads_whose_first_call_is_the_first_of_all(
    sanitizer: str, mm: Built, folder: Path
) -> None:
    program = folder / "threads"
    stub = _sanitized(sanitizer, "threads.c", mm, program, folder)
    said = run(program, env=environment(stub))
    # Each variant's binary is loaded once, whoever comes first.
    assert said.split() == ["16000", "launches,", "2", "modules"]


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_threads_that_share_a_stream_share_its_workspace(sanitizer: str, folder: Path) -> None:
    made = built_of(DECLARED["convolution"], "convolution", folder / "convolution")
    program = folder / "workspaces"
    stub = _sanitized(sanitizer, "workspaces.c", made, program, folder)
    # One for the stream of four, and one for each of the other four.
    assert run(program, env=environment(stub)) == "5 made, 0 given back\n"


def _sanitized(sanitizer: str, source: str, made: Built, program: Path, folder: Path) -> Path:
    """Compiles a program with what finds mistakes; gives the driver's folder."""
    flags = (f"-fsanitize={sanitizer}", "-g", "-O1")
    stub = driver(folder / f"driver-{sanitizer}", False, flags)
    run(
        *("cc", "-std=gnu11", *WARNINGS[1:], *flags, f"-I{made.folder}", PROGRAMS / source),
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


@needs("cmake")
def test_a_program_in_cpp_by_cmake(mm: Built, folder: Path) -> None:
    # The folder may be anywhere: it is moved after it was made.
    moved = folder / "moved elsewhere"
    shutil.copytree(mm.folder, moved)
    out = folder / "cmake"
    run("cmake", "-S", PROGRAMS, "-B", out, f"-DKERNELS={moved}")
    run("cmake", "--build", out)
    said = run(out / "program", env=environment(driver(folder / "driver")))
    assert said.startswith(
        "-6 a tensor has another element type than declared: kernel `mm`: `other`"
    )


@needs("pkg-config")
@needs("c++")
def test_a_program_in_cpp_by_pkg_config(mm: Built, folder: Path) -> None:
    where = folder / "installed"
    shutil.copytree(mm.folder, where)
    for source in where.glob("*.c"):
        run("cc", *WARNINGS, "-fPIC", "-c", source, "-o", source.with_suffix(".o"))
    run("ar", "crs", where / "libmm.a", *where.glob("*.o"))
    flags = run("pkg-config", "--cflags", "--libs", where / "mm.pc").split()
    run(
        "c++",
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        PROGRAMS / "main.cpp",
        *flags,
        "-o",
        where / "program",
    )
    said = run(where / "program", env=environment(driver(folder / "driver")))
    assert said.startswith("-6 ")


@needs("cargo")
def test_a_program_in_rust(mm: Built, folder: Path) -> None:
    crate = folder / "crate"
    (crate / "src").mkdir(parents=True)
    shutil.copy(PROGRAMS / "main.rs", crate / "src" / "main.rs")
    (crate / "Cargo.toml").write_text(
        '[package]\nname = "program"\nversion = "0.1.0"\nedition = "2021"\n'
        f'[dependencies]\nmm-kernels = {{ path = "{mm.folder / "rust"}" }}\n'
    )
    stub = environment(driver(folder / "driver"))
    run(
        "cargo", "build", "--offline", "--quiet", cwd=crate, env={**stub, "RUSTFLAGS": "-Dwarnings"}
    )
    said = run(crate / "target" / "debug" / "program", env=stub)
    assert said == ("kernel `mm`: `output` has 1 dimensions; it was declared with 2 (code -5)\n")
