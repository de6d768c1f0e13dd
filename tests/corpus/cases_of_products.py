"""Cases with products, windows and attention."""

from __future__ import annotations

from typing import Any

from examples import addmm, bmm, conv2d, max_pool2d, mm, sdpa
from tests.corpus.package import Kernel, tensor
from tests.corpus.products import PRODUCTS
from tests.corpus.table import ATTENTION, BLOCKS, LIMIT, SMALL, changed, put

# Products.


def product(m: int, k: int, n: int, dtype: str = "float16", result: str | None = None) -> Any:
    """The tensors of a product of matrices."""
    return {
        "input": tensor(m, k, dtype=dtype),
        "other": tensor(k, n, dtype=dtype),
        "output": tensor(m, n, dtype=result or dtype),
    }


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


def put_classes_of_products() -> None:
    """Products and attention of which the class of sizes alone is known."""
    for m, k, n in ((1000, 4096, 4096), (1001, 1003, 512)):
        label = f"mm of the class of {m}x{k}x{n}"
        chosen = ("descriptors=1",) if k % 8 == 0 else ()
        given = product(m, k, n)
        put("classes", label, mm.kernel, given, *chosen, values=BLOCKS, is_general=True)
    heads = dict.fromkeys(("query", "key", "value", "output"), tensor(1, 8, 1000, 64))
    put("classes", "sdpa of the class of 1000", sdpa.kernel, heads, "loop_splitting=1",
        values=ATTENTION, is_general=True, is_causal=True)  # fmt: skip


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
        for window, step, result in (((2, 2), (2, 2), (16, 16)), ((3, 5), (1, 3), (30, 10))):
            tensors = {"input": tensor(4, 16, 32, 32), "output": tensor(4, 16, *result)}
            constants = dict(zip(("WINDOW_HEIGHT", "WINDOW_WIDTH"), window))
            constants |= dict(zip(("STRIDE_HEIGHT", "STRIDE_WIDTH"), step))
            name = f"{label} {window[0]}x{window[1]} by {step[0]}x{step[1]}"
            chosen = ("unrolled_reduction=1",) if window == (2, 2) else ()
            put("pool", name, kernel, tensors, *chosen, **constants, BLOCK_SIZE=256)


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
