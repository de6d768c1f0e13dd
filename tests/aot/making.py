"""Folders of C sources, built with binaries that are only labels, and libraries and programs of them."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ninetoothed.aot import compiling
from ninetoothed.aot.build import Built, build
from ninetoothed.backends.triton.runtime.launch_record import packed
from ninetoothed.errors import DeviceError
from ninetoothed.kernels.ahead import Image, TensorMap, Variant
from tests.aot.kernels import PREMAKES

HERE = Path(__file__).parent

WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Werror"]

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler, called cc")


def needs(tool: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not _answers(tool), reason=f"needs {tool}")


@functools.cache
def _answers(tool: str) -> bool:
    """Whether a tool is there and runs: rustup's `cargo` does not where no toolchain is chosen."""
    if shutil.which(tool) is None:
        return False
    return subprocess.run([tool, "--version"], capture_output=True, check=False).returncode == 0


class _Labelling:
    """The backend, but each binary says what it is: compiling is tested elsewhere."""

    def __init__(self, backend: Any, too_large: Sequence[tuple[str, str]] = ()) -> None:
        self._backend, self._too_large = backend, too_large

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def images(self, variant: Variant, target: str, with_text: bool) -> list[Image]:
        if (target, variant.name) in self._too_large:
            raise DeviceError(f"{target} has no room for {variant.name}")
        data = label(target, variant)
        is_specific = target in ("sm_90", "sm_100", "sm_120")
        maps = tuple(tensor_map(a.type) for a in variant.arguments if a.described is not None)
        further = maps, variant.work.is_persistent, variant.work.is_dependent
        made = [Image(target, data, variant.work.name, is_specific, 128, 50_000, 2, *further)]
        if with_text and not is_specific:
            ptx = target.replace("sm", "ptx")
            made.append(Image(ptx, label(ptx, variant), variant.work.name, False, 128, 50_000, 2))
        return made


def tensor_map(type_: str) -> TensorMap:
    """What a compiled kernel could want of a descriptor: the whole tile."""
    extents = re.search(r"\[([\d,]+)\]", type_)
    assert extents is not None
    return TensorMap(6, 2, 3, tuple(map(int, extents[1].split(","))))


def label(target: str, variant: Variant) -> bytes:
    """A binary of the recording driver's: what it is, and how many bytes each of its arguments has."""
    sizes = [128 if a.described else len(packed(a.type, 0)) for a in variant.arguments]
    # Two more addresses are Triton's own.
    numbers = " ".join(map(str, (*sizes, 8, 8)))
    return f"<{target} {variant.work.name} {variant.name}> {numbers}".encode()


@contextlib.contextmanager
def labelled(too_large: Sequence[tuple[str, str]] = ()) -> Iterator[None]:
    """Within it nothing is compiled by Triton.

    Args:
        too_large: targets and variants for which they have no room.
    """
    real = compiling.backend
    compiling.backend = lambda: _Labelling(real(), too_large)  # type: ignore[assignment]
    try:
        yield
    finally:
        compiling.backend = real


def built(
    name: str, folder: Path, configs: Sequence[Any] = (((), {}, {"num_warps": 4}),), **options: Any
) -> Built:
    """A kernel of the ten, with labels for binaries."""
    return built_of(PREMAKES[name], name, folder, configs, **options)


def built_of(
    premake: Any, name: str, folder: Path, configs: Sequence[Any] = (((), {}, {}),), **options: Any
) -> Built:
    """A kernel with labels for binaries."""
    options.setdefault("targets", ("sm_80", "sm_90"))
    with labelled():
        return build(premake, configs, kernel_name=name, output_dir=folder, **options)


@functools.cache
def driver(
    folder: Path, is_hip: bool = False, flags: tuple[str, ...] = (), compiler: str = "cc"
) -> Path:
    """The recording driver, under the name that the runtime looks for; gives its folder."""
    name = "libamdhip64.so" if is_hip else "libcuda.so.1"
    folder.mkdir(parents=True, exist_ok=True)
    define = ["-DHIP"] if is_hip else []
    run(
        *(
            compiler,
            *WARNINGS,
            *flags,
            *define,
            "-shared",
            "-fPIC",
            HERE / "programs" / "recording_driver.c",
        ),
        *(f"-Wl,-soname,{name}", "-o", folder / name),
    )
    return folder


def run(*command: Any, **options: Any) -> str:
    """What a command prints; a failed test where it fails."""
    finished = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, **options
    )
    assert finished.returncode == 0, f"{command}\n{finished.stdout}{finished.stderr}"
    return finished.stdout


def library(built: Built, compiler: str = "cc", *flags: str) -> Path:
    """A shared library of a folder."""
    result = built.folder / f"lib{built.name}.so"
    sources = sorted(built.folder.glob("*.c"))
    run(
        *(compiler, *WARNINGS, "-O1", *flags, "-shared", "-fPIC", *sources, "-o", result),
        *("-ldl", "-lpthread"),
    )
    return result


def environment(driver: Path | None) -> dict[str, str]:
    """The environment of a program that is to find the recording driver, or none."""
    return {**os.environ, "LD_LIBRARY_PATH": "" if driver is None else str(driver)}


class Loaded:
    """A library in this process, with the recording driver in place of the device's.

    Args:
        path: the library.
        driver: the recording driver's folder.
    """

    #: By its name it is found from then on, whatever others are asked for: one serves a process.
    driver: ctypes.CDLL | None = None

    def __init__(self, path: Path, driver: Path) -> None:
        if Loaded.driver is None:
            library = str(driver / "libcuda.so.1")
            Loaded.driver = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        self.folder = driver
        self.library = ctypes.CDLL(str(path))
        self.library.nt_error_message.restype = ctypes.c_char_p
        self.library.nt_error_string.restype = ctypes.c_char_p

    def message(self) -> str:
        return self.library.nt_error_message().decode()

    def last(self) -> Recording:
        self.driver.last_recording.restype = ctypes.POINTER(Recording)
        return self.driver.last_recording().contents


class Recording(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_uint64)
            for name in "launches grid block shared stream image context early".split()
        ),
        ("arguments", (ctypes.c_uint8 * 128) * 64),
    )

    def label(self) -> str:
        """What binary was launched."""
        return ctypes.string_at(self.image).decode().partition(">")[0] + ">"
