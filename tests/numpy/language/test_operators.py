"""Operators of tiles against Triton's interpreter: types, signs, comparisons.

``//`` and ``%`` are Python's, which Triton's are of unsigned integers alone."""

from __future__ import annotations

import pytest

from tests.numpy.language.cases import Table, case, for_types, needs_triton

_INTEGERS = "i8 i16 i32 i64 u8 u16 u32 u64"
_UNSIGNED = "u8 u16 u32 u64"
_FLOATS = "fp16 fp32 fp64"

_MIXED = [
    case(f"x {operator} y", x=f"{left}[16]+", y=f"{right}[16]+")
    for operator in ("+", "*", "<", "==")
    for left in "i1 i8 u8 i16 u16 i32 u32 i64 u64 fp16 fp32 fp64".split()
    for right in "i8 u8 i32 u32 i64 fp16 fp32 fp64".split()
    if left != right
]

_TABLE = Table(
    [
        *for_types(["x + y", "x - y", "x * y", "-x"], f"{_INTEGERS} {_FLOATS}", "[4, 8]"),
        *for_types(["x // y", "x % y"], _UNSIGNED, "[4, 8]"),
        *for_types(["x / y"], f"{_INTEGERS} {_FLOATS}", "[4, 8]"),
        *for_types(["x & y", "x | y", "x ^ y"], f"i1 {_INTEGERS}", "[4, 8]"),
        *for_types(["x << (y & 7)", "x >> (y & 7)", "x >> 3", "1 << (x & 3)"], _INTEGERS, "[16]"),
        *for_types(
            ["x < y", "x <= y", "x > y", "x >= y", "x == y", "x != y"],
            f"i1 {_INTEGERS} {_FLOATS}",
            "[16]",
        ),
        *for_types(["x + 3", "3 + x", "x * 2", "5 - x", "x / 3"], _INTEGERS, "[16]"),
        *for_types(["x // 3", "x % 5", "100 // x"], _UNSIGNED, "[16]"),
        *for_types(["x + 0.5", "2.5 * x", "1 - x", "1 / x", "x / 3"], _FLOATS, "[16]"),
        *for_types(["x + 0.5", "x * 1.5", "x / 2.0"], _INTEGERS, "[16]"),
        *for_types(
            ["x > 0", "x < 0.5", "x == 3", "x >= 7", "x != -1"], f"{_INTEGERS} {_FLOATS}", "[16]"
        ),
        *_MIXED,
        *for_types(["~x"], "i1 i8 i16 i32 i64", "[16]"),
        case("x + y", x="fp32[4, 1]", y="fp32[1, 8]"),
        case("x + y", x="fp32[8]", y="fp32[4, 8]"),
        case("x + y", x="fp32[4, 8]", y="fp32[]"),
        case("x * y", x="fp16[4]", y="fp32[]"),
        case("x * y", x="fp16[4]", y="i32[]"),
        case("x + y", x="i8[4]", y="i32[]"),
        case("x / y", x="i32[]", y="i32[]"),
        case("x[:, None] * y[None, :]", x="fp32[4]", y="fp32[8]"),
        case("x[None, :, None]", x="fp32[4]"),
        case("x.T", x="fp32[4, 8]"),
        case("x.T + y", x="fp32[4, 8]", y="fp32[8, 4]"),
        case("x >> y", x="i32[8]", y="u16[8]+"),
        case("x + 4000000000", x="i64[4]"),
        case("x + 4000000000", x="u32[4]"),
        case("x & 1", x="i1[8]"),
        case("x + True", x="i32[8]"),
    ]
)


@needs_triton
@pytest.mark.parametrize("asked", _TABLE.cases, ids=str)
def test_an_operator_gives_what_triton_gives(asked):
    _TABLE.check(asked)
