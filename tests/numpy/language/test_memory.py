"""Pointers, loads, stores, atomics, block pointers and descriptors against Triton's interpreter."""

from __future__ import annotations

import pytest

from tests.numpy.language.cases import Table, case, needs_triton

_WHOLE = "p + tl.arange(0, 16)"
_SPREAD = "p + (tl.arange(0, 16) * 5) % 16"
_MEETING = "p + tl.arange(0, 16) // 3"
_BLOCK = "tl.make_block_ptr(p, (6, 5), (5, 1), (2, 4), (4, 4), (1, 0))"
_DESCRIPTOR = "tl.make_tensor_descriptor(p, [6, 8], [8, 1], [4, 4])"


def _at(expression, rtol=0.0, kind="fp32", size=32, **inputs):
    return case(expression, rtol, {"p": f"{kind}[{size}]"}, **inputs)


_LOADS = [
    _at(f"tl.load({_WHOLE})"),
    _at(f"tl.load({_WHOLE})", kind="i1"),
    _at(f"tl.load({_WHOLE})", kind="i64"),
    _at("tl.load(p + 3)"),
    _at("tl.load(3 + p)"),
    _at("tl.load(p + tl.program_id(0) - 1)"),
    _at(f"tl.load({_WHOLE}, mask=tl.arange(0, 16) < 5, other=7)"),
    _at(f"tl.load({_WHOLE}, mask=tl.arange(0, 16) < 5, other=1.5)", kind="fp16"),
    _at(f"tl.load({_WHOLE}, tl.arange(0, 16) < 5, 0)", kind="i32"),
    _at("tl.load(p + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :])"),
    _at(
        "tl.load(p + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :],"
        " mask=tl.arange(0, 8)[None, :] < 3, other=0.0)"
    ),
    _at("tl.load(p + x, mask=x < 8, other=-1)", x="u8[8]+"),
    _at(f"tl.load({_BLOCK}, boundary_check=(0, 1), padding_option='zero')"),
    _at(f"tl.load({_BLOCK}, boundary_check=(1,), padding_option='zero')", size=64),
    _at(f"tl.load(tl.advance({_BLOCK}, (-2, -4)))"),
    _at(f"{_DESCRIPTOR}.load([4, 4])", size=64),
    _at(f"tl.load_tensor_descriptor({_DESCRIPTOR}, [0, 0])", size=64),
]

_STORES = [
    _at(f"tl.store({_WHOLE}, x)", x="fp32[16]"),
    _at(f"tl.store({_WHOLE}, x, mask=x > 0)", x="fp32[16]"),
    _at(f"tl.store({_WHOLE}, 3)"),
    _at(f"tl.store({_WHOLE}, x)", kind="fp16", x="fp32[16]"),
    _at(f"tl.store({_WHOLE}, x)", kind="i32", x="i64[16]"),
    _at("tl.store(p + 2, x)", x="fp32[]"),
    _at("tl.store(p + 2, 4.0, mask=False)"),
    _at(f"tl.store({_SPREAD}, x)", x="fp32[16]"),
    _at(f"tl.store({_BLOCK}, x, boundary_check=(0, 1))", x="fp32[4, 4]"),
    _at(f"{_DESCRIPTOR}.store([4, 4], x)", size=64, x="fp32[4, 4]"),
]

_ATOMICS = [
    *(
        _at(f"tl.atomic_{name}({places}, x)", kind=kind, x=f"{kind}[16]")
        for name in "add max min and or xor xchg".split()
        for places in (_WHOLE, _SPREAD)
        for kind in "i32 u32 i64 u64".split()
    ),
    *(
        _at(f"tl.atomic_{name}({_MEETING}, x)", kind=kind, x=f"{kind}[16]")
        for name in "add max min xchg".split()
        for kind in ("i32", "u64")
    ),
    *(
        _at(f"tl.atomic_{name}({_WHOLE}, x)", kind=kind, x=f"{kind}[16]")
        for name in "add max min".split()
        for kind in ("fp32",)
    ),
    _at(f"tl.atomic_add({_MEETING}, x)", 1e-6, x="fp32[16]"),
    _at(f"tl.atomic_add({_WHOLE}, x)", kind="fp16", x="fp16[16]"),
    _at(f"tl.atomic_add({_WHOLE}, x)", kind="fp64", x="fp64[16]"),
    _at("tl.atomic_add(p, 1)", kind="i32"),
    _at("tl.atomic_add(p + 1, 2.5)"),
    _at(
        "tl.atomic_cas(p + tl.arange(0, 4), tl.zeros((4,), tl.int32) + 7, x)",
        kind="i32",
        x="i32[4]",
    ),
    _at("tl.atomic_cas(p + 1, tl.load(p + 1), tl.load(p + 2))", kind="i32"),
]

_TABLE = Table([*_LOADS, *_STORES, *_ATOMICS])


@needs_triton
@pytest.mark.parametrize("asked", _TABLE.cases, ids=str)
def test_an_access_does_what_triton_does(asked):
    _TABLE.check(asked)
