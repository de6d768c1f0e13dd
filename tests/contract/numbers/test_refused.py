"""LANGUAGE.md, "Numbers": what no backend computes is an error with its place on each."""

from __future__ import annotations

import pytest
import torch

import ninetoothed.language as ntl
from ninetoothed.errors import ApplicationError
from tests.contract.application.test_kinds import called


def filled_by_a_fraction(x, y):
    y = x + ntl.sum(ntl.full((4,), 1.7, ntl.int32))


def filled_by_too_much(x, y):
    y = x + ntl.sum(ntl.full((4,), 300, ntl.int8))


def filled_below_nothing(x, y):
    y = x + ntl.sum(ntl.full((4,), -1, ntl.uint8))


def made_of_a_number(x, y):
    y = x + ntl.sum(ntl.full(4, 1.0, ntl.float32))


def made_of_a_padded_number(x, y):
    y = x + ntl.sum(ntl.zeros(5, ntl.float32))


def made_of_one_size(x, y):
    y = x + ntl.zeros(x.shape[0] * 2 // 2, ntl.float32)


def made_of_a_size_of_a_value(x, y):
    y = (v := x * 2) + ntl.zeros(v.shape[0], ntl.float32)


def combined_by_the_language(x, y):
    y = ntl.reduce(x, 0, ntl.maximum)


def scanned_by_the_language(x, y):
    y = ntl.associative_scan(x, 0, ntl.minimum)


def as_long_as_programs_say(x, y):
    y = x + ntl.sum(ntl.zeros((ntl.program_id(0) + 4,), ntl.float32))


def as_long_as_a_sum(x, y):
    y = x + ntl.sum(ntl.full((ntl.sum(ntl.arange(0, 4)) - 2,), 1.0, ntl.float32))


def counted_to_the_number_of_programs(x, y):
    y = x + ntl.arange(0, ntl.num_programs(0) * 4)


def summed_along_any_axis(x, y):
    y = ntl.sum(x, ntl.program_id(0))


def greatest_along_any_axis(x, y):
    y = x.max(axis=ntl.program_id(0))


def gathered_along_any_axis(x, y):
    y = ntl.gather(x, ntl.arange(0, 4), ntl.program_id(0))


def turned_either_way(x, y):
    y = ntl.sum(ntl.trans(x[None, :], ntl.program_id(0), 1), 0)


def indexed_by_floats(x, y):
    y = x + x.source[x]


def selected_by_a_float(x, y):
    y = x + x[x[0] * 1.0]


def stored_at_floats(x, y):
    y.source[x] = 1.0


def gathered_by_truth_values(x, y):
    y = ntl.gather(x, x > 1, 0)


def counted_floats(x, y):
    y = ntl.sum(ntl.histogram(x, 4), 0) + x


def sorted_either_way(x, y):
    y = ntl.sort(x, descending=x[0] > 1)


def scanned_either_way(x, y):
    y = ntl.cumsum(x, 0, x[0] > 1)


def of_any_number_of_the_greatest(x, y):
    y = ntl.sum(ntl.topk(x, ntl.program_id(0) + 1))


def unrolled_any_number_of_times(x, y):
    for _ in ntl.static_range(ntl.program_id(0)):
        y = x


def exponential_of_a_literal(x, y):
    y = x * ntl.exp(2)


def root_of_a_size(x, y):
    y = x / ntl.sqrt(x.shape[0])


def sine_of_integers(x, y):
    y = ntl.sin(x.to(ntl.int32))


def bits_of_a_tile(x, y):
    ntl.atomic_and(y, x)


def bits_of_an_element(x, y):
    ntl.atomic_xor(y.source[0], 1)


def made_empty(x, y):
    y = x + ntl.sum(ntl.zeros((0,), ntl.float32))


def counted_into_three(x, y):
    y = ntl.sum(ntl.histogram(x.to(ntl.int32), 3))


def put_behind_in_any_order(x, y):
    y = ntl.sum(ntl.cat(x, x))


def joined_with_another_type(x, y):
    y = ntl.sum(ntl.join(x, x.to(ntl.int64)))


def multiplied_as_integers(x, y):
    y = ntl.fma(x.to(ntl.int32), 2, 1)


def added_in_8_bits(x, y):
    y = x.to(ntl.float8e5) + x.to(ntl.float8e5)


def compared_in_8_bits(x, y):
    y = x.to(ntl.float8e5) < 1.0


def negated_in_8_bits(x, y):
    y = -x.to(ntl.float8e5)


def summed_in_8_bits(x, y):
    y = ntl.sum(x.to(ntl.float8e5))


def sorted_in_8_bits(x, y):
    y = ntl.sort(x.to(ntl.float8e5))


def scanned_in_8_bits(x, y):
    y = ntl.cumsum(x.to(ntl.float8e5))


def added_by_name_in_8_bits(x, y):
    y = ntl.add(x.to(ntl.float8e5), x.to(ntl.float8e5))


def greater_in_8_bits(x, y):
    y = ntl.maximum(x.to(ntl.float8e5), x.to(ntl.float8e5))


def denied_in_8_bits(x, y):
    y = not x.to(ntl.float8e5)


def both_in_8_bits(x, y):
    y = x.to(ntl.float8e5) and x


def decided_in_8_bits(x, y):
    y = ntl.where(x.to(ntl.float8e5), x, 0)


def drawn_by_8_bits(x, y):
    y = ntl.rand(3, x.to(ntl.float8e5))


def drawn_at_floats(x, y):
    y = ntl.rand(3, x)


def drawn_at_doubles(x, y):
    y = ntl.randint(3, x.to(ntl.float64))


def drawn_at_a_fraction(x, y):
    y = x + ntl.randn(3, 2.5)


def drawn_with_a_seed_of_floats(x, y):
    y = ntl.rand4x(x, x.to(ntl.int32))[0]


def mapped_in_8_bits(x, y):
    y = ntl.map_elementwise(lambda a: a + a, x.to(ntl.float8e5)).to(ntl.float32)


def merged_in_8_bits(x, y):
    y = ntl.bitonic_merge(x.to(ntl.float8e5)).to(ntl.float32)


def integers_filled_with_8_bits(x, y):
    y = x + ntl.sum(ntl.full((4,), ntl.zeros((1,), ntl.float8e5), ntl.int32).to(ntl.float32))


def divided_by_8_bits(x, y):
    y = ntl.fdiv(x.to(ntl.float64), x.to(ntl.float8e5)).to(ntl.float32)


def decided_by_8_bits(x, y):
    if ntl.zeros((1,), ntl.float8e5):
        y = x


def rounded_to_more(x, y):
    y = x.to(ntl.float16).to(ntl.float32, "rtz")


def rounded_from_64_bits(x, y):
    y = x.to(ntl.float64).to(ntl.float16, fp_downcast_rounding="rtz").to(ntl.float32)


def rounded_to_8_bits(x, y):
    y = x.to(ntl.float8e4nv, "rtz").to(ntl.float32)


def either_of_floats(x, y):
    y = ntl.where(x.logical_or(x > 1), x, 0.0)


def both_of_numbers(x, y):
    y = ntl.where((x > 1).logical_and(1), x, 0.0)


def floors_by_8_bits(x, y):
    y = x // x.to(ntl.float8e5)


def two_kinds_of_8_bits(x, y):
    y = x.to(ntl.float8e4nv) / x.to(ntl.float8e5)


def mapped_beside_8_bits(x, y):
    y = ntl.map_elementwise(lambda a, b: a + b, x, x.to(ntl.float8e5))


def chosen_beside_8_bits(x, y):
    y = ntl.where(x > 1, 1.5, x.to(ntl.float8e5)).to(ntl.float32)


def by_what_a_type_tells_in_8_bits(x, y):
    y = x.to(ntl.float8e5) + (1.5 if x.dtype.is_floating() else 2.5)


def by_what_a_type_is_in_8_bits(x, y):
    y = x.to(ntl.float8e5) * (2.0 if x.dtype == ntl.float32 else 2.5)


def by_a_width_in_8_bits(x, y):
    y = x.to(ntl.float8e5) * x.dtype.primitive_bitwidth


def by_a_size_in_8_bits(x, y):
    y = x.to(ntl.float8e5) * x.shape[0]


def chosen_beside_what_a_type_tells(x, y):
    y = ntl.where(x > 1, x.to(ntl.float8e5), 1 if x.dtype.is_floating() else 2).to(ntl.float32)


def chosen_beside_integers(x, y):
    y = ntl.where(x > 1, x.to(ntl.float8e5), x.to(ntl.int32)).to(ntl.float32)


def place_in_8_bits(x, y):
    y = ntl.argmax(x.to(ntl.float8e5), 0)


def integers_of_8_bits(x, y):
    y = x.to(ntl.float8e5).to(ntl.int32)


def doubles_of_8_bits(x, y):
    y = x.to(ntl.float8e5).to(ntl.float64)


def eight_bits_of_integers(x, y):
    y = x.to(ntl.int32).to(ntl.float8e5)


def eight_bits_of_others(x, y):
    y = x.to(ntl.float8e4nv).to(ntl.float8e5)


def filled_in_8_bits(x, y):
    y = ntl.full((4,), 3, ntl.float8e5)


@pytest.mark.parametrize(
    ("application", "message"),
    [
        (filled_by_a_fraction, "1.7 does not fit a tile of int32"),
        (filled_by_too_much, "300 does not fit a tile of int8"),
        (filled_below_nothing, "-1 does not fit a tile of uint8"),
        (made_of_a_number, "`ntl.full` needs a shape"),
        (made_of_a_padded_number, "`ntl.zeros` needs a shape"),
        (made_of_one_size, "`ntl.zeros` needs a shape"),
        (made_of_a_size_of_a_value, "`ntl.zeros` needs a shape"),
        (combined_by_the_language, "`ntl.reduce` takes a function of elements"),
        (scanned_by_the_language, "`ntl.associative_scan` takes a function of elements"),
        (as_long_as_programs_say, "The size of a tile is needed at compile time"),
        (as_long_as_a_sum, "The size of a tile is needed at compile time"),
        (counted_to_the_number_of_programs, "The size of a tile is needed at compile time"),
        (summed_along_any_axis, "`axis` of `ntl.sum` is needed at compile time"),
        (greatest_along_any_axis, "`axis` of `ntl.max` is needed at compile time"),
        (gathered_along_any_axis, "`axis` of `ntl.gather` is needed at compile time"),
        (turned_either_way, r"`\*dims` of `ntl.trans` is needed at compile time"),
        (indexed_by_floats, "An index must be an integer, but got float32: cast it"),
        (selected_by_a_float, "An index must be an integer, but got float32: cast it"),
        (stored_at_floats, "An index must be an integer, but got float32: cast it"),
        (gathered_by_truth_values, "`ntl.gather` needs an integer index, but got bool"),
        (counted_floats, "`ntl.histogram` counts integers, but got float32."),
        (sorted_either_way, "`descending` of `ntl.sort` is needed at compile time"),
        (scanned_either_way, "`reverse` of `ntl.cumsum` is needed at compile time"),
        (of_any_number_of_the_greatest, "`k` of `ntl.topk` is needed at compile time"),
        (unrolled_any_number_of_times, "A bound of `ntl.static_range` is needed at compile time"),
        (exponential_of_a_literal, "`ntl.exp` takes floats, but got int32"),
        (root_of_a_size, "`ntl.sqrt` takes floats, but got int"),
        (sine_of_integers, "`ntl.sin` takes floats, but got int32"),
        (bits_of_a_tile, "`ntl.atomic_and` needs integers, but got float32"),
        (bits_of_an_element, "`ntl.atomic_xor` needs integers, but got float32"),
        (made_empty, "size must be 1 or more, but got 0"),
        (counted_into_three, "a power of two of bins, but got 3"),
        (put_behind_in_any_order, "can_reorder=True"),
        (joined_with_another_type, "one type, but got float32 and int64"),
        (multiplied_as_integers, "takes floats, but got int32"),
        (added_in_8_bits, r"no device computes with them"),
        (compared_in_8_bits, r"no device computes with them"),
        (negated_in_8_bits, r"no device computes with them"),
        (summed_in_8_bits, r"no device computes with them"),
        (sorted_in_8_bits, r"no device computes with them"),
        (scanned_in_8_bits, r"no device computes with them"),
        (added_by_name_in_8_bits, r"no device computes with them"),
        (greater_in_8_bits, r"no device computes with them"),
        (denied_in_8_bits, r"no device computes with them"),
        (both_in_8_bits, r"no device computes with them"),
        (decided_in_8_bits, r"no device computes with them"),
        (drawn_by_8_bits, r"no device computes with them"),
        (drawn_at_floats, "`ntl.rand` takes integers, but got float32"),
        (drawn_at_doubles, "`ntl.randint` takes integers, but got float64"),
        (drawn_at_a_fraction, "`ntl.randn` takes integers, but got float"),
        (drawn_with_a_seed_of_floats, "`ntl.rand4x` takes integers, but got float32"),
        (mapped_in_8_bits, r"no device computes with them"),
        (merged_in_8_bits, r"no device computes with them"),
        (floors_by_8_bits, r"no device computes with them"),
        (two_kinds_of_8_bits, r"no device computes with them"),
        (mapped_beside_8_bits, r"no device computes with them"),
        (chosen_beside_8_bits, r"no device computes with them"),
        (by_what_a_type_tells_in_8_bits, r"no device computes with them"),
        (by_what_a_type_is_in_8_bits, r"no device computes with them"),
        (by_a_width_in_8_bits, r"no device computes with them"),
        (by_a_size_in_8_bits, r"no device computes with them"),
        (chosen_beside_what_a_type_tells, r"no device computes with them"),
        (chosen_beside_integers, r"no device computes with them"),
        (place_in_8_bits, r"no device computes with them"),
        (integers_of_8_bits, r"on any device, but this makes .*: cast twice"),
        (doubles_of_8_bits, r"on any device, but this makes .*: cast twice"),
        (eight_bits_of_integers, r"on any device, but this makes .*: cast twice"),
        (eight_bits_of_others, r"on any device, but this makes .*: cast twice"),
        (integers_filled_with_8_bits, r"on any device, but this makes .*: cast twice"),
        (divided_by_8_bits, r"on any device, but this makes .*: cast twice"),
        (decided_by_8_bits, r"no device computes with them"),
        (rounded_to_more, "is for a conversion to a narrower float"),
        (rounded_from_64_bits, "this makes float16 of float64: cast to float32 first"),
        (rounded_to_8_bits, "this makes float8_e4m3 of float32"),
        (either_of_floats, "`ntl.logical_or` takes truth values, but got float32: write `x or y`"),
        (both_of_numbers, "`ntl.logical_and` takes truth values, but got int: write `x and y`"),
        (filled_in_8_bits, "`ntl.full` makes no float8_e5m2"),
    ],
)
def test_what_no_backend_computes_is_refused_with_its_place(application, message):
    with pytest.raises(ApplicationError, match=message) as caught:
        called(application, torch.ones(4))
    assert caught.value.location.line == application.__code__.co_firstlineno + 1
