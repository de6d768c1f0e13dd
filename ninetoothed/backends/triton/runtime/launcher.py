"""What launches compiled kernels on CUDA devices (``launcher.c``), built once and kept in the cache."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import os
import platform
import sys
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from ninetoothed.backends.triton.compiler import installed, versions
from ninetoothed.backends.triton.runtime.device_api import runtime
from ninetoothed.cache import Cache, digest
from ninetoothed.errors import DeviceError

_Loaded = TypeVar("_Loaded")

#: A kernel's type of a parameter -> the letter that ``launcher.c`` knows it by.
_LETTERS = {
    "i1": "b", "i8": "b", "i16": "h", "i32": "i", "i64": "q",
    "u1": "B", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
    "fp16": "e", "bf16": "y", "fp32": "f", "f32": "f", "fp64": "d",
    versions.DESCRIPTOR: "T",
}  # fmt: skip

#: What ``launcher.c`` calls of the driver, in its order; the last where there are descriptors.
_FUNCTIONS = (
    "cuLaunchKernelEx", "cuGetErrorString", "cuCtxGetDevice", "cuCtxGetCurrent", "cuCtxSetCurrent",
    "cuTensorMapReplaceAddress",
)  # fmt: skip


def launcher_of(name: str, function: int, metadata: Any, types: Iterable[str], index: int) -> Any:
    """The launcher of a loaded kernel: ``launcher(grid, stream, *arguments)``, whichever device is current.

    Args:
        name: the kernel's, for errors.
        function: the driver's handle.
        metadata: the compiled kernel's.
        types: those of its run-time parameters; of a descriptor, its own, its sizes' and its strides'.
        index: the device's.

    Raises:
        DeviceError: there is no C compiler, or a launch is more than the kernels here need.
    """
    if metadata.num_ctas != 1 or metadata.launch_cooperative_grid:
        raise DeviceError(f"{name!r} launches clusters or programs that wait for each other.")
    driver = runtime("cuda")
    letters = ["Q" if type_.startswith("*") else _LETTERS[type_] for type_ in types]
    return module().Launcher(
        name=name,
        function=function,
        threads=metadata.num_warps * metadata.warp_size,
        shared_memory=metadata.shared,
        is_dependent=bool(getattr(metadata, "launch_pdl", False)),
        types="".join(letters).encode(),
        context=driver.primary_context(index),
        device=index if driver.device_count() > 1 else -1,
    )


@functools.lru_cache(maxsize=1)
def module() -> Any:
    """The library itself.

    Raises:
        DeviceError: there is no C compiler, or no driver.
    """
    found = extension(Path(__file__).with_suffix(".c"), "ninetoothed_launcher")
    addresses = tuple(map(runtime("cuda").address_of, _FUNCTIONS))
    if 0 in addresses[:-1]:
        raise DeviceError(
            "The cuda driver is too old: it has no cuLaunchKernelEx. Install 11.8 or newer."
        )
    found.start(addresses, DeviceError)
    return found


def extension(source: Path, name: str) -> Any:
    """A C file that makes an extension of Python of this name; `DeviceError` where it cannot be had."""

    def load(path: str) -> Any:
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        found = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        loader.exec_module(found)
        return found

    return built(source, load)


def built(source: Path, load: Callable[[str], _Loaded]) -> _Loaded:
    """A C file as a library, each time a new one; compiled where the cache has none.

    Args:
        source: it may include ``cuda.h`` and ``Python.h``.
        load: gives the library in a file.

    Raises:
        DeviceError: it cannot be compiled or loaded.
    """
    key = digest(
        source.read_bytes(),
        installed.release(),
        (platform.system(), platform.machine(), platform.libc_ver()),
        sysconfig.get_config_var("SOABI") or sys.version,
    )
    store = Cache("launchers")
    data = store.get(key)
    if data is None:
        data = versions.build_library(source)
        store.put(key, data)
    # The system loads files only. This one has no name that anybody else could put another at; it stays
    # open, since a number that came again would be taken for the library that it stood for.
    number = os.memfd_create(source.name)
    try:
        with os.fdopen(number, "wb", closefd=False) as file:
            file.write(data)
        return load(f"/proc/self/fd/{number}")
    except (OSError, ImportError) as error:
        raise DeviceError(f"{source.name} cannot be loaded: {error}") from error
