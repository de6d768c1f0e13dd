"""What belongs to the C sources: a manifest, what CMake and pkg-config read, libraries made by ``$CC``."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ninetoothed.aot.unit import Unit
from ninetoothed.errors import ArgumentError, CompilationError
from ninetoothed.kernels.ahead import Aligned, Condition

FOLDER = Path(__file__).parent / "runtime"

#: What only a source for PyTorch includes.
FOR_TORCH = "ninetoothed_torch.hpp"

#: What every folder has: C sources of this package.
RUNTIME = sorted(p for p in FOLDER.iterdir() if p.is_file() and p.name != FOR_TORCH)
RUNTIME_SOURCES = tuple(path.name for path in RUNTIME if path.suffix == ".c")


def filled(template: str, values: Mapping[str, str]) -> str:
    """A file of ``templates/`` with ``@name@`` replaced by the value of that name."""
    text = FOLDER.with_name("templates").joinpath(template).read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda found: values[found[1]], text)


def files(
    name: str, units: Sequence[Unit], sources: Sequence[str], version: str
) -> dict[str, str | bytes]:
    """The files by name."""
    values = {
        "name": name,
        "version": version,
        "sources": "\n".join(f"    {source}" for source in [*sources, *RUNTIME_SOURCES]),
        "units": " ".join(f"{unit.name}.c" for unit in units),
    }
    return {
        "manifest.json": manifest(name, units, version),
        "CMakeLists.txt": filled("CMakeLists.txt", values),
        f"{name}.pc": filled("package.pc", values),
    }


def manifest(name: str, units: Sequence[Unit], version: str) -> str:
    """What was built, for programs: each kernel's configurations, variants, conditions and binaries."""
    content = {
        "name": name,
        "generator": f"ninetoothed {version}",
        "kernels": [_kernel(unit) for unit in units],
    }
    return json.dumps(content, indent=2) + "\n"


def _kernel(unit: Unit) -> dict[str, Any]:
    kernel = unit.kernel
    return {
        "name": unit.name,
        "parameters": [
            {
                "name": parameter.name,
                "kind": parameter.kind,
                "rank": parameter.source.ndim,
                "dtype": dtype.name if (dtype := unit.dtype(parameter)) else None,
            }
            for parameter in unit.parameters
        ],
        "constants": {n: _plain(v) for n, v in unit.fixed.constants.items()},
        "editions": [
            {
                "values": {kernel.names[s]: v for s, v in edition.known.items()},
                "variants": [
                    {"name": v.name, "assumes": [_asked(c) for c in v.added]}
                    for v in edition.variants
                ],
            }
            for edition in unit.editions
        ],
        "binaries": [
            {
                "target": binaries.target,
                "edition": binaries.edition,
                "num_warps": binaries.num_warps,
                "num_stages": binaries.num_stages,
                "variant": variant.name,
                "sizes": [_asked(c) for c in binaries.sizes],
                "bytes": len(image.data),
                "sha256": hashlib.sha256(image.data).hexdigest(),
                "threads": image.threads,
                "shared_memory": image.shared_memory,
            }
            for binaries in unit.binaries
            for variant, image in zip(
                unit.editions[binaries.edition].variants, binaries.images, strict=True
            )
        ],
    }


def _asked(condition: Condition) -> str:
    if isinstance(condition, Aligned):
        return f"{condition.parameter} % {condition.bytes} == 0"
    expression, low, high = condition.expression, condition.low, condition.high
    text = f"{expression} == {low}"
    if low != high:
        text = " <= ".join(str(part) for part in (low, expression, high) if part is not None)
    where = ", ".join(f"{leaf} in {low}..{high}" for leaf, low, high in condition.positions)
    return f"{text} for {where}" if where else text


def _plain(value: Any) -> Mapping[str, Any] | Any:
    return value if isinstance(value, (int, float, str, type(None))) else str(value)


KINDS = ("static", "shared")


def checked_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    """`ArgumentError` where there is no such kind of library."""
    for kind in kinds:
        if kind not in KINDS:
            raise ArgumentError(f"{kind!r} is no kind of library: there are {', '.join(KINDS)}")
    return tuple(kinds)


def compile_libraries(
    folder: Path, name: str, sources: Sequence[str], kinds: Sequence[str]
) -> list[str]:
    """The libraries' names in the folder, ``lib<name>.a`` and ``lib<name>.so``; the same each time.

    Raises:
        CompilationError: there is no compiler, or it fails.
    """
    if not kinds:
        return []
    compiler = shlex.split(os.environ.get("CC", "cc"))
    made = []
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor() as pool:
        objects = [str(Path(temporary) / f"{source}.o") for source in sources]

        def compile_one(source: str, into: str) -> None:
            _run(folder, *compiler, "-std=c11", "-O2", "-fPIC", "-c", source, "-o", into)

        list(pool.map(compile_one, sources, objects))
        if "static" in kinds:
            made.append(f"lib{name}.a")
            (folder / made[-1]).unlink(missing_ok=True)
            _run(folder, os.environ.get("AR", "ar"), "crsD", made[-1], *objects)
        if "shared" in kinds:
            made.append(f"lib{name}.so")
            _run(folder, *compiler, "-shared", *objects, "-o", made[-1], "-ldl", "-lpthread")
    return made


def _run(folder: Path, *command: str) -> None:
    # From the folder: what is made holds no path.
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise CompilationError(
            f"libraries are made by `{command[0]}`, which is not here: install a C compiler, or name one in $CC"
        ) from None
    if done.returncode:
        raise CompilationError(f"`{' '.join(command)}` failed:\n{done.stderr.strip()}")
