"""Cases that were not measured: other strides, element types, sizes and kernels.

Every set of options here is right for its call, as `options.are_right` has it.
"""

from __future__ import annotations

from collections.abc import Iterator

from examples import (
    add,
    dropout,
    fused_rms_norm,
    jagged_to_padded,
    layer_norm,
    rms_norm,
    rope,
    rope_in_place,
    silu,
    softmax,
    swiglu,
)
from tests.corpus.cases import Case
from tests.corpus.cases_of_products import (
    put_attention,
    put_classes_of_products,
    put_products,
    put_windows,
)
from tests.corpus.kernels import JAGGED, KERNELS
from tests.corpus.language import LANGUAGE
from tests.corpus.package import tensor
from tests.corpus.table import LIMIT, TABLE, changed, put


def by_hand() -> Iterator[Case]:
    """The cases of the table."""
    for subject, chosen in TABLE:
        for options in chosen:
            yield subject.case(options)


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
            chosen = (
                ("split_k=3", "register_prefetch=1", "loop_pipelining=3") if blocks == 20 else ()
            )
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


def put_classes() -> None:
    """What sizes of one class share."""
    for length, dtype in (
        (300, "float16"),
        (1001, "float16"),
        (3000, "float32"),
        (5000, "bfloat16"),
    ):
        pair = dict.fromkeys(("input", "output"), tensor(512, length, dtype=dtype))
        for name, kernel in (("softmax", softmax.kernel), ("rms_norm", rms_norm.kernel)):
            label = f"{name} of the class of {length} of {dtype}"
            put("classes", label, kernel, pair, "dependent_launch=1", is_general=True)
    short = dict.fromkeys(("input", "output"), tensor(512, 100))
    put("classes", "softmax of the class of 100", softmax.kernel, short, is_general=True)
    for length in (1003, 1000, 512 * 3):
        pair = dict.fromkeys(("input", "output"), tensor(length))
        label = f"silu of the class of {length}"
        put("classes", label, silu.kernel, pair, is_general=True, BLOCK_SIZE=1024)
    put_classes_of_products()


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
put_classes()

#: The calls by hand whose offers are stored: no two of them offer the same.
SUBJECTS = [
    subject
    for subject, _ in TABLE
    if subject.name
    in (
        "mm 997x1009x1013", "mm 512x512x512 of float32", "mm 65536x64x65536", "windows as columns",
        "sdpa of float32", "swiglu 16777216", "one head", "sums and differences", "banded 23 by 8",
        "moments 20", "activated 20x100x33", "exponentials 50", "rope of 6", "bounded",
        "sdpa True (32, 8, 77, 777, 80)",
    )
]  # fmt: skip
