"""What the compiler is told that sizes, strides and addresses are multiples of."""

from __future__ import annotations

import re

import pytest

from examples import add, mm, softmax
from ninetoothed.backends.base import Argument, Call
from ninetoothed.backends.triton.planning.planner import compiled_for
from ninetoothed.backends.triton.specialization import divisors
from ninetoothed.backends.triton.specialization.target import Target
from ninetoothed.backends.triton.translation import specialize
from ninetoothed.language import dtypes
from ninetoothed.launch.kernel import Kernel
from ninetoothed.tuning.space import Config

pytest.importorskip("triton", reason="needs Triton")


def rows(*shape: int, step: int | None = None, alignment: int = 16, dtype=dtypes.float16):
    """A tensor whose rows begin ``step`` elements after one another."""
    strides = (step or shape[-1], 1) if len(shape) == 2 else (1,)
    return Argument(shape, strides, dtype, alignment)


def call_of(config: Config, **arguments: Argument) -> Call:
    return Call(arguments, constants=dict(config.values))


def accesses(kernel: Kernel, config: Config, **arguments: Argument) -> set[str]:
    """The kinds of accesses to global memory in the machine's text."""
    specialized = specialize(kernel.definition, call_of(config, **arguments), config)
    compiled = compiled_for(kernel.definition, specialized, Target.parse(("cuda", 90)), config)
    found = re.findall(
        r"(?:ld|st)\.global\S*?(?:\.v\d)?\.b\d+|cp\.async\.c[ag]", compiled.asm["ptx"]
    )
    return {re.sub(r"\.global.*?(?=(?:\.v\d)?\.b\d+$)", "", access) for access in found}


def vectors(width: str) -> set[str]:
    return {f"ld.{width}", f"st.{width}"}


def softmax_of(input: Argument) -> set[str]:
    return accesses(softmax.kernel, Config((), 4, 3), input=input, output=rows(*input.shape))


WIDTHS = [(1024, "v4.b32"), (1000, "v4.b32"), (500, "v2.b32"), (250, "b32"), (1001, "b16")]


@pytest.mark.parametrize("columns, width", WIDTHS)
def test_rows_are_moved_by_as_wide_accesses_as_their_length_allows(columns, width) -> None:
    assert softmax_of(rows(64, columns)) == vectors(width)


@pytest.mark.parametrize(
    "alignment, width", [(16, "v4.b32"), (8, "v2.b32"), (4, "b32"), (2, "b16")]
)
def test_views_are_moved_by_as_wide_accesses_as_their_address_allows(alignment, width) -> None:
    assert softmax_of(rows(64, 1000, alignment=alignment)) == {f"ld.{width}", "st.v4.b32"}


@pytest.mark.parametrize("step, width", [(1000, "v4.b32"), (1004, "v2.b32"), (1001, "b16")])
def test_rows_of_a_wider_tensor_count_by_where_they_begin(step, width) -> None:
    assert softmax_of(rows(64, 1000, step=step)) == {f"ld.{width}", "st.v4.b32"}


@pytest.mark.parametrize("size, width", [(1000, "v4.b32"), (1004, "v2.b32"), (1003, "b16")])
def test_the_end_of_a_mask_counts(size, width) -> None:
    config = Config((("BLOCK_SIZE", 1024),), 4, 3)
    vector = rows(size)
    assert accesses(add.kernel, config, input=vector, other=vector, output=vector) == vectors(width)


def product(m: int, k: int, n: int) -> tuple[Config, dict[str, Argument]]:
    names = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K")
    config = Config(tuple(zip(names, (64, 64, 64), strict=True)), 4, 3)
    return config, {"input": rows(m, k), "other": rows(k, n), "output": rows(m, n)}


def test_products_are_copied_in_the_background_sixteen_bytes_at_a_time() -> None:
    config, arguments = product(100, 1000, 200)
    assert accesses(mm.kernel, config, **arguments) == {"cp.async.cg", "st.v4.b32"}


def test_less_than_sixteen_is_told_only_where_it_decides_how_wide_accesses_are() -> None:
    """Rows are not counted, so that a product of 100 and one of 101 rows share a compiled kernel."""
    config, arguments = product(100, 1000, 500)
    told = specialize(mm.kernel.definition, call_of(config, **arguments), config).divisors
    assert told == {
        **dict.fromkeys(("input_ptr", "other_ptr", "output_ptr"), 16),
        **dict.fromkeys(("input_size_1", "input_stride_0"), 8),
        **dict.fromkeys(("other_size_1", "other_stride_0"), 4),
        **dict.fromkeys(("output_size_1", "output_stride_0"), 4),
    }
    other = {**arguments, "input": rows(101, 1000), "output": rows(101, 500)}
    assert specialize(mm.kernel.definition, call_of(config, **other), config).divisors == told


@pytest.mark.parametrize(
    "number, expected", [(0, 16), (1, 1), (6, 2), (12, 4), (-8, 8), (48, 16), (2**40, 16)]
)
def test_the_divisor_of_a_number(number: int, expected: int) -> None:
    assert divisors.divisor(number) == expected


@pytest.mark.parametrize(
    "argument, expected",
    [
        (rows(64, 1000), 16),
        (rows(64, 1000, alignment=8), 4),
        (rows(64, 500), 4),
        (rows(64, 1000, step=1001), 1),
        (rows(500, dtype=dtypes.float32), 16),
        (Argument((8, 8), (16, 2), dtypes.float16), 1),
    ],
)
def test_tensors_are_tuned_by_how_wide_their_accesses_may_be(argument, expected) -> None:
    assert divisors.width_of(argument) == expected
