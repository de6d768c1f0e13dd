"""What belongs to the C sources: a manifest, and what CMake and pkg-config read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ninetoothed.aot.unit import Unit
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
