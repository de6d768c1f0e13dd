"""What differs between the releases of Triton, 3.6 to 3.9; no other file asks for the version.

AMD's launcher: up to 3.6 a C function is compiled for each signature and takes the kernel's
arguments one by one; from 3.7 on one C function serves all and takes them as a tuple, told by a
description of the signature. On NVIDIA's devices the launcher is ours (`runtime.launcher`).
"""

from __future__ import annotations

import builtins
import functools
import importlib
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ninetoothed import threads
from ninetoothed.backends.triton.compiler import installed
from ninetoothed.backends.triton.compiler.private_cache import private_cache
from ninetoothed.cache import private_directory
from ninetoothed.errors import DeviceError
from ninetoothed.kernels.ahead import TensorMap

OLDEST = (3, 6)

#: Triton's module for each kind of device.
_DRIVERS = {"cuda": "triton.backends.nvidia.driver", "hip": "triton.backends.amd.driver"}

#: Held while what Triton's driver modules keep globally is exchanged.
_exchanging = threads.reentrant_lock()

#: (backend, since this version) -> the call of the C launcher, newest first. The three None are
#: a launch's metadata and Triton's hooks before and after it, which a direct launch has not.
_CALLS = {
    # Our own, which takes two addresses after the arguments: of scratch memory, and the profiler's.
    ("cuda", (3, 6)): "launch({grid}, {stream}, {arguments}{scratch}, None)",
    ("hip", (3, 8)): (
        "launch(cooperative, {grid}, 1, 1, {stream}, function, {scratch}, None, metadata, None, "
        "None, None, warp_size, annotations, layout, ({arguments}))"
    ),
    ("hip", (3, 7)): (
        "launch(cooperative, {grid}, 1, 1, {stream}, function, None, metadata, None, None, None, "
        "warp_size, annotations, layout, ({arguments}))"
    ),
    ("hip", (3, 6)): (
        "launch(cooperative, {grid}, 1, 1, {stream}, function, None, metadata, None, None, None, "
        "{arguments})"
    ),
}

#: The launcher's type of a tensor descriptor.
DESCRIPTOR = "nvTmaDesc"

#: Triton's number of a descriptor's element type -> the driver's, where that is another one.
_NUMBERS_OF_DRIVER = {8: 10, 9: 8, 10: 9}

#: So many addresses a CUDA kernel takes after its own parameters: of scratch memory, and of the
#: profiler's. Without either they are 0.
SCRATCH_PARAMETERS = 2

#: What Triton raises when it builds or loads C code and cannot.
BUILD_FAILURES = (RuntimeError, OSError, AssertionError, subprocess.SubprocessError)


@functools.lru_cache(maxsize=1)
def version() -> tuple[int, int]:
    """The release of the Triton that is installed; `DeviceError` without one that serves."""
    try:
        told = installed.release()
    except ImportError as error:
        raise DeviceError(
            "Running on a GPU needs Triton, which is not installed: `pip install triton`."
        ) from error
    major, minor = re.findall(r"\d+", told)[:2]
    found = (int(major), int(minor))
    if found < OLDEST:
        raise DeviceError(
            f"Triton {told} is too old: {OLDEST[0]}.{OLDEST[1]} or newer is needed. "
            "`pip install --upgrade triton`."
        )
    return found


def fingerprint() -> str:
    """What Triton calls itself where it names what it compiles: it reads all of itself once."""
    from triton.runtime.cache import triton_key

    return str(triton_key())


@contextmanager
def without_dumps() -> Iterator[None]:
    """Where the assembler fails Triton prints the whole program, some thousand lines, and raises an
    error that says the same. In this thread, while this holds, it prints nothing."""
    module: Any = importlib.import_module("triton.backends.nvidia.compiler")
    module.print = _print_no_dump
    _quiet.is_set = True
    try:
        yield
    finally:
        _quiet.is_set = False


_quiet = threading.local()


def _print_no_dump(*values: object, **keywords: Any) -> None:
    is_dump = bool(values) and "share the reproducer" in str(values[0])[-80:]
    if not (is_dump and getattr(_quiet, "is_set", False)):
        builtins.print(*values, **keywords)


def reduces_in_any_layout() -> bool:
    """Whether Triton lowers reductions rightly however tiles are laid out; else see `reductions`."""
    return version() >= (3, 7)


def source_class(is_gluon: bool) -> Any:
    """What Triton's compiler is given: a function in Triton or in Gluon."""
    if is_gluon:
        from triton.experimental.gluon._runtime import GluonASTSource

        return GluonASTSource
    from triton.compiler import ASTSource

    return ASTSource


#: What kernels in Gluon use of it, by module.
_GLUON = {
    "_runtime": "GluonASTSource jit",
    "language": (
        "DotOperandLayout NVMMADistributedLayout NVMMASharedLayout SliceLayout "
        "allocate_shared_memory arange convert_layout full num_warps program_id reshape "
        "static_range store zeros"
    ),
    "language.nvidia.hopper": "fence_async_shared warpgroup_mma warpgroup_mma_wait",
    "language.nvidia.hopper.mbarrier": "MBarrierLayout expect init wait",
    "language.nvidia.hopper.tma": (
        "async_copy_global_to_shared async_copy_shared_to_global store_wait"
    ),
}


#: What has taken another's place in a later release, by module; the old one fails there.
_GLUON_SINCE = {"language.nvidia.hopper.tma": "async_load async_store"}


@functools.lru_cache(maxsize=1)
def has_gluon() -> bool:
    """Whether this Triton has Gluon as kernels use it."""
    installed.imported()
    for name, wanted in _GLUON.items():
        try:
            module = importlib.import_module(f"triton.experimental.gluon.{name}")
        except ImportError:
            return False
        later = _GLUON_SINCE.get(name, "").split()
        has_all = all(hasattr(module, each) for each in wanted.split())
        if not has_all or any(hasattr(module, each) for each in later):
            return False
    return True


def options(**chosen: object) -> dict[str, object]:
    """What a compilation is told, the same for all releases: what is chosen, where it is not None."""
    # Until 3.8 a multiplication and an addition were fused by default, from 3.9 on they are not.
    return {
        "enable_fp_fusion": True,
        **{n: value for n, value in chosen.items() if value is not None},
    }


def driver_module(backend: str) -> Any:
    """Triton's own driver module for ``"cuda"`` or ``"hip"``."""
    version()
    installed.imported()
    return importlib.import_module(_DRIVERS[backend])


@functools.lru_cache(maxsize=1)
def utilities() -> Any:
    """Triton's C functions that load binaries on AMD's devices and describe these; built at the first use.

    They are an instance of their own, apart from that of Triton's driver object, which a framework's
    compiler may make in the same process: each has its own type of tensor descriptors.

    Raises:
        DeviceError: they cannot be built, for lack of a C compiler or of the driver's library.
    """
    module = driver_module("hip")
    class_: Any = module.HIPUtils
    with _exchanging:
        others = dict(vars(module))
        instance = getattr(class_, "__dict__", {}).get("instance")
        try:
            if instance is not None:
                del class_.instance
            with private_cache():
                made = class_()
            made.set_by_it = {
                key: value for key, value in vars(module).items() if others.get(key) is not value
            }
            return made
        except BUILD_FAILURES as error:
            raise DeviceError(
                f"Triton's part of the hip driver cannot be built: {error}"
            ) from error
        finally:
            vars(module).update(others)
            if "instance" in getattr(class_, "__dict__", {}):
                del class_.instance
            if instance is not None:
                class_.instance = instance


@contextmanager
def _own_types() -> Iterator[None]:
    """Within it, Triton's driver module has the types of our `utilities`, which it keeps globally."""
    module, own = driver_module("hip"), utilities().set_by_it
    with _exchanging:
        others = {key: vars(module)[key] for key in own if key in vars(module)}
        vars(module).update(own)
        try:
            yield
        finally:
            vars(module).update(others)


def call_template(backend: str) -> str:
    """The call of the C launcher, with {grid}, {stream}, {scratch} and {arguments} to fill in."""
    for (served, since), template in _CALLS.items():
        if served == backend and version() >= since:
            return template
    raise DeviceError(f"No launcher is known for {backend!r}.")


def descriptor_types(type_: str) -> list[str]:
    """What the launcher is given for a tensor descriptor: itself, the sizes and the strides.

    Args:
        type_: its type in a kernel's signature, ``"tensordesc<fp16[128,64]>"``.
    """
    rank = type_.partition("]")[0].count(",") + 1
    return [DESCRIPTOR, *["i32"] * rank, *["i64"] * rank]


def tensor_maps(metadata: Any) -> list[TensorMap]:
    """What a compiled kernel wants of each of its descriptors."""
    return [
        TensorMap(
            _NUMBERS_OF_DRIVER.get(each["elem_type"], each["elem_type"]),
            each["elem_size"],
            each["swizzle"],
            tuple(each["block_size"]),
        )
        for each in getattr(metadata, "tensordesc_meta", None) or ()
    ]


def build_library(source: Path) -> bytes:
    """A C file as a shared library, by the compiler that Triton's own launchers are built with.

    It may include ``cuda.h``.

    Raises:
        DeviceError: there is no compiler, or it refuses the file.
    """
    installed.imported()
    from triton.runtime.build import _build

    headers = Path(str(driver_module("cuda").__file__)).parent / "include"
    # What an interrupted build leaves is found again by its name: see `tidying.tidy`.
    with tempfile.TemporaryDirectory("", ".pid_", private_directory("launchers")) as folder:
        try:
            built = _build(source.stem, str(source), folder, [], [str(headers)], [], [])
        except BUILD_FAILURES as error:
            raise DeviceError(f"{source.name} cannot be compiled: {error}") from error
        return Path(built).read_bytes()


def call_names(signature: Mapping[str, str], metadata: Any) -> dict[str, object]:
    """What the names of Triton's own launcher for AMD's devices stand for in `call_template`.

    Args:
        signature: the run-time parameters and their types, without constants.
        metadata: the compiled kernel's.
    """
    names: dict[str, object] = {
        "cooperative": metadata.launch_cooperative_grid,
        "warp_size": metadata.warp_size,
    }
    module = driver_module("hip")
    if version() < (3, 7):
        # No constants in the signature: so the launch is not handed placeholders for them.
        source = SimpleNamespace(signature=dict(signature), constants={})
        with private_cache(), _own_types():
            launcher = module.HIPLauncher(source, metadata)
        return {**names, "launch": launcher.launch}
    types = list(signature.values())
    tools = utilities()
    with _own_types():
        annotations = module.annotate_arguments(types)
    return {
        **names,
        "launch": tools.launch,
        "annotations": annotations,
        "layout": tools.build_signature_metadata(types),
    }
