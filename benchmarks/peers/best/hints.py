"""How loads and stores treat the caches."""

from __future__ import annotations

import triton
import triton.language as tl

# Element-wise.

#: How loads and stores treat the caches: what loads say of eviction, and the stores' modifier.
HINTS = (
    ("", ""),
    ("evict_first", ""),
    ("evict_first", ".cs"),
    ("evict_last", ""),
    ("evict_last", ".wt"),
)

#: With these the first 10 MiB of the results are to stay while the kernel runs; with the second what is
#: loaded after them is also to leave first. That pays in a cold cache, and costs in a row of calls.
MARKS = ("kept", "kept_first")
_KEPT_BYTES = tl.constexpr(10 * 2**20)
_LINE = tl.constexpr(128)


@triton.jit
def load(pointers, is_kept, KEEP: tl.constexpr):
    if KEEP == "kept" or (KEEP == "kept_first" and is_kept):
        value = tl.load(pointers)
    elif KEEP == "kept_first":
        value = tl.load(pointers, eviction_policy="evict_first")
    else:
        value = tl.load(pointers, eviction_policy=KEEP)
    return value


@triton.jit
def store(pointers, value, is_kept, KEEP: tl.constexpr, MODIFIER: tl.constexpr):
    if KEEP != "kept" and KEEP != "kept_first":
        tl.store(pointers, value, cache_modifier=MODIFIER)
    elif is_kept:
        tl.store(pointers, value, eviction_policy="evict_last")
    else:
        tl.store(pointers, value)


@triton.jit
def num_bytes(output_ptr, ELEMENTS: tl.constexpr):
    """The bytes that a program stores."""
    return ELEMENTS * output_ptr.dtype.element_ty.primitive_bitwidth // 8


@triton.jit
def keeps_results(output_ptr, number, ELEMENTS: tl.constexpr):
    """Whether a program is among the first, that have results to keep; each has so many elements."""
    return number < _KEPT_BYTES // num_bytes(output_ptr, ELEMENTS)


@triton.jit
def release(output_ptr, number, num_programs, ELEMENTS: tl.constexpr, KEEP: tl.constexpr):
    """Takes back, in the last programs, that the first results of a contiguous tensor are to stay."""
    if KEEP == "kept" or KEEP == "kept_first":
        LINES: tl.constexpr = 256
        turn = number - (num_programs - _KEPT_BYTES // _LINE // LINES)
        if turn >= 0:
            byte = (turn * LINES + tl.arange(0, LINES)) * _LINE
            is_result = byte < num_programs.to(tl.int64) * num_bytes(output_ptr, ELEMENTS)
            tl.inline_asm_elementwise(
                """{
                    .reg .pred is_result;
                    setp.ne.s32 is_result, $2, 0;
                    @is_result applypriority.global.L2::evict_normal [$1], 128;
                    mov.u32 $0, 0;
                }""",
                "=r,l,r",
                [output_ptr.to(tl.int64) + byte, is_result.to(tl.int32)],
                dtype=tl.int32,
                is_pure=False,
                pack=1,
            )
