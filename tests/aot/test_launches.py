"""Programs in C, C++ and Rust launch what Python does: the variant, the grid and every byte of the arguments.

Each reads the same random calls of the ten kernels, and links these as a user would.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton", reason="needs Triton")

from ninetoothed.aot.build import Built  # noqa: E402
from ninetoothed.aot.unit import Unit  # noqa: E402
from ninetoothed.kernels.ahead import Edition  # noqa: E402
from tests.aot.calls import random_call  # noqa: E402
from tests.aot.kernels import PREMAKES  # noqa: E402
from tests.aot.making import HERE, WARNINGS, built, driver, environment, needs, needs_cc, run  # noqa: E402
from tests.aot.reference import DLPACK, Launch, View, has_meeting_refused, launch_of  # noqa: E402

pytestmark = needs_cc

PROGRAMS = HERE / "programs"

#: Random calls of each kernel.
COUNT = int(os.environ.get("NINETOOTHED_AOT_CALLS", "1000"))

#: How each compiler is called besides.
FLAGS = {
    "cc": ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    "clang": ("-O2",),
}

#: What is wrong with the last calls, of mm; what they give, and what is said.
WRONG: list[tuple[dict[str, View], str]] = [
    ({"output": View((64,), (1,))}, "-5 .*`output` has 1 dimensions; it was declared with 2"),
    ({"other": View((32, 48), (48, 1), dtype="float32")}, "-6 .*`other` has elements of"),
    ({"input": View((64, 32), (32, 1), address=0)}, "-4 .*`input` has elements and no address"),
    ({"input": View((64, 32), (32, 1), address=0x1001)}, "-13 .*`input` is at 0x1001"),
]


@dataclass(frozen=True)
class Call:
    """A call, and what the same one in Python launches; None where the sizes do not fit."""

    kernel: str
    given: Mapping[str, Any]
    launch: Launch | None
    is_refused: bool

    def text(self) -> str:
        """As programs/calls.c reads it."""
        tensors = [v for v in self.given.values() if isinstance(v, View)]
        numbers = [repr(v) for v in self.given.values() if not isinstance(v, View)]
        words = [self.kernel, len(tensors)]
        for view in tensors:
            words += [view.address - view.byte_offset, view.byte_offset, *DLPACK[view.dtype]]
            words += [len(view.shape), *view.shape, *view.strides]
        return " ".join(map(str, (*words, len(numbers), *numbers)))

    def recorded(self) -> str:
        """As the recording driver writes the launch."""
        assert self.launch is not None
        label = f"<sm_90 {self.kernel} {self.launch.variant}>"
        arguments = " ".join(each.hex() for each in self.launch.arguments)
        return f"{label} {self.launch.programs} 128 50000 4711 {arguments}"


def edition_of(unit: Unit) -> Edition:
    """That of the recording driver's device, of capability 9.0."""
    return next(unit.editions[b.edition] for b in unit.binaries if b.target == "sm_90")


def random_calls(name: str, unit: Unit) -> list[Call]:
    edition, source = edition_of(unit), random.Random(name)
    made: list[Call] = []
    for _ in range(COUNT):
        # Often one of the last calls again: what was asked of it then is not asked again.
        if made and source.random() < 0.3:
            made.append(source.choice(made[-3:]))
            continue
        given = random_call(name, unit, source)
        launch = launch_of(unit, edition, given)
        is_refused = bool(launch and launch.programs) and has_meeting_refused(unit, edition, given)
        made.append(Call(name, given, launch, is_refused))
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("launches")


@pytest.fixture(scope="module")
def kernels(folder: Path) -> dict[str, Built]:
    targets = ("sm_80", "sm_90", "sm_100", "gfx942")
    return {name: built(name, folder / "built" / name, targets=targets) for name in PREMAKES}


@pytest.fixture(scope="module")
def calls(kernels: dict[str, Built]) -> list[Call]:
    return [call for name, made in kernels.items() for call in random_calls(name, made.units[0])]


def in_c(folder: Path, compiler: str) -> Path:
    """A program in C, of archives; ``cc``'s finds wrong accesses of memory, too."""
    archives = archived(folder, compiler)
    includes = [f"-I{archive.parent}" for archive in archives]
    program = folder / compiler / "calls"
    sources = (*FLAGS[compiler], PROGRAMS / "calls.c", *archives)
    run(compiler, *WARNINGS, *includes, *sources, "-o", program, "-ldl", "-lpthread")
    return program


def in_cpp_by_pkg_config(folder: Path) -> Path:
    """One in C++ that asks the archives' files of pkg-config what it is to be linked with."""
    packages = [archive.parent / f"{archive.parent.name}.pc" for archive in archived(folder, "cc")]
    flags = run("pkg-config", "--cflags", "--libs", *packages).split()
    program = folder / "calls-cpp"
    warnings = ("-std=c++17", "-Wall", "-Wextra", "-Werror", *FLAGS["cc"])
    run("c++", *warnings, PROGRAMS / "calls.cpp", *flags, "-o", program)
    return program


def in_cpp_by_cmake(folder: Path) -> Path:
    """One in C++ of the sources, in folders that were moved after they were made."""
    moved, out = folder / "moved elsewhere", folder / "cmake"
    shutil.copytree(folder / "built", moved)
    run("cmake", "-S", PROGRAMS, "-B", out, f"-DKERNELS={moved}")
    run("cmake", "--build", out, "--parallel", "2")
    return out / "calls"


def in_rust(folder: Path) -> Path:
    """One in Rust of the crates beside the sources."""
    crate = folder / "crate"
    crate.mkdir()
    crates = [
        f'{name.replace("_", "-")}-kernels = {{ path = "{folder / "built" / name / "rust"}" }}'
        for name in PREMAKES
    ]
    manifest = [
        *("[package]", 'name = "calls"', 'version = "0.1.0"', 'edition = "2021"'),
        *("[[bin]]", 'name = "calls"', f'path = "{PROGRAMS / "calls.rs"}"'),
        *("[dependencies]", *crates),
    ]
    (crate / "Cargo.toml").write_text("\n".join(manifest) + "\n")
    variables = {**os.environ, "RUSTFLAGS": "-Dwarnings"}
    run("cargo", "build", "--offline", "--quiet", cwd=crate, env=variables)
    return crate / "target" / "debug" / "calls"


def archived(folder: Path, compiler: str) -> list[Path]:
    """An archive of each kernel, beside its sources."""

    def archive(name: str) -> Path:
        where = folder / compiler / name
        if not where.exists():
            shutil.copytree(folder / "built" / name, where)
            flags = (*WARNINGS, *FLAGS[compiler], "-c")
            run(compiler, *flags, *sorted(where.glob("*.c")), cwd=where)
            run("ar", "crs", where / f"lib{name}.a", *where.glob("*.o"))
        return where / f"lib{name}.a"

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(archive, PREMAKES))


def results(program: Path, calls: Sequence[Call], *arguments: str) -> tuple[list[str], list[str]]:
    """What a program says of each call, and what the driver has recorded of each launch."""
    path = program.with_suffix(".txt")
    path.write_text("".join(call.text() + "\n" for call in calls))
    recording = program.with_suffix(".recorded")
    stub = environment(driver(program.parent / "driver"))
    said = run(program, path, *arguments, env={**stub, "NT_RECORDING": str(recording)})
    return said.splitlines(), recording.read_text().splitlines()


def check(
    editions: Mapping[str, Edition],
    calls: Sequence[Call],
    said: Sequence[str],
    recorded: Sequence[str],
) -> None:
    """Each call gave what Python's does, and each variant was launched."""
    launched, launches, seen = iter(recorded), 0, set()
    assert len(said) == len(calls)
    for call, line in zip(calls, said, strict=True):
        code = int(line.split(" ", 1)[0])
        if call.launch is None:
            assert code == -10, (call, line)
        elif call.is_refused and code == -7:
            assert "have not the same elements" in line
        elif call.launch.programs > 2**31 - 1:
            assert code == -11, (call, line)
        else:
            # Not all that Python refuses C can; what it cannot it runs, and leaves no tensor.
            assert not call.is_refused or call.kernel in ("sdpa", "conv2d", "rope"), call
            assert code == 0, (call, line)
            if call.launch.programs:
                assert next(launched, "no launch") == call.recorded(), call
                launches += 1
                seen.add((call.kernel, call.launch.variant))
    assert len(recorded) == launches > len(calls) // 3
    assert {"add", "mm", "addmm", "bmm"} <= {call.kernel for call in calls if call.is_refused}
    variants = {(name, v.name) for name, edition in editions.items() for v in edition.variants}
    # But for what no call fulfils: without padding the rows of a convolution's input and of its output
    # are not both multiples of 8; and none has a size or an index that 32 bits do not hold.
    wider = {(name, "plain") for name, variant in variants if variant == "valued"}
    assert seen == variants - wider - {("conv2d", "full"), ("conv2d", "aligned")}


@needs_cc
@pytest.mark.parametrize(
    ("program", "is_published"),
    [
        (lambda folder: in_c(folder, "cc"), False),
        (lambda folder: in_c(folder, "cc"), True),
        pytest.param(lambda folder: in_c(folder, "clang"), False, marks=needs("clang")),
        pytest.param(in_cpp_by_pkg_config, False, marks=[needs("pkg-config"), needs("c++")]),
        pytest.param(in_cpp_by_cmake, False, marks=[needs("cmake"), needs("c++")]),
        pytest.param(in_rust, False, marks=needs("cargo")),
    ],
    ids=["c", "c-published", "c-clang", "cpp-pkg-config", "cpp-cmake", "rust"],
)
def test_a_program_launches_what_python_does(
    program: Callable[[Path], Path],
    is_published: bool,
    folder: Path,
    kernels: dict[str, Built],
    calls: list[Call],
) -> None:
    path = program(folder)
    editions = {name: edition_of(made.units[0]) for name, made in kernels.items()}
    if is_published:
        check(editions, calls, *results(path, calls, "published"))
        return
    product = {"input": View((64, 32), (32, 1)), "other": View((32, 48), (48, 1))}
    product["output"] = View((64, 48), (48, 1))
    wrong = [Call("mm", {**product, **changes}, None, False) for changes, _ in WRONG]
    said, recorded = results(path, [*calls, *wrong])
    check(editions, calls, said[: len(calls)], recorded)
    for line, (_, text) in zip(said[len(calls) :], WRONG, strict=True):
        assert re.match(text, line), line
