"""Creation, shape, mathematics and choices against Triton's interpreter."""

from __future__ import annotations

import pytest

from tests.numpy.language.cases import Table, case, for_types, needs_triton

_CREATION = [
    case("tl.arange(0, 16)"),
    case("tl.arange(3, 7)"),
    case("tl.full((4, 8), 2.5, tl.float32)"),
    case("tl.full([4], -1, tl.int64)"),
    case("tl.full((), 3, tl.float16)"),
    case("tl.full((4,), x, tl.int32)", x="fp32[]"),
    case("tl.zeros((2, 4), tl.int8)"),
    case("tl.zeros_like(x)", x="fp16[4, 8]"),
    case("tl.program_id(0)"),
    case("tl.program_id(axis=1) + tl.num_programs(2)"),
    case("tl.num_programs(0)"),
    case("tl.cdiv(tl.num_programs(0), 3)"),
]

_SHAPE = [
    case("tl.broadcast(x, y)", x="fp32[4, 1]", y="fp32[8]"),
    case("tl.broadcast(x, y)", x="fp32[]", y="fp32[8]"),
    case("tl.broadcast_to(x, (4, 8))", x="fp32[4, 1]"),
    case("tl.broadcast_to(x, 4, 8)", x="fp32[]"),
    case("x.broadcast_to([2, 8])", x="i32[1, 8]"),
    case("tl.expand_dims(x, 0)", x="fp32[4]"),
    case("tl.expand_dims(x, [0, 2, -1])", x="fp32[4, 2]"),
    case("x.expand_dims(-1)", x="fp32[4]"),
    case("tl.expand_dims(x, 0)", x="fp32[]"),
    case("tl.permute(x, (2, 0, 1))", x="fp32[2, 4, 8]"),
    case("tl.permute(x, 1, 0)", x="fp32[2, 4]"),
    case("tl.trans(x)", x="fp32[2, 4]"),
    case("tl.trans(x)", x="fp32[2, 4, 8]"),
    case("tl.trans(x, 2, 1, 0)", x="fp32[2, 4, 8]"),
    case("tl.ravel(x)", x="fp32[2, 4]"),
    case("tl.reshape(x, (4, 2))", x="fp32[2, 4]"),
    case("tl.reshape(x, 8)", x="fp32[2, 4]"),
    case("x.reshape([1, 8, 1])", x="fp32[2, 4]"),
    case("tl.view(x, (4, 2))", x="fp32[2, 4]"),
    case("tl.cat(x, y, can_reorder=True)", x="fp32[4]", y="fp32[4]"),
    case("tl.join(x, y)", x="fp32[4]", y="fp32[4]"),
    case("tl.join(x, y)", x="fp32[2, 4]", y="fp32[4]"),
    case("tl.join(x, y)", x="fp32[]", y="fp32[]"),
    case("tl.split(x)", x="fp32[4, 2]"),
    case("tl.split(x.reshape(2, 4, 2))", x="i32[16]"),
    case("tl.interleave(x, y)", x="fp32[2, 4]", y="fp32[2, 4]"),
    case("tl.flip(x, 0)", x="fp32[4]"),
    case("tl.flip(x, 1)", x="i16[2, 8]"),
    case("tl.flip(x, -2)", x="fp16[4, 2]"),
    case("tl.gather(x, y & 3, 0)", x="fp32[4, 8]", y="i32[2, 8]"),
    case("tl.gather(x, y & 7, 1)", x="fp32[4, 8]", y="i32[4, 4]"),
    case("x.gather(y & 7, axis=-1)", x="fp32[8]", y="i64[16]"),
]

_UNARY = "exp exp2 log log2 sin cos sqrt rsqrt floor ceil".split()

_MATH = [
    *for_types([f"tl.{name}(x)" for name in _UNARY], "fp32 fp64", "[4, 8]+"),
    *for_types([f"tl.math.{name}(x)" for name in _UNARY], "fp32", "[4]+"),
    *for_types(["tl.floor(x)", "tl.ceil(x)", "tl.sin(x)"], "fp32 fp64", "[4, 8]"),
    *for_types(["tl.erf(x)"], "fp32", "[64]", rtol=1e-7),
    *for_types(["tl.erf(x)"], "fp64", "[64]", rtol=1e-15),
    *for_types(["tl.sigmoid(x)"], "fp32 fp64", "[16]", rtol=2e-7),
    *for_types(["tl.abs(x)"], "i8 i32 u8 u32 fp16 fp32 fp64", "[16]"),
    *for_types(["tl.fdiv(x, y)"], "fp16 fp32 fp64", "[16]"),
    *for_types(["tl.umulhi(x, y)"], "u32 u64", "[32]"),
    *for_types(["tl.umulhi(x, y)"], "i32 i64", "[32]+"),
    *for_types(["tl.fma(x, y, x)"], "fp32 fp64", "[16]", rtol=1e-6),
    *for_types(
        ["tl.maximum(x, y)", "tl.minimum(x, y)"], "i1 i8 i32 u8 u32 i64 fp16 fp32 fp64", "[16]"
    ),
    *for_types(["tl.maximum(x, 0)", "tl.minimum(x, 2)"], "i8 i32 i64 fp16 fp32 fp64", "[16]"),
    *for_types(["tl.maximum(x, 0.0)", "tl.clamp(x, -1.0, 1.0)"], "fp16 fp32 fp64", "[16]"),
    *for_types(["tl.clamp(x, -y, y)"], "fp32 fp64", "[16]+"),
    *for_types(["tl.cdiv(x, 3)", "tl.cdiv(x, y)", "x.cdiv(8)"], "i32 i64", "[16]+"),
    case("tl.sqrt_rn(x)", x="fp32[16]+"),
    case("tl.div_rn(x, y)", x="fp32[16]", y="fp32[16]"),
    case("tl.exp(2.0)"),
    case("tl.maximum(x, y)", x="fp16[4]", y="fp32[4]"),
    case("tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)", x="fp32[4]", y="fp32[4]"),
    case("tl.fma(x, y, 1.0)", 1e-3, x="fp16[4]", y="fp16[4]"),
    case("tl.swizzle2d(x, y, 8, 4, 3)", x="i32[16]+", y="i32[16]+"),
    case("tl.swizzle2d(tl.program_id(0), tl.program_id(1), 4, 3, 2)"),
    case("tl.add(x, y)", x="i32[8]", y="i8[8]"),
    case("tl.sub(x, 3)", x="i32[8]"),
    case("tl.mul(x, y, sanitize_overflow=False)", x="u32[8]", y="u32[8]"),
]

_CHOICE = [
    *for_types(["tl.where(x > y, x, y)", "tl.where(x > y, x, 0)"], "i8 u32 i64 fp16 fp32", "[16]"),
    *for_types(["tl.where(x > y, x, 0.5)"], "i8 fp16 fp32", "[16]"),
    case("tl.where(x, 1, 0)", x="i1[8]"),
    case("tl.where(x, 1.0, 0)", x="i1[8]"),
    case("tl.where(x, y, -1e30)", x="i1[8]", y="fp32[]"),
    case("tl.where(x > 0, y, 0.0)", x="fp32[4, 1]", y="fp32[8]"),
    case("tl.where(x, y, y + 1)", x="i1[]", y="fp32[8]"),
    case("x.logical_and(y)", x="i1[16]", y="i1[16]"),
    case("x.logical_or(y)", x="i1[16]", y="i1[16]"),
]

_CASTS = [
    *for_types(
        [
            f"x.to(tl.{name})"
            for name in "int1 int8 int16 int32 int64 uint8 uint16 float16 float32 float64".split()
        ],
        "i1 i8 i32 u8 u32 i64",
        "[32]",
    ),
    *for_types(
        [f"x.to(tl.{name})" for name in "int1 int8 int32 int64 float16 float32 float64".split()],
        "fp16 fp32 fp64",
        "[32]",
    ),
    *for_types(["x.to(tl.int32, bitcast=True)", "x.to(tl.uint32, bitcast=True)"], "fp32", "[16]"),
    *for_types(["x.to(tl.int16, bitcast=True)", "x.cast(tl.float32)"], "fp16 bf16", "[16]"),
    *for_types(["x.to(tl.float32)"], "fp16 fp8e5 fp8e4nv", "[16]"),
    case("tl.cast(x, tl.float32, bitcast=True)", x="i32[16]"),
    case("tl.cast(3, tl.float16)"),
]

_TABLE = Table([*_CREATION, *_SHAPE, *_MATH, *_CHOICE, *_CASTS])


@needs_triton
@pytest.mark.parametrize("asked", _TABLE.cases, ids=str)
def test_a_function_gives_what_triton_gives(asked):
    _TABLE.check(asked)
