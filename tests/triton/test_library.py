"""What stands in the lanes that hold no element, by Triton's compiler and by its interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

from ninetoothed.backends.triton.compiler.compile import compile_source
from ninetoothed.backends.triton.specialization.target import Target
from ninetoothed.errors import CompilationError

SOURCE = """import triton
import triton.language as tl
from ninetoothed.backends.triton.library import {function}


@triton.jit
def kernel(x, y, n, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    tl.store(y + offsets, {function}(tl.load(x + offsets), offsets < n))
"""

TYPES = "i1 i8 i16 i32 i64 u8 u16 u32 u64 fp16 bf16 fp32 fp64 fp8e5 fp8e4nv".split()

#: How the constant of each function is written in Triton's representation, by element type.
CONSTANTS = {
    ("exclude_zero", "i32"): "dense<0> : tensor<128xi32>",
    ("exclude_zero", "bf16"): "dense<0.000000e+00> : tensor<128xbf16>",
    ("exclude_one", "u8"): "dense<1> : tensor<128xi8>",
    ("exclude_one", "fp64"): "dense<1.000000e+00> : tensor<128xf64>",
    ("exclude_lowest", "i1"): "dense<false> : tensor<128xi1>",
    ("exclude_lowest", "i8"): "dense<-128> : tensor<128xi8>",
    ("exclude_lowest", "u16"): "dense<0> : tensor<128xi16>",
    ("exclude_lowest", "i64"): "dense<-9223372036854775808> : tensor<128xi64>",
    ("exclude_lowest", "fp16"): "dense<0xFC00> : tensor<128xf16>",
    ("exclude_lowest", "fp8e4nv"): "-4.480000e+02",
    ("exclude_highest", "i1"): "dense<true> : tensor<128xi1>",
    ("exclude_highest", "i16"): "dense<32767> : tensor<128xi16>",
    # The bits of the greatest unsigned number, printed as signed.
    ("exclude_highest", "u64"): "dense<-1> : tensor<128xi64>",
    ("exclude_highest", "fp32"): "dense<0x7F800000> : tensor<128xf32>",
    ("exclude_all_ones", "i1"): "dense<true> : tensor<128xi1>",
    ("exclude_all_ones", "u32"): "dense<-1> : tensor<128xi32>",
}


def ttir(function: str, type_: str) -> str:
    signature = {"x": f"*{type_}", "y": f"*{type_}", "n": "i32", "SIZE": "constexpr"}
    compiled = compile_source(
        SOURCE.format(function=function),
        "kernel",
        signature,
        {"SIZE": 128},
        {"x": 16, "y": 16},
        Target.parse(("cuda", 90)),
    )
    return str(compiled.asm["ttir"])


@pytest.mark.parametrize(("function", "type_"), CONSTANTS, ids=str)
def test_the_constant_is_the_identity(function: str, type_: str) -> None:
    assert CONSTANTS[function, type_] in ttir(function, type_)


@pytest.mark.parametrize("type_", TYPES)
def test_every_element_type_compiles(type_: str) -> None:
    for name in ("exclude_zero", "exclude_one", "exclude_lowest", "exclude_highest"):
        assert "arith.select" in ttir(name, type_)


def test_floats_have_no_bits_to_set() -> None:
    with pytest.raises(CompilationError, match="bits of fp32 are no set"):
        ttir("exclude_all_ones", "fp32")


INTERPRETED = """
import torch, triton, triton.language as tl
from ninetoothed.backends.triton import library

@triton.jit
def kernel(x, y, FUNCTION: tl.constexpr):
    offsets = tl.arange(0, 4)
    value, mask = tl.load(x + offsets), offsets < 2
    if FUNCTION == "zero":
        result = library.exclude_zero(value, mask)
    elif FUNCTION == "one":
        result = library.exclude_one(value, mask)
    elif FUNCTION == "lowest":
        result = library.exclude_lowest(value, mask)
    elif FUNCTION == "highest":
        result = library.exclude_highest(value, mask)
    else:
        result = library.exclude_all_ones(value, mask)
    tl.store(y + offsets, result)

for name in "bool uint8 int8 int16 int32 int64 float16 float32 float64".split():
    dtype = getattr(torch, name)
    x = torch.tensor([1, 0, 1, 0], dtype=dtype)
    for function in ("zero", "one", "lowest", "highest", "all_ones"):
        if dtype.is_floating_point and function == "all_ones":
            continue
        y = torch.empty_like(x)
        kernel[(1,)](x, y, function)
        print(name, function, *y.tolist())
"""


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    pytest.importorskip("torch")
    # Triton reads the function's source, so it has to be in a file.
    script = tmp_path_factory.mktemp("interpreter") / "script.py"
    script.write_text(INTERPRETED)
    root = str(Path(__file__).parents[2])
    finished = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": root},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    lines = [line.split(maxsplit=2) for line in finished.stdout.splitlines()]
    return {(name, function): rest for name, function, rest in lines}


@pytest.mark.parametrize(
    ("name", "function", "expected"),
    [
        ("bool", "lowest", "True False False False"),
        ("bool", "highest", "True False True True"),
        ("uint8", "highest", "1 0 255 255"),
        ("int8", "lowest", "1 0 -128 -128"),
        ("int32", "one", "1 0 1 1"),
        ("int64", "highest", f"1 0 {2**63 - 1} {2**63 - 1}"),
        ("int64", "all_ones", "1 0 -1 -1"),
        ("float16", "lowest", "1.0 0.0 -inf -inf"),
        ("float32", "zero", "1.0 0.0 0.0 0.0"),
        ("float64", "highest", "1.0 0.0 inf inf"),
    ],
)
def test_the_interpreter_agrees(interpreted, name: str, function: str, expected: str) -> None:
    assert interpreted[name, function] == expected
