"""Kernels compiled ahead of time on a real NVIDIA GPU, from a C program: no Python is in its process.

Run it by hand: ``python tests/gpu/ahead/check_aot.py [FOLDER] [--tuned=FILE]``. It compiles the ten kernels
for the device's architecture, chosen by what ``tuning export`` wrote to a file or else by the estimate,
writes cases with odd, misaligned, strided, empty and far-flung views, has ``cc`` build ``aot_program.c``, and runs it.
``--no-run`` stops before that, where there is no device. Status 1 if something is wrong.
"""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

for _framework in ("torch", "paddle", "jax", "cupy"):
    sys.modules[_framework] = None  # type: ignore[assignment]
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

import numpy as np  # noqa: E402

from ninetoothed.aot.build import Built, build  # noqa: E402
from ninetoothed.aot.packaging import RUNTIME_SOURCES  # noqa: E402
from ninetoothed.kernels.ahead import Edition  # noqa: E402
from tests.aot.kernels import DECLARED, JAGGED, PREMAKES  # noqa: E402
from tests.aot.values import CASES, HOW, TOLERANCE, View, far, view  # noqa: E402

#: DLPack's code of an element type, and its bits.
DTYPES = {np.dtype(np.float16): (2, 16), np.dtype(np.float32): (2, 32), np.dtype(np.int64): (0, 64)}


#: How the cases lie: the last way, at the first size alone, has elements past 2^31.
WAYS = (*HOW, "past 2^31")


def cases() -> Iterator[bytes]:
    """Each case as the program reads it."""
    for number, (kernel, (make, sizes)) in enumerate(CASES.items()):
        for size in sizes:
            for how in WAYS:
                is_far = how == WAYS[-1]
                if is_far and (size is not sizes[0] or kernel in JAGGED):
                    continue
                arguments, expected = make(*size)
                views = []
                for each in arguments:
                    if isinstance(each, View):
                        views.append(each)
                    elif not isinstance(each, float):
                        values = np.zeros(expected.shape, np.float16) if each is None else each
                        is_output = each is None
                        laid = far(values, is_output) if is_far else view(values, how, is_output)
                        views.append(laid)
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
        parts.append(struct.pack("<4i", *DTYPES[each.storage.dtype], rank, each.is_output))
        strides = [each.apart if each.row and s == each.row else s for s in each.strides]
        parts.append(struct.pack("<4q4q", *each.values.shape, *fill, *strides, *fill))
        parts.append(struct.pack("<QQ", each.offset * itemsize, each.storage.nbytes))
        parts.append(struct.pack("<QQ", each.row * itemsize, each.apart * itemsize))
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


def configuration(edition: Edition) -> str:
    """What was chosen."""
    values = "".join(f"{symbol}={value} " for symbol, value in edition.known.items())
    return f"{values}{edition.num_warps} warps {edition.num_stages} stages"


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
    tuned = next((a.partition("=")[2] for a in arguments if a.startswith("--tuned=")), None)
    target = architecture()
    built: dict[str, Built] = {}
    for name in CASES:
        begin = time.monotonic()
        out = folder / name
        built[name] = build(
            {**PREMAKES, **DECLARED, **JAGGED}[name],
            [((), {}, {})],
            kernel_name=name,
            output_dir=out,
            targets=(target,),
            tuned=tuned,
        )
        sizes = [len(image.data) for b in built[name].units[0].binaries for image in b.images]
        seconds = time.monotonic() - begin
        print(
            f"built   {name}: {len(sizes)} binaries, {sum(sizes)} bytes, {seconds:.1f} s, "
            f"{', '.join(map(configuration, built[name].units[0].editions))}",
            flush=True,
        )
    packed = list(cases())
    (folder / "cases.bin").write_bytes(struct.pack("<i", len(packed)) + b"".join(packed))
    (folder / "calls.h").write_text(calls(built))
    # The runtime is the same in every folder: one copy of it is linked.
    sources = [path for each in built.values() for path in each.folder.glob(f"{each.name}*.c")]
    program = folder / "program"
    includes = [f"-I{folder}", *(f"-I{each.folder}" for each in built.values())]
    runtime = [built["add"].folder / name for name in RUNTIME_SOURCES]
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2"]
    libraries = ["-ldl", "-lpthread", "-lm"]
    command = [
        "cc",
        *flags,
        *includes,
        HERE / "aot_program.c",
        *sources,
        *runtime,
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
