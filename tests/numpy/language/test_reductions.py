"""Reductions, scans, sorting, counting and products against Triton's interpreter."""

from __future__ import annotations

import pytest

from tests.numpy.language.cases import Table, case, for_types, needs_triton

_INTEGERS = "i8 i16 i32 i64 u8 u16 u32 u64"

_REDUCTIONS = [
    *for_types(
        ["tl.sum(x)", "tl.sum(x, axis=0)", "tl.sum(x, 1, keep_dims=True)"], _INTEGERS, "[4, 8]+"
    ),
    *for_types(["tl.sum(x)", "tl.sum(x, 0)", "x.sum(axis=-1)"], "fp32 fp64", "[4, 8]", rtol=1e-6),
    *for_types(["tl.sum(x)", "tl.sum(x, 0)"], "fp16", "[4, 8]", rtol=1e-2),
    *for_types(["tl.sum(x, 0, dtype=tl.float32)"], "fp16 i8", "[4, 8]", rtol=1e-6),
    *for_types(
        [
            "tl.max(x)",
            "tl.max(x, 0)",
            "tl.min(x, 1, keep_dims=True)",
            "tl.max(x, axis=1, return_indices=True)",
            "tl.min(x, 0, return_indices=True, keep_dims=True)",
            "tl.argmax(x, 1)",
            "tl.argmin(x, axis=0, keep_dims=True)",
            "tl.argmax(x, 1, tie_break_left=False)",
        ],
        f"{_INTEGERS} fp16 fp32 fp64",
        "[4, 8]",
    ),
    *for_types(["tl.argmax(x & 1, 1)", "tl.argmin(x & 1, 0)"], "i32", "[8, 8]"),
    *for_types(
        ["tl.xor_sum(x, 0)", "tl.reduce_or(x, 1)", "tl.xor_sum(x, 1, keep_dims=True)"],
        "i1 i8 i32 u32 i64",
        "[4, 8]",
    ),
    case("tl.max(x, 0)", x="i1[4, 8]"),
    case("tl.sum(x, 1)", 1e-6, x="fp32[2, 4, 8]"),
    case("tl.sum(x, keep_dims=True)", 1e-6, x="fp32[2, 4]"),
    case("tl.max(x, keep_dims=True)", x="fp32[2, 4]"),
    *for_types(
        ["tl.softmax(x)", "tl.softmax(x, 1, keep_dims=True)"], "fp32 fp64", "[4, 8]", rtol=1e-6
    ),
    case("x.softmax()", 1e-6, x="fp32[8]"),
]

_SCANS = [
    *for_types(
        ["tl.cumsum(x, 0)", "tl.cumsum(x, 1, reverse=True)", "x.cumsum(axis=-1)"],
        f"{_INTEGERS} fp32 fp64",
        "[4, 8]",
        rtol=1e-5,
    ),
    *for_types(["tl.cumsum(x)"], "fp16", "[16]", rtol=2e-2),
    *for_types(["tl.cumprod(x, 1)", "tl.cumprod(x, 0, reverse=True)"], "i32 i64 u8", "[4, 8]"),
    *for_types(["tl.cumprod(x, 1)"], "fp32 fp64", "[4, 8]", rtol=1e-5),
    case("tl.cumsum(x, dtype=tl.int64)", x="i8[16]"),
]

_SORTING = [
    *for_types(
        ["tl.sort(x)", "tl.sort(x, descending=True)", "tl.sort(x, dim=1)", "tl.topk(x, 4)"],
        "i8 i32 u32 i64 fp16 fp32 fp64",
        "[4, 8]",
    ),
    *for_types(["tl.topk(x, 16)", "tl.topk(x, 2)"], "i8 i32 fp16 fp32", "[16]"),
    *for_types(["tl.sort(x)"], "fp32", "[1]"),
    case(
        "tl.bitonic_merge(tl.cat(tl.sort(x), tl.flip(tl.sort(y), 0), can_reorder=True))",
        x="i32[8]",
        y="i32[8]",
    ),
    case("tl.histogram(x & 7, 8)", x="i32[64]"),
    case("tl.histogram(x & 7, 8, mask=x > 20)", x="i32[64]"),
]

_PRODUCTS = [
    *for_types(["tl.dot(x, y.T)"], "fp32 fp64 i8", "[16, 16]", rtol=1e-5),
    *for_types(["tl.dot(x, y.T)"], "fp16", "[16, 32]", rtol=1e-5),
    case("tl.dot(x, y)", 1e-5, x="fp32[16, 32]", y="fp32[32, 64]"),
    case("tl.dot(x, y)", 1e-5, x="fp32[4, 16, 32]", y="fp32[4, 32, 16]"),
    case("tl.dot(x, y)", 1e-5, x="fp32[2, 2, 16, 32]", y="fp32[2, 2, 32, 16]"),
    case("tl.dot(x, y, acc)", 1e-5, x="fp32[16, 32]", y="fp32[32, 16]", acc="fp32[16, 16]"),
    case(
        "tl.dot(x, y, acc=acc, input_precision='ieee')",
        1e-5,
        x="fp16[16, 32]",
        y="fp16[32, 16]",
        acc="fp32[16, 16]",
    ),
    case("tl.dot(x, y, out_dtype=tl.float16)", 2e-2, x="fp16[16, 16]", y="fp16[16, 16]"),
    case("tl.dot(x, y)", 1e-5, x="fp8e5[16, 32]", y="fp8e5[32, 16]"),
]

_TABLE = Table([*_REDUCTIONS, *_SCANS, *_SORTING, *_PRODUCTS])


@needs_triton
@pytest.mark.parametrize("asked", _TABLE.cases, ids=str)
def test_a_reduction_gives_what_triton_gives(asked):
    _TABLE.check(asked)
