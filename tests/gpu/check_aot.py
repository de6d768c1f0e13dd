"""Kernels compiled ahead of time on a real NVIDIA GPU, from a C program: no Python is in its process.

Run it by hand: ``python tests/gpu/check_aot.py [FOLDER]``. It compiles the ten kernels for the device's
architecture, writes cases with odd, misaligned, strided and empty views, has ``cc`` build
``aot_program.c``, and runs it. ``--no-run`` stops before that, where there is no device. Status 1 if
something is wrong.
"""

from __future__ import annotations

import ctypes
import math
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for _framework in ("torch", "paddle", "jax", "cupy"):
    sys.modules[_framework] = None  # type: ignore[assignment]
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

import numpy as np  # noqa: E402

from ninetoothed.aot.build import Built, build  # noqa: E402
from tests.aot.kernels import PREMAKES  # noqa: E402

TOLERANCE = 5e-3

#: Halves of what no kernel computes: NaN.
POISON = 0x7E7E

WIDTHS = {np.dtype(np.float16): 16, np.dtype(np.float32): 32}

_random = np.random.default_rng(0)


@dataclass
class View:
    """A tensor in a piece of memory: the values, and how they lie."""

    values: np.ndarray
    storage: np.ndarray
    strides: tuple[int, ...]
    offset: int
    is_output: bool = False

    def places(self) -> np.ndarray:
        """Where in the storage each element is."""
        found = np.full(self.values.shape, self.offset, dtype=np.int64)
        for dim, stride in enumerate(self.strides):
            steps = np.arange(self.values.shape[dim]) * stride
            found += steps.reshape([-1 if d == dim else 1 for d in range(self.values.ndim)])
        return found


def view(values: np.ndarray, how: str, is_output: bool = False) -> View:
    """Lays values out: contiguous, at an odd offset, with gaps, or the dimensions in another order."""
    order = list(range(values.ndim))
    if how == "transposed":
        order.reverse()
    step = 2 if how == "strided" else 1
    strides = [0] * values.ndim
    for dim in reversed(order):
        strides[dim] = step
        step *= max(values.shape[dim], 1)
        step += 3 if how == "strided" else 0
    offset = 1 if how in ("misaligned", "strided") else 0
    reach = offset + sum((n - 1) * s for n, s in zip(values.shape, strides)) if values.size else 0
    storage = np.full(reach + 40, np.nan, values.dtype)
    if values.dtype == np.float16:
        storage.view(np.uint16)[:] = POISON
    made = View(values, storage, tuple(strides), offset, is_output)
    if not is_output:
        storage[made.places()] = values
    return made


def normal(*shape: int) -> np.ndarray:
    return _random.standard_normal(shape).astype(np.float16)


def wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float64)


#: What a case is: inputs and scalars in order with None for the output, and what that must be.
Arguments = tuple[list[Any], np.ndarray]


def _product(m: int, k: int, n: int) -> Arguments:
    x, y = normal(m, k), normal(k, n)
    return [x, y, None], wide(x) @ wide(y)


def _addmm(m: int, k: int, n: int) -> Arguments:
    z, x, y = normal(m, n), normal(m, k), normal(k, n)
    return [z, x, y, 0.5, -1.5, None], 0.5 * wide(z) - 1.5 * wide(x) @ wide(y)


def _bmm(b: int, m: int, k: int, n: int) -> Arguments:
    x, y = normal(b, m, k), normal(b, k, n)
    return [x, y, None], wide(x) @ wide(y)


def _conv2d(n: int, c: int, h: int, w: int, f: int) -> Arguments:
    x, filters = normal(n, c, h, w), normal(f, c, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(wide(x), (3, 3), axis=(2, 3))
    expected = np.einsum("ncpqrs,kcrs->nkpq", windows, wide(filters), optimize=True)
    return [x, filters, None], expected


def _add(n: int) -> Arguments:
    x, y = normal(n), normal(n)
    return [x, y, None], wide(x) + wide(y)


def _silu(n: int) -> Arguments:
    x = normal(n)
    return [x, None], wide(x) / (1 + np.exp(-wide(x)))


def _softmax(m: int) -> Arguments:
    x = normal(m, 781)
    powers = np.exp(wide(x) - wide(x).max(-1, keepdims=True, initial=-math.inf))
    return [x, None], powers / powers.sum(-1, keepdims=True)


def _rms_norm(m: int) -> Arguments:
    x = normal(m, 781)
    return [x, 1e-6, None], wide(x) / np.sqrt((wide(x) ** 2).mean(-1, keepdims=True) + 1e-6)


def _rope(b: int, m: int) -> Arguments:
    x, sin, cos = normal(b, m, 7, 64), normal(m, 32), normal(m, 32)
    first, second = wide(x)[..., 0::2], wide(x)[..., 1::2]
    s, c = wide(sin)[:, None, :], wide(cos)[:, None, :]
    turned = np.stack((first * c - second * s, first * s + second * c), -1).reshape(x.shape)
    return [x, sin, cos, None], turned


def _sdpa(b: int, heads: int, group: int, m: int) -> Arguments:
    q, k, v = normal(b, heads * group, m, 64), normal(b, heads, m, 64), normal(b, heads, m, 64)
    keys, values = (np.repeat(wide(each), group, axis=1) for each in (k, v))
    scores = wide(q) @ keys.transpose(0, 1, 3, 2) / 8
    scores = np.where(np.tril(np.ones((m, m), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e30))
    return [q, k, v, 0.125, None], weights / weights.sum(-1, keepdims=True) @ values


#: By kernel: what makes its arguments, and sizes: odd ones, ones that tiles divide, empty ones.
CASES: dict[str, tuple[Callable[..., Arguments], list[tuple[int, ...]]]] = {
    "add": (_add, [(100_003,), (16_384,), (0,)]),
    "silu": (_silu, [(100_003,), (16_384,), (0,)]),
    "softmax": (_softmax, [(67,), (0,)]),
    "rms_norm": (_rms_norm, [(67,), (0,)]),
    "mm": (_product, [(257, 127, 193), (512, 256, 512), (0, 32, 64)]),
    "addmm": (_addmm, [(161, 131, 97), (512, 256, 512), (64, 32, 0)]),
    "bmm": (_bmm, [(3, 129, 67, 115), (2, 256, 128, 256), (0, 32, 32, 32)]),
    "conv2d": (_conv2d, [(2, 8, 17, 19, 24), (2, 16, 18, 34, 32)]),
    "rope": (_rope, [(2, 33), (1, 64), (0, 5)]),
    "sdpa": (_sdpa, [(1, 2, 2, 129), (1, 2, 1, 256), (0, 1, 1, 64)]),
}


def cases() -> Iterator[bytes]:
    """Each case as the program reads it."""
    for number, (kernel, (make, sizes)) in enumerate(CASES.items()):
        for size in sizes:
            for how in ("contiguous", "misaligned", "strided", "transposed"):
                arguments, expected = make(*size)
                views = [
                    view(
                        np.zeros(expected.shape, np.float16) if each is None else each,
                        how,
                        each is None,
                    )
                    for each in arguments
                    if not isinstance(each, float)
                ]
                scalars = [each for each in arguments if isinstance(each, float)]
                name = f"{kernel} {'x'.join(map(str, size))} {how}"
                yield _packed(name, number, views, scalars, expected)


def _packed(
    name: str, number: int, views: list[View], scalars: list[float], expected: Any
) -> bytes:
    given = [*scalars, *[0.0] * (4 - len(scalars))]
    parts = [
        struct.pack(
            "<64siii4dd", name.encode(), number, len(views), len(scalars), *given, TOLERANCE
        )
    ]
    for each in views:
        rank, fill = each.values.ndim, [0] * (4 - each.values.ndim)
        itemsize = each.storage.itemsize
        parts.append(struct.pack("<4i", 2, WIDTHS[each.storage.dtype], rank, each.is_output))
        parts.append(struct.pack("<4q4q", *each.values.shape, *fill, *each.strides, *fill))
        parts.append(struct.pack("<QQ", each.offset * itemsize, each.storage.nbytes))
        parts.append(each.storage.tobytes())
        if each.is_output:
            wanted, written = np.zeros(each.storage.size), np.zeros(each.storage.size, np.uint8)
            wanted[each.places()], written[each.places()] = expected, 1
            parts += [wanted.tobytes(), written.tobytes()]
    return b"".join(parts)


def calls(built: dict[str, Built]) -> str:
    """The header that lists the kernels for the program."""
    lines = [f'#include "{name}.h"' for name in built]
    lines += ["typedef struct {", "  const char *name;", "  int (*prepare)(int);"]
    lines += [
        "  int (*launch)(void *, const DLTensor *const *, const double *);",
        "} kernel_entry;",
    ]
    for name, each in built.items():
        tensors, scalars, given = 0, 0, ["stream"]
        for parameter in each.units[0].parameters:
            if parameter.kind == "tensor":
                given.append(f"t[{tensors}]")
                tensors += 1
            elif parameter.kind == "scalar":
                given.append(f"s[{scalars}]")
                scalars += 1
        lines += [
            f"static int call_{name}(void *stream, const DLTensor *const *t, const double *s) {{",
            f"  (void)s;\n  return {name}_launch({', '.join(given)});\n}}",
        ]
    lines.append("static const kernel_entry kernels[] = {")
    lines += [f'  {{"{name}", {name}_prepare, call_{name}}},' for name in built]
    lines.append("};")
    lines.append("enum { kernel_count = sizeof kernels / sizeof *kernels };")
    return "\n".join(lines) + "\n"


def architecture() -> str:
    """The device's, or that of an H200 where there is none."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "sm_90"
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.cuInit(0)
    library.cuDeviceGetAttribute(ctypes.byref(major), 75, 0)
    library.cuDeviceGetAttribute(ctypes.byref(minor), 76, 0)
    return f"sm_{major.value}{minor.value}" if major.value else "sm_90"


def main(arguments: list[str]) -> int:
    given = [argument for argument in arguments if not argument.startswith("--")]
    folder = Path(given[0] if given else tempfile.mkdtemp(prefix="aot-"))
    target = architecture()
    built: dict[str, Built] = {}
    for name in CASES:
        begin = time.monotonic()
        out = folder / name
        built[name] = build(
            PREMAKES[name], [((), {}, {})], kernel_name=name, output_dir=out, targets=(target,)
        )
        sizes = [len(image.data) for b in built[name].units[0].binaries for image in b.images]
        seconds = time.monotonic() - begin
        print(
            f"built   {name}: {len(sizes)} binaries, {sum(sizes)} bytes, {seconds:.1f} s",
            flush=True,
        )
    packed = list(cases())
    (folder / "cases.bin").write_bytes(struct.pack("<i", len(packed)) + b"".join(packed))
    (folder / "calls.h").write_text(calls(built))
    # The runtime is the same in every folder: one copy of it is linked.
    sources = [path for each in built.values() for path in each.folder.glob(f"{each.name}*.c")]
    program = folder / "program"
    includes = [f"-I{folder}", *(f"-I{each.folder}" for each in built.values())]
    runtime = built["add"].folder / "ninetoothed_runtime.c"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2"]
    libraries = ["-ldl", "-lpthread", "-lm"]
    command = [
        "cc",
        *flags,
        *includes,
        HERE / "aot_program.c",
        *sources,
        runtime,
        "-o",
        program,
        *libraries,
    ]
    subprocess.run([str(part) for part in command], check=True)
    if "--no-run" in arguments:
        return 0
    binary = next(built["add"].folder.glob(f"*.{target}.full.cubin"))
    threads = (
        next(b for b in built["add"].units[0].binaries if b.target == target).images[0].threads
    )
    add = list(CASES).index("add")
    return subprocess.run(
        [program, folder / "cases.bin", binary, str(threads), str(add)]
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
