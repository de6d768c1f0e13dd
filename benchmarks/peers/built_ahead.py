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
from unittest import mock

import ninetoothed
from ninetoothed import Tensor

#: The columns of a row that one program holds.
COLUMNS = 4096

#: Heads, and the size of each.
HEADS, HEAD = 48, 64

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


def premake_rope(dtype: Any) -> Premade:
    module = _example("rope")
    input, output = _tensors(2, 4, dtype, shape=(None, None, HEADS, HEAD))
    sin, cos = _tensors(2, 2, dtype, shape=(None, HEAD // 2))
    return module.arrangement, module.application, (input, sin, cos, output)


def _tiled(arrangement: Callable[..., Any], rows: int, columns: int, inner: int) -> Any:
    """An arrangement that is made of mm's, with the tiles that are given in the place of mm's own."""
    mm = _example("mm")
    sizes = {"BLOCK_SIZE_M": rows, "BLOCK_SIZE_N": columns, "BLOCK_SIZE_K": inner}

    @functools.wraps(arrangement)
    def arranged(*tensors: Any) -> Any:
        with mock.patch.multiple(
            mm, arrangement=functools.partial(mm.arrangement, **sizes), **sizes
        ):
            return arrangement(*tensors)

    return arranged


def premake_mm(dtype: Any, rows: int, columns: int, inner: int) -> Premade:
    return _product("mm", 2, dtype, rows, columns, inner)


def premake_bmm(dtype: Any, rows: int, columns: int, inner: int) -> Premade:
    return _product("bmm", 3, dtype, rows, columns, inner)


def _product(name: str, rank: int, dtype: Any, rows: int, columns: int, inner: int) -> Premade:
    arrangement = functools.partial(
        _example(name).arrangement, BLOCK_SIZE_M=rows, BLOCK_SIZE_N=columns, BLOCK_SIZE_K=inner
    )
    return arrangement, _example("mm").application, _tensors(3, rank, dtype)


def premake_addmm(dtype: Any, rows: int, columns: int, inner: int) -> Premade:
    module = _example("addmm")
    input, mat1, mat2, output = _tensors(4, 2, dtype)
    tensors = (input, mat1, mat2, *_tensors(2, 0, ninetoothed.float32), output)
    return _tiled(module.arrangement, rows, columns, inner), module.application, tensors


def premake_conv2d(dtype: Any, rows: int, columns: int, inner: int) -> Premade:
    input, output = _tensors(2, 4, dtype)
    (filter,) = _tensors(1, 4, dtype, shape=(None, None, 3, 3))
    arrangement = _tiled(_example("conv2d").arrangement, rows, columns, inner)
    return arrangement, _example("mm").application, (input, filter, output)


def premake_sdpa(dtype: Any, rows: int, columns: int) -> Premade:
    module = importlib.import_module("benchmarks.peers.published_sdpa")
    query, key, value, output = _tensors(4, 4, dtype, shape=(None, None, None, HEAD))
    arrangement = functools.partial(module.arrangement, BLOCK_SIZE_M=rows, BLOCK_SIZE_N=columns)
    tensors = (query, key, value, Tensor(0, dtype=ninetoothed.float32), output)
    return arrangement, module.application, tensors


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
    "rope": (premake_rope, _one(_HALF)),
    "mm": (premake_mm, _one(_HALF, 128, 128, 64)),
    "addmm": (premake_addmm, _one(_HALF, 128, 128, 64)),
    "bmm": (premake_bmm, _one(_HALF, 128, 128, 64)),
    "sdpa": (premake_sdpa, _one(_HALF, 128, 64)),
    "conv2d": (premake_conv2d, _one(_HALF, 128, 128, 64)),
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
    # The kernels that the examples make of their own accord are made when they are imported.
    premake(*configs[0][0])
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
