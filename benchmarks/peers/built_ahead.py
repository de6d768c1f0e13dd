"""Builds kernels for callers in C with whichever package is called ninetoothed on the path, through what both have.

Run as a program of its own, by `benchmarks.built`: KERNEL FOLDER. The last line that it prints is JSON: the
seconds of ``build``, without imports, and each file's bytes.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ninetoothed
from ninetoothed import Tensor

#: The columns of a row that one program holds.
COLUMNS = 4096

Premade = tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]


def _tensors(count: int, rank: int, dtype: Any, **keywords: Any) -> tuple[Any, ...]:
    return tuple(Tensor(rank, dtype=dtype, **keywords) for _ in range(count))


def _example(name: str) -> Any:
    return importlib.import_module(f"examples.{name}")


def _elements(name: str, count: int, dtype: Any, BLOCK_SIZE: int) -> Premade:
    module = _example(name)
    arrangement = functools.partial(module.arrangement, BLOCK_SIZE=BLOCK_SIZE)
    return arrangement, module.application, _tensors(count, 1, dtype)


def premake_add(dtype: Any, BLOCK_SIZE: int = 1024) -> Premade:
    return _elements("add", 3, dtype, BLOCK_SIZE)


def premake_silu(dtype: Any, BLOCK_SIZE: int = 1024) -> Premade:
    return _elements("silu", 2, dtype, BLOCK_SIZE)


def premake_softmax(dtype: Any) -> Premade:
    module = _example("softmax")
    return (module.arrangement, module.application, _tensors(2, 2, dtype, shape=(None, COLUMNS)))


def premake_rms_norm(dtype: Any) -> Premade:
    module = _example("rms_norm")
    input, output = _tensors(2, 2, dtype, shape=(None, COLUMNS))
    return (
        module.arrangement,
        module.application,
        (input, Tensor(0, dtype=ninetoothed.float32), output),
    )


def premake_mm(dtype: Any, rows: int, columns: int, inner: int) -> Premade:
    module = _example("mm")
    arrangement = functools.partial(
        module.arrangement, BLOCK_SIZE_M=rows, BLOCK_SIZE_N=columns, BLOCK_SIZE_K=inner
    )
    return arrangement, module.application, _tensors(3, 2, dtype)


_HALF, _BRAIN = ninetoothed.float16, ninetoothed.bfloat16
_OPTIONS = {"num_warps": 8, "num_stages": 3}


def _one(*arguments: Any) -> list[Any]:
    return [(arguments, {}, dict(_OPTIONS))]


#: By name: what makes it, and its configurations.
KERNELS: dict[str, tuple[Callable[..., Premade], list[Any]]] = {
    "add": (premake_add, _one(_HALF, 1024)),
    "silu": (premake_silu, _one(_HALF, 1024)),
    "softmax": (premake_softmax, _one(_HALF)),
    "rms_norm": (premake_rms_norm, _one(_HALF)),
    "mm": (premake_mm, _one(_HALF, 128, 128, 64)),
    "mm_of_four": (
        premake_mm,
        [
            each
            for dtype in (_HALF, _BRAIN)
            for rows in (64, 128)
            for each in _one(dtype, rows, 128, 64)
        ],
    ),
}


def main(name: str, folder: Path) -> None:
    premake, configs = KERNELS[name]
    folder.mkdir(parents=True)
    for module in ("add", "silu", "softmax", "rms_norm", "mm"):
        # Their own kernels are made when they are imported.
        _example(module)
    begin = time.monotonic()
    ninetoothed.build(premake, configs, caller="cuda", kernel_name=name, output_dir=folder)
    seconds = time.monotonic() - begin
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    found = {
        "package": str(Path(ninetoothed.__file__).parent),
        "seconds": seconds,
        "configurations": len(configs),
        "files": {str(path.relative_to(folder)): path.stat().st_size for path in paths},
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
