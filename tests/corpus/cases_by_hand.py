"""Cases that were not measured: other strides, element types, sizes and kernels.

Every set of options here is right for its call, as `options.are_right` has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from examples import (
    add,
    addmm,
    bmm,
    conv2d,
    dropout,
    fused_rms_norm,
    jagged_to_padded,
    layer_norm,
    max_pool2d,
    mm,
    rms_norm,
    rope,
    rope_in_place,
    sdpa,
    silu,
    softmax,
    swiglu,
)
from tests.corpus.cases import Case, Subject
from tests.corpus.kernels import JAGGED, KERNELS
from tests.corpus.language import LANGUAGE
from tests.corpus.package import Kernel, call_of, scalar_types, tensor
from tests.corpus.products import PRODUCTS

#: Each entry: a subject, and its sets of options.
_TABLE: list[tuple[Subject, tuple[str, ...]]] = []

BLOCKS = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64}
SMALL = {"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 32}
ATTENTION = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64}

#: 2**31, from which on numbers have 64 bits.
LIMIT = 2**31


def put(
    group: str,
    name: str,
    kernel: Kernel,
    tensors: Mapping[str, Any],
    *chosen: str,
    values: Mapping[str, int] | None = None,
    scalars: Mapping[str, str] | None = None,
    **constants: Any,
) -> None:
    """Adds a subject without options, and with each of these sets of them."""
    call = call_of(tensors, {**scalar_types(kernel), **(scalars or {})}, constants)
    _TABLE.append((Subject(group, name, kernel, call, values or {}), ("", *chosen)))


def by_hand() -> Iterator[Case]:
    """The cases of the table."""
    for subject, chosen in _TABLE:
        for options in chosen:
            yield subject.case(options)


# Products.


def product(m: int, k: int, n: int, dtype: str = "float16", result: str | None = None) -> Any:
    """The tensors of a product of matrices."""
    return {
        "input": tensor(m, k, dtype=dtype),
        "other": tensor(k, n, dtype=dtype),
        "output": tensor(m, n, dtype=result or dtype),
    }


def changed(tensors: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Tensors of which some are others."""
    return {**tensors, **changes}


def put_products() -> None:
    """Matrices of many sizes, types and layouts."""
    sizes: dict[tuple[int, int, int], tuple[str, ...]] = {
        (997, 1009, 1013): ("loop_splitting=1", "register_prefetch=1", "register_prefetch=1 split_k=2", "cooperative_reduction=1 split_k=2"),
        (200, 328, 264): (
            "descriptors=1", "dependent_launch=1 descriptors=1", "loop_splitting=1", "cooperative_reduction=2 split_k=3", "split_k=3",
        ),
        (1, 4096, 4096): ("descriptors=1", "split_k=4", "cooperative_reduction=2 split_k=4"),
        (4096, 1, 64): (),
        (4096, 64, 1): ("dependent_launch=1",),
        (1, 1, 1): (),
        (0, 64, 64): (),
        (64, 0, 64): (),
        (64, 64, 0): (),
        (63, 65, 127): ("register_prefetch=1", "eviction_policy=0"),
        (65536, 64, 65536): ("descriptors=1", "descriptors=1 persistent=1", "eviction_policy=0"),
        (65537, 65539, 65536): ("loop_splitting=1", "register_prefetch=1"),
        (131072, 32768, 3): ("dependent_launch=1",),
    }  # fmt: skip
    for (m, k, n), chosen in sizes.items():
        put("mm", f"mm {m}x{k}x{n}", mm.kernel, product(m, k, n), *chosen, values=BLOCKS)
    for dtype in ("bfloat16", "float32", "float8_e4m3", "float8_e5m2", "int8"):
        for m, k, n in ((512, 512, 512), (200, 328, 265)):
            tensors = product(m, k, n, dtype, "float32" if "8" in dtype else None)
            chosen = ("descriptors=1",) if dtype == "bfloat16" else ()
            chosen += ("loop_splitting=1",) if m == 200 else ()
            put("mm", f"mm {m}x{k}x{n} of {dtype}", mm.kernel, tensors, *chosen, values=SMALL)
    put_layouts()
    put_relatives()


def put_layouts() -> None:
    """Matrices that lie otherwise in memory."""
    plain = product(200, 328, 264)
    layouts: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
        "transposed": (
            {
                "input": tensor(200, 328, strides=(1, 200)),
                "other": tensor(328, 264, strides=(1, 328)),
            },
            ("descriptors=1", "loop_splitting=1", "split_k=2"),
        ),
        "rows of a wider tensor": (
            {"input": tensor(200, 328, strides=(1000, 1))},
            ("descriptors=1", "cooperative_reduction=1 split_k=2"),
        ),
        "rows that begin anywhere": (
            {"input": tensor(200, 328, strides=(329, 1))},
            ("register_prefetch=1", "register_prefetch=1 split_k=2"),
        ),
        "every third column": (
            {"input": tensor(200, 328, strides=(984, 3))},
            ("loop_splitting=1",),
        ),
        "one row for all": ({"input": tensor(200, 328, strides=(0, 1))}, ("split_k=2",)),
        "one element for all": ({"other": tensor(328, 264, strides=(0, 0))}, ()),
        "an address of 2 bytes": (
            {"other": tensor(328, 264, alignment=2)},
            ("register_prefetch=1",),
        ),
        "an address of 8 bytes": ({"input": tensor(200, 328, alignment=8)}, ("descriptors=1",)),
        "a result of every other column": ({"output": tensor(200, 264, strides=(528, 2))}, ()),
        "a transposed result": (
            {"output": tensor(200, 264, strides=(1, 200))},
            (
                "descriptors=1",
                "cooperative_reduction=1 split_k=2",
                "cooperative_reduction=2 split_k=2",
            ),
        ),
        "steps of 64 bits": (
            {"input": tensor(200, 328, strides=(LIMIT + 8, 1))},
            ("eviction_policy=0", "loop_splitting=1"),
        ),
    }
    for label, (changes, chosen) in layouts.items():
        tensors = changed(plain, **changes)
        put("mm", f"mm 200x328x264, {label}", mm.kernel, tensors, *chosen, values=BLOCKS)


def put_relatives() -> None:
    """Batches, sums, and the products that were written for the purpose."""
    sums = {
        "input": tensor(200, 264), "mat1": tensor(200, 328), "mat2": tensor(328, 264),
        "output": tensor(200, 264),
    }  # fmt: skip
    chosen = ("descriptors=1", "loop_splitting=1", "split_k=2", "register_prefetch=1")
    put("addmm", "addmm 200x328x264", addmm.kernel, sums, *chosen, values=BLOCKS)
    vector = changed(sums, input=tensor(200, 264, strides=(0, 1)))
    put("addmm", "addmm of a vector", addmm.kernel, vector, "descriptors=1", values=BLOCKS)
    mixed = changed(sums, input=tensor(200, 264, dtype="float32"))
    put(
        "addmm", "addmm by whole numbers", addmm.kernel, mixed, "split_k=2",
        values=BLOCKS, scalars={"beta": "int32", "alpha": "int64"},
    )  # fmt: skip
    batches = {
        "input": tensor(3, 200, 328), "other": tensor(3, 328, 264), "output": tensor(3, 200, 264),
    }  # fmt: skip
    chosen = ("descriptors=1", "loop_splitting=1", "cooperative_reduction=1 split_k=2", "split_k=3")
    put("bmm", "bmm 3x200x328x264", bmm.kernel, batches, *chosen, values=BLOCKS)
    inside = changed(
        batches,
        input=tensor(3, 200, 328, strides=(328, 984, 1)),
        other=tensor(3, 328, 264, strides=(328, 1, 984)),
    )
    put("bmm", "bmm of batches inside", bmm.kernel, inside, "descriptors=1", values=BLOCKS)
    one = changed(batches, other=tensor(3, 328, 264, strides=(0, 264, 1)))
    put(
        "bmm",
        "bmm with one matrix",
        bmm.kernel,
        one,
        "eviction_policy=0",
        "register_prefetch=1",
        values=BLOCKS,
    )
    for name, chosen in {
        "activated": (
            "split_k=4",
            "cooperative_reduction=1 split_k=4",
            "cooperative_reduction=2 split_k=3",
            "loop_splitting=1",
        ),
        "two products": ("split_k=2", "cooperative_reduction=1 split_k=2"),
        "normalized": ("split_k=2", "descriptors=1"),
    }.items():
        for m, k, n in ((64, 256, 64), (20, 100, 33)):
            tensors = product(m, k, n)
            options = () if m == 64 and name == "activated" else chosen
            options = tuple(o for o in options if m == 64 or "descriptors" not in o)
            options = tuple(o for o in options if m == 20 or "loop_splitting" not in o)
            put("products", f"{name} {m}x{k}x{n}", PRODUCTS[name], tensors, *options)
    padded = PRODUCTS["padded product"]
    put(
        "products", "padded product 50x72x88", padded, product(50, 72, 88), "descriptors=1",
        values={"SIZE": 16},
    )  # fmt: skip
    for name in ("exponentials", "half of the last"):
        for count in (64, 50):
            tensors = {
                "left": tensor(64, 64), "right": tensor(count, 64),
                "output": tensor(64, dtype="float32"),
            }  # fmt: skip
            put(
                "products", f"{name} {count}", PRODUCTS[name], tensors, "partial_reduction_sinking=1",
                "eviction_policy=0 partial_reduction_sinking=1", ROWS=32, COLUMNS=32,
            )  # fmt: skip


def put_windows() -> None:
    """Convolutions and pooling."""
    cases: dict[str, tuple[Kernel, tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
        "conv2d 2x9x12x11": (conv2d.kernel, (2, 9, 12, 11), (20, 9, 3, 3), (2, 20, 10, 9)),
        "conv2d padded": (
            PRODUCTS["conv2d padded"], (4, 64, 14, 14), (32, 64, 3, 3), (4, 32, 14, 14),
        ),
        "conv2d strided": (
            PRODUCTS["conv2d strided"], (2, 5, 12, 11), (20, 5, 3, 5), (2, 20, 6, 4),
        ),
        "conv2d of many channels": (
            conv2d.kernel, (1, 65536, 4, 4), (16, 65536, 3, 3), (1, 16, 2, 2),
        ),
    }  # fmt: skip
    for name, (kernel, input, filter, output) in cases.items():
        tensors = {"input": tensor(*input), "other": tensor(*filter), "output": tensor(*output)}
        chosen = ("register_prefetch=1",) if "many" not in name else ()
        if name in ("conv2d 2x9x12x11", "conv2d strided"):
            chosen += ("loop_splitting=1", "cooperative_reduction=2 register_prefetch=1 split_k=2")
        put("conv2d", name, kernel, tensors, *chosen, values=SMALL)
    tensors = {
        "input": tensor(2, 9, 12, 11, strides=(1188, 1, 99, 9)),
        "other": tensor(20, 9, 3, 3, strides=(162, 18, 6, 2)),
        "output": tensor(2, 20, 10, 9),
    }
    name = "conv2d in another order"
    put("conv2d", name, conv2d.kernel, tensors, "split_k=2", values=SMALL)
    turned = {
        "input": tensor(20, 9, 3, 3), "other": tensor(2, 9, 12, 11), "output": tensor(2, 20, 10, 9),
    }  # fmt: skip
    columns = PRODUCTS["windows as columns"]
    put("conv2d", "windows as columns", columns, turned, "register_prefetch=1", values=SMALL)
    blocks = PRODUCTS["windows in blocks"]
    put("conv2d", "windows in blocks of 27", blocks, turned, "register_prefetch=1", WIDTH=27)
    put_pools()


def put_pools() -> None:
    """The maxima of windows."""
    for kernel, label in ((max_pool2d.kernel, "pool"), (max_pool2d.ceil_kernel, "pool up")):
        for window, step, result in (
            ((2, 2), (2, 2), (16, 16)),
            ((3, 5), (1, 3), (30, 10)),
        ):
            tensors = {"input": tensor(4, 16, 32, 32), "output": tensor(4, 16, *result)}
            constants = dict(zip(("WINDOW_HEIGHT", "WINDOW_WIDTH"), window))
            constants |= dict(zip(("STRIDE_HEIGHT", "STRIDE_WIDTH"), step))
            name = f"{label} {window[0]}x{window[1]} by {step[0]}x{step[1]}"
            put("pool", name, kernel, tensors, **constants, BLOCK_SIZE=256)


# Attention.


def attention(
    heads: int, shared: int, queries: int, keys: int, size: int, dtype: str = "float16"
) -> Any:
    """The tensors of attention, with groups of query heads that share keys."""
    query = tensor(2, heads, queries, size, dtype=dtype)
    key = tensor(2, shared, keys, size, dtype=dtype)
    return {"query": query, "key": key, "value": key, "output": query}


def put_attention() -> None:
    """Attention of many sizes, types and layouts."""
    plain = (
        "partial_reduction_sinking=1",
        "descriptors=1",
        "descriptors=1 partial_reduction_sinking=1",
    )
    causal = ("loop_splitting=1", "descriptors=1 loop_splitting=1 partial_reduction_sinking=1")
    split = "descriptors=1 loop_splitting=1 partial_reduction_sinking=1 tma_pipeline=2"
    sizes: dict[tuple[int, ...], tuple[tuple[str, ...], tuple[str, ...]]] = {
        (6, 3, 1000, 1000, 64): ((*plain, "loop_splitting=1 partial_reduction_sinking=1"), causal),
        (32, 8, 77, 777, 80): ((), (*plain[2:], split)),
        (4, 1, 1, 513, 64): (
            ("partial_reduction_sinking=1",),
            ("loop_splitting=1 partial_reduction_sinking=1",),
        ),
    }
    for size, of_each in sizes.items():
        for is_causal, chosen in zip((False, True), of_each):
            name = f"sdpa {is_causal} {size}"
            tensors, constants = attention(*size), {"is_causal": is_causal}
            put("sdpa", name, sdpa.kernel, tensors, *chosen, values=ATTENTION, **constants)
    put(
        "sdpa", "sdpa of very many queries", sdpa.kernel, attention(6, 3, 2**18, 1000, 64),
        "descriptors=1 partial_reduction_sinking=1 tma_pipeline=1", values=ATTENTION, is_causal=False,
    )  # fmt: skip
    for dtype in ("bfloat16", "float32", "float8_e5m2"):
        chosen = () if dtype != "bfloat16" else ("descriptors=1 partial_reduction_sinking=1",)
        tensors = attention(6, 3, 200, 300, 64, dtype)
        put(
            "sdpa", f"sdpa of {dtype}", sdpa.kernel, tensors, *chosen, "loop_splitting=1 partial_reduction_sinking=1",
            values=ATTENTION, is_causal=True,
        )  # fmt: skip
    query = tensor(2, 6, 200, 64, strides=(76800, 64, 384, 1))
    turned = dict.fromkeys(("query", "key", "value", "output"), query)
    put(
        "sdpa", "sdpa of heads inside", sdpa.kernel, turned, "descriptors=1",
        values=ATTENTION, is_causal=False,
    )  # fmt: skip
    empty = attention(6, 3, 200, 0, 64)
    put("sdpa", "sdpa of no keys", sdpa.kernel, empty, values=ATTENTION, is_causal=False)
    odd = attention(6, 4, 200, 200, 64)
    put("sdpa", "sdpa of 6 heads for 4", sdpa.kernel, odd, values=ATTENTION, is_causal=False)
    looped = attention(4, 2, 128, 200, 64)
    put(
        "sdpa", "looped", PRODUCTS["looped"], looped, "descriptors=1 tma_pipeline=1",
        values=ATTENTION, is_causal=True,
    )  # fmt: skip


# Elements and rows.


def put_elements() -> None:
    """Vectors: where they end, what they hold, how they lie."""
    for size in (0, 1, 1000, 1024, 1031, LIMIT + 1031, 2**33):
        names = ("input", "other", "output")
        chosen = (
            ("program_coarsening=2", "eviction_policy=0") if size in (1031, LIMIT + 1031) else ()
        )
        chosen += ("dependent_launch=1",) if size == 1024 else ()
        vectors = dict.fromkeys(names, tensor(size))
        put("elements", f"add {size}", add.kernel, vectors, *chosen, BLOCK_SIZE=1024)
    mixed = {
        "input": tensor(1000, dtype="float32"), "other": tensor(1000, dtype="bfloat16", alignment=2),
        "output": tensor(1000, dtype="float64"),
    }  # fmt: skip
    put("elements", "add of mixed types", add.kernel, mixed, "program_coarsening=2", BLOCK_SIZE=128)
    lengths = {"input": tensor(299), "other": tensor(300), "output": tensor(301)}
    put("elements", "add of different sizes", add.kernel, lengths, BLOCK_SIZE=128)
    apart = {
        "input": tensor(1000, strides=(3,)), "other": tensor(1000, strides=(0,)),
        "output": tensor(1000, strides=(2,), alignment=4),
    }  # fmt: skip
    put(
        "elements",
        "add of elements apart",
        add.kernel,
        apart,
        "program_coarsening=4",
        BLOCK_SIZE=128,
    )
    far = dict.fromkeys(("input", "other", "output"), tensor(70000, strides=(32771,)))
    put(
        "elements",
        "add of elements far apart",
        add.kernel,
        far,
        "eviction_policy=0",
        BLOCK_SIZE=1024,
    )
    odd = dict.fromkeys(("input", "other", "output"), tensor(1000))
    put("elements", "add in odd tiles", add.kernel, odd, "program_coarsening=2", BLOCK_SIZE=100)
    put("elements", "add in a huge tile", add.kernel, odd, BLOCK_SIZE=2**21)
    many = dict.fromkeys(("input", "other", "output"), tensor(2**40))
    put("elements", "add of too many programs", add.kernel, many, BLOCK_SIZE=256)
    for dtype in ("float8_e4m3", "float8_e5m2", "int8", "bool", "int64"):
        pair = dict.fromkeys(("input", "output"), tensor(1000, dtype=dtype))
        put("elements", f"copy of {dtype}", KERNELS["copy"], pair, "program_coarsening=2", BLOCK=64)
        if "int" not in dtype:
            put("elements", f"copy or 7 of {dtype}", KERNELS["copy or 7"], pair, BLOCK=64)
    vector = dict.fromkeys(("input", "output"), tensor(1000))
    for alignment in (1, 2, 4, 8):
        pair = {"input": tensor(1000, alignment=alignment), "output": tensor(1000)}
        put("elements", f"silu from {alignment} bytes", silu.kernel, pair, BLOCK_SIZE=256)
    put("elements", "dropout", dropout.kernel, vector, "eviction_policy=0",
        scalars={"seed": "int32"}, BLOCK_SIZE=256)  # fmt: skip
    put("elements", "dropout of much", dropout.kernel,
        dict.fromkeys(("input", "output"), tensor(LIMIT + 5)), "dependent_launch=1",
        scalars={"seed": "int64", "p": "bool"}, BLOCK_SIZE=1024)  # fmt: skip
    for size in (1000, 16777216):
        names = ("input", "gate", "output")
        chosen = ("program_coarsening=2",) if size > 1000 else ("eviction_policy=0",)
        vectors = dict.fromkeys(names, tensor(size, dtype="bfloat16"))
        put("elements", f"swiglu {size}", swiglu.kernel, vectors, *chosen, BLOCK_SIZE=1024)
    sums = {"input": tensor(1000), "output": tensor(16)}
    put(
        "elements",
        "sums of blocks",
        KERNELS["sums of blocks"],
        sums,
        "program_coarsening=4",
        BLOCK=64,
    )
    single = KERNELS["halves of elements"]
    put(
        "elements",
        "halves of elements",
        single,
        vector,
        "program_coarsening=8",
        "eviction_policy=0",
    )
    put_turns()


def put_turns() -> None:
    """Tiles that take turns in memory."""
    for name in ("swapped", "backwards", "in a loop", "read between"):
        pair = dict.fromkeys(("input", "output"), tensor(61, dtype="float32"))
        put("elements", f"{name} 61", KERNELS[name], pair, BLOCK=8 if name == "backwards" else 5)
    apart = {"input": tensor(45, strides=(2,)), "output": tensor(45)}
    put("elements", "swapped apart", KERNELS["swapped"], apart, BLOCK=4)


def put_matrices() -> None:
    """Matrices in blocks, turned, flattened and padded."""
    pair = dict.fromkeys(("input", "output"), tensor(100, 70))
    far = dict.fromkeys(("input", "output"), tensor(70000, 70000))
    for name in ("double", "double padded", "double turned"):
        kernel = KERNELS[name]
        output = {"double padded": tensor(103, 73), "double turned": tensor(70, 100)}
        tensors = changed(pair, output=output.get(name, pair["output"]))
        put("matrices", name, kernel, tensors, "program_coarsening=2", ROWS=16, COLUMNS=32)
    plain = KERNELS["double"]
    part = changed(pair, input=tensor(100, 70, strides=(144, 1)))
    put("matrices", "double a part", plain, part, ROWS=32, COLUMNS=32)
    put("matrices", "double much", plain, far, "dependent_launch=1", ROWS=32, COLUMNS=64)
    put("matrices", "double rows of 12", plain, pair, "program_coarsening=2", ROWS=12, COLUMNS=20)
    put("matrices", "double odd blocks", KERNELS["double odd blocks"], pair, "program_coarsening=2")
    for name in ("double flattened", "double turned and flattened"):
        for label, input in (
            (" of a view", tensor(5, 7, 9, strides=(1000, 20, 2))),
            (" of much", tensor(1300, 1300, 1300)),
        ):
            output = tensor(*input.shape)
            if "turned" in name:
                output = tensor(input.shape[2], *input.shape[:2])
            tensors = {"input": input, "output": output}
            put("matrices", name + label, KERNELS[name], tensors, BLOCK=64)
    put_loops()


def put_loops() -> None:
    """Loops over the pieces of a row, and around a diagonal."""
    for width, size in ((16, 50), (12, 48)):
        tensors = {"input": tensor(3, size, dtype="float32"), "output": tensor(3, dtype="float32")}
        for name in ("largest", "after the first"):
            chosen = ("loop_splitting=1",) if size == 50 else ()
            put(
                "matrices",
                f"{name} {size} by {width}",
                KERNELS[name],
                tensors,
                *chosen,
                WIDTH=width,
            )
    for size, width in ((23, 8), (64, 16)):
        pair = dict.fromkeys(("input", "output"), tensor(size, size, dtype="float32"))
        for name in ("banded", "below"):
            put(
                "matrices",
                f"{name} {size} by {width}",
                KERNELS[name],
                pair,
                "loop_splitting=1",
                WIDTH=width,
            )
    for blocks in (3, 20):
        tensors = {"input": tensor(5, 8 * blocks), "output": tensor(5, 8, dtype="float32")}
        for name in ("sum of pieces", "moments"):
            chosen = ("split_k=3", "register_prefetch=1") if blocks == 20 else ()
            put("matrices", f"{name} {blocks}", KERNELS[name], tensors, *chosen, BLOCK=8)


def put_rows() -> None:
    """Rows: one a program, or several."""
    for shape in ((32, 1000), (33, 1), (0, 16), (16, 0), (70000, 40000)):
        pair = dict.fromkeys(("input", "output"), tensor(*shape))
        chosen = ("program_coarsening=2", "eviction_policy=0") if shape[1] == 1000 else ()
        put("rows", f"softmax {shape}", softmax.kernel, pair, *chosen)
        put("rows", f"rms {shape}", rms_norm.kernel, pair, *chosen)
    strided = {"input": tensor(32, 1000, strides=(2001, 2)), "output": tensor(32, 1000)}
    put(
        "rows",
        "softmax of a view",
        softmax.kernel,
        strided,
        "program_coarsening=2",
        "dependent_launch=1",
    )
    columns = {"input": tensor(32, 1000, strides=(1, 32)), "output": tensor(32, 1000)}
    put("rows", "softmax of columns", softmax.kernel, columns, "program_coarsening=4")
    typed = {
        "input": tensor(32, 500, dtype="float8_e5m2"),
        "output": tensor(32, 500, dtype="float32"),
    }
    put("rows", "softmax of float8", softmax.kernel, typed, "program_coarsening=2")
    for rows, columns_ in ((32, 1000), (4096, 4096)):
        matrix = tensor(rows, columns_, dtype="bfloat16")
        vector = tensor(columns_, dtype="bfloat16")
        chosen = (
            ("program_coarsening=2", "eviction_policy=0") if rows == 32 else ("dependent_launch=1",)
        )
        names = {"input": matrix, "weight": vector, "output": matrix}
        label = f"({rows}, {columns_})"
        put("rows", f"fused rms {label}", fused_rms_norm.kernel, names, *chosen)
        added = {**names, "residual": matrix, "total": matrix}
        put("rows", f"fused add rms {label}", fused_rms_norm.residual_kernel, added, *chosen)
        biased = {**names, "bias": vector}
        put("rows", f"layer norm {label}", layer_norm.kernel, biased, *chosen)
    pair = dict.fromkeys(("input", "output"), tensor(33, 16, dtype="float32"))
    put(
        "rows",
        "standardize",
        KERNELS["standardize"],
        pair,
        "program_coarsening=8",
        "eviction_policy=0 program_coarsening=4",
    )
    values = tensor(2048, 9000)
    results = {"values": values, "sums": tensor(2048, 1), "differences": values}
    name = "sums and differences"
    put("rows", name, KERNELS[name], results, "program_coarsening=2")
    batch = {"input": tensor(7, 9, 5), "scale": tensor(5), "output": tensor(7, 3, 5)}
    put("rows", "scaled sums", KERNELS["scaled sums"], batch, "program_coarsening=2")
    outer = {"left": tensor(17, 9), "right": tensor(17, 5), "output": tensor(17, 9, 5)}
    put("rows", "outer product", KERNELS["outer product"], outer, "program_coarsening=4")


def put_ropes() -> None:
    """Pairs that are turned, into another tensor and in place."""
    tables = tensor(17, 32)
    heads = tensor(2, 17, 6, 64)
    placed = {"input": heads, "sin_table": tables, "cos_table": tables}
    tensors = {**placed, "output": heads}
    put("rope", "rope of 6", rope.kernel, tensors, "eviction_policy=0")
    put("rope", "rope halves of 6", rope.halves_kernel, tensors, "program_coarsening=2")
    put("rope", "rope in place of 6", rope_in_place.kernel, placed, "dependent_launch=1")
    put(
        "rope",
        "rope halves in place of 6",
        rope_in_place.halves_kernel,
        placed,
        "program_coarsening=2",
    )
    view = tensor(2, 17, 5, 64, strides=(20000, 1000, 200, 2))
    placed = {"input": view, "sin_table": tables, "cos_table": tables}
    for label, kernel in (
        ("rope in place", rope_in_place.kernel),
        ("one head", KERNELS["one head"]),
        ("one head, halves", KERNELS["one head, halves"]),
    ):
        put("rope", f"{label} of a view", kernel, placed, "program_coarsening=4")
    whole = {**placed, "input": tensor(2, 17, 5, 64, dtype="bfloat16")}
    for name in ("one head", "one head, halves"):
        put("rope", name, KERNELS[name], whole, "program_coarsening=8")
    odd = {"input": tensor(2, 17, 5, 63), "sin_table": tables, "cos_table": tables}
    put("rope", "rope in place of 63 elements", rope_in_place.kernel, odd)


def put_sequences() -> None:
    """Sequences of different lengths."""
    for label, length, dtype in (
        ("", 9, "float32"), (" by 8", 8, "float32"),
        (" of 64 bits", LIMIT + 9, "int8"),
    ):  # fmt: skip
        tensors = {
            "x": tensor(3, length, strides=(0, 1), dtype=dtype),
            "y": tensor(3, length, dtype="float32"),
            "z": tensor(3, 1, dtype="float32"),
        }
        for name, kernel in JAGGED.items():
            chosen = ("loop_splitting=1",) if name == "bounded" and length != 8 else ()
            put("jagged", name + label, kernel, tensors, *chosen)
    constants = {"BLOCK_SIZE_L": 16, "BLOCK_SIZE_D": 64}
    for value in (0.0, -1.5):
        kernel = jagged_to_padded.kernel_for(value)
        for length, width, dtype in (
            (20, 64, "float16"),
            (20, 50, "float32"),
            (16, 64, "float8_e4m3"),
        ):
            input = tensor(3, length, width, strides=(0, width, 1), dtype=dtype)
            tensors = {"input": input, "output": tensor(3, length, width, dtype=dtype)}
            name = f"jagged to padded {value} {length}x{width} of {dtype}"
            put("jagged", name, kernel, tensors, "eviction_policy=0", **constants)


def put_language() -> None:
    """What an application may say."""
    shape = (20, 40)
    for name, kernel in LANGUAGE.items():
        names = [parameter.name for parameter in kernel.definition.parameters]
        constants = {"ROWS": 8, "COLUMNS": 16}
        for flag in (True, False) if "FLAG" in names else (None,):
            given = {**constants, "FLAG": flag} if flag is not None else constants
            matrices = [n for n in names if n not in ("n", "FLAG")]
            tensors = dict.fromkeys(matrices, tensor(*shape, dtype="float32"))
            label = name if flag is None else f"{name} {flag}"
            put("language", label, kernel, tensors, scalars=_whole(names), **given)
    whole = LANGUAGE["quotients"]
    tensors = dict.fromkeys(("x", "y"), tensor(*shape, dtype="int32"))
    put(
        "language", "quotients of whole numbers", whole, tensors,
        scalars={"n": "int64"}, ROWS=8, COLUMNS=16,
    )  # fmt: skip


def _whole(names: list[str]) -> dict[str, str]:
    return {"n": "int32"} if "n" in names else {}


put_products()
put_windows()
put_attention()
put_elements()
put_matrices()
put_rows()
put_ropes()
put_sequences()
put_language()

#: The calls by hand whose offers are stored: no two of them offer the same.
SUBJECTS = [
    subject
    for subject, _ in _TABLE
    if subject.name
    in (
        "mm 997x1009x1013", "mm 512x512x512 of float32", "mm 65536x64x65536", "windows as columns",
        "sdpa of float32", "swiglu 16777216", "one head", "sums and differences", "banded 23 by 8",
        "moments 20", "activated 20x100x33", "exponentials 50", "rope of 6", "bounded",
        "sdpa True (32, 8, 77, 777, 80)",
    )
]  # fmt: skip
