"""The debug mode: what it reports, and where."""

from __future__ import annotations

import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.backends.numpy.execution.checking import check
from ninetoothed.errors import ConflictingStoreError, OutOfBoundsError, OutOfRangeError

torch = pytest.importorskip("torch", reason="needs PyTorch")


def blocks(*tensors):
    return tuple(tensor.tile((4,)) for tensor in tensors)


def copy(x, out):
    out = x


def make(application, arrangement=blocks, count=2):
    return ninetoothed.make(arrangement, application, tuple(Tensor(1) for _ in range(count)))


def test_a_right_kernel_passes():
    x, out = torch.arange(10.0), torch.empty(10)
    with check():
        make(copy)(x, out)
    assert torch.equal(out, x)


def test_an_element_that_two_lanes_store_to_is_reported():
    def application(x, out):
        out.source[x] = out.source[x] + 1

    x, out = torch.tensor([0, 2, 1, 2]), torch.zeros(3)
    kernel = ninetoothed.make(
        lambda x, out: (x.tile((4,)), out), application, (Tensor(1), Tensor(1))
    )
    with (
        check(),
        pytest.raises(
            ConflictingStoreError, match=r"\(0,\) stores several lanes to `out` at \(2,\)"
        ),
    ):
        kernel(x, out)


def test_an_element_that_two_programs_store_to_is_reported():
    def arrangement(x, out):
        return x.tile((4,)), out.tile((4,), strides=(2,))

    x, out = torch.arange(12.0), torch.empty(8)
    with (
        check(),
        pytest.raises(
            ConflictingStoreError, match=r"(?s)\(0,\) and \(1,\).*`out` at \(2,\).*out = x"
        ),
    ):
        make(copy, arrangement)(x, out)


def doubled(x, out):
    out = x * 2


def reversed_blocks(x, out):
    return x[::-1].tile((4,)), out.tile((4,))


@pytest.mark.parametrize(
    "arguments, arrangement, words",
    [
        (
            lambda b: (b[:8], b[1:9]),
            blocks,
            r"\(0,\) stores to `out` at \(3,\).*loads `x` at \(4,\)",
        ),
        (
            lambda b: (b[1:9], b[:8]),
            blocks,
            r"\(1,\) stores to `out` at \(4,\).*loads `x` at \(3,\)",
        ),
        (lambda b: (b[:8], b[:8]), reversed_blocks, r"stores to `out` at \(0,\).*`x` at \(0,\)"),
        (
            lambda b: (b.view(torch.uint8)[3:11], b[:8]),
            blocks,
            r"stores to `out` at \(1,\).*`x` at \(1,\)|stores to `out` at \(1,\).*`x` at \(4,\)",
        ),
    ],
)
def test_what_one_program_stores_and_another_loads_is_reported(arguments, arrangement, words):
    x, out = arguments(torch.arange(16.0))
    with check(), pytest.raises(ConflictingStoreError, match=f"(?s){words}.*out = x"):
        make(doubled, arrangement)(x, out)


@pytest.mark.parametrize(
    "arguments",
    [
        lambda b: (b, b),
        lambda b: (b[:8], b[8:]),
        lambda b: (b[::2], b[1::2]),
        lambda b: (b[:4], b[1:5]),
        # Beside each two numbers of 64 bits those four of 32 that lie there.
        lambda b: (b[4:12], b.view(torch.float64)),
    ],
    ids=["in place", "halves", "every second", "one program", "its own"],
)
def test_what_a_program_stores_it_may_have_loaded_itself(arguments):
    x, out = arguments(torch.arange(16.0))
    expected = (x * 2).to(out.dtype)
    with check():
        make(doubled)(x, out)
    assert torch.equal(out, expected)


def test_two_outputs_that_overlap_are_reported():
    def application(x, one, other):
        one = x
        other = x

    out = torch.empty(12)
    with check(), pytest.raises(ConflictingStoreError, match=r"(?s)stores to `other` at \(0,\)"):
        make(application, count=3)(torch.ones(8), out[:8], out[4:])


def test_programs_that_wait_for_each_other_by_atomics_are_left_alone():
    def arrangement(x, out, lock):
        return *reversed_blocks(x, out), lock

    def application(x, out, lock):
        ntl.atomic_add(lock.data_ptr(), 1.0)
        out = x

    x = torch.arange(8.0)
    with check():
        make(application, arrangement, count=3)(x, x, torch.zeros(1))


def test_atomics_of_several_programs_are_no_conflict():
    def application(x, out):
        ntl.atomic_add(out.data_ptr() + ntl.arange(0, 4), x)

    x, out = torch.ones(8), torch.zeros(8)
    with check():
        make(application)(x, out)
    assert out.tolist() == [2, 2, 2, 2, 0, 0, 0, 0]


@pytest.mark.parametrize("size", [5, 8])
def test_what_is_read_for_positions_beyond_a_tile_is_of_no_consequence(size):
    def reverse(x, out):
        out = x.source[x.source.shape[0] - 1 - out.offsets(0)]

    x, out = torch.arange(float(size)), torch.empty(size)
    with check():
        make(reverse)(x, out)
    assert torch.equal(out, x.flip(0))


def test_a_source_read_outside_of_its_shape_is_reported():
    def application(x, out):
        out = x.source[out.offsets(0) + 1]

    x, out = torch.arange(8.0), torch.empty(8)
    with (
        check(),
        pytest.raises(
            OutOfBoundsError, match=r"(?s)`x.source` is read at \(8,\).*\(8,\).*out = x.source"
        ),
    ):
        make(application)(x, out)


def test_what_other_says_of_elements_outside_is_no_mistake():
    def application(x, out):
        out = x.source[out.offsets(0) + 1]

    x, out = torch.arange(8.0), torch.empty(8)
    with check():
        ninetoothed.make(blocks, application, (Tensor(1, other=-1), Tensor(1)))(x, out)
    assert out.tolist() == [1, 2, 3, 4, 5, 6, 7, -1]


def test_a_source_written_outside_of_its_shape_is_reported():
    def application(x, out):
        out.source[x.offsets(0) - 1] = x

    x, out = torch.arange(8.0), torch.empty(8)
    with check(), pytest.raises(OutOfBoundsError, match=r"`out.source` is written at \(-1,\)"):
        make(application)(x, out)


def test_a_row_outside_is_reported_with_the_column_it_met():
    def application(x, out):
        places = x.offsets(0)
        out.source[places[:, None], places[None, :]] = x[:, None] + x[None, :]

    x, out = torch.arange(8.0), torch.empty(8, 7)
    kernel = ninetoothed.make(
        lambda x, out: (x.tile((8,)), out), application, (Tensor(1), Tensor(2))
    )
    with check(), pytest.raises(OutOfBoundsError, match=r"written at \(0, 7\).*lane \(0, 7\)"):
        kernel(x, out)


def test_what_takes_no_part_in_an_atomic_operation_is_not_outside():
    def application(x, out):
        ntl.atomic_add(out.source[x.offsets(0)], x)

    def masked(x, out):
        ntl.atomic_add(out.source[x.offsets(0)], x, mask=x < 5)

    def arrangement(x, out):
        return x.tile((8,)), out

    x, out = torch.arange(7.0), torch.zeros(7)
    with check():
        make(application, arrangement)(x, out)
        make(masked, arrangement)(x, out[:5])
    assert out.tolist() == [0, 2, 4, 6, 8, 5, 6]
    with check(), pytest.raises(OutOfBoundsError, match=r"`out.source` is written at \(5,\)"):
        make(application, arrangement)(x, out[:5])


def test_without_the_debug_mode_source_accesses_outside_are_left_out():
    def application(x, out):
        out = x.source[out.offsets(0) + 1]

    x, out = torch.arange(8.0), torch.empty(8)
    make(application)(x, out)
    assert out.tolist() == [1, 2, 3, 4, 5, 6, 7, 0]


def test_a_selection_outside_of_its_level_is_reported():
    def arrangement(x, out):
        return x.tile((2,)).tile((2,)), out.tile((4,))

    def application(x, out):
        for k in range(3):
            out = ntl.zeros(out.shape, ntl.float32) + ntl.sum(x[k])

    x, out = torch.arange(8.0), torch.empty(8)
    with (
        check(),
        pytest.raises(
            OutOfBoundsError,
            match=r"(?s)`x` is indexed with 2 in dimension 0, whose size is 2.*x\[k\]",
        ),
    ):
        make(application, arrangement)(x, out)


def test_a_read_beyond_a_level_is_none_where_the_tensor_has_other():
    def arrangement(x, out):
        return x.tile((2,)).tile((-1,)), out.tile((2,)).tile((-1,))

    def beside(x, out):
        for k in range(x.shape[0]):
            out[k] = x[k - 1] + x[k + 1]

    def stored(x, out):
        out[0] = x[0]
        x[x.shape[0]] = x[0]

    def added(x, out):
        out[0] = x[0]
        ntl.atomic_add(x[x.shape[0]], x[0])

    padded, x, out = (Tensor(1, other=3.0), Tensor(1)), torch.arange(8.0), torch.empty(8)
    with check():
        ninetoothed.make(arrangement, beside, padded)(x, out)
    assert out.tolist() == [5, 6, 4, 6, 8, 10, 7, 8]
    with check(), pytest.raises(OutOfBoundsError, match="`x` is indexed with -1 in dimension 0"):
        ninetoothed.make(arrangement, beside, (Tensor(1), Tensor(1)))(x, out)
    for application in (stored, added):
        kernel = ninetoothed.make(arrangement, application, padded)
        with check(), pytest.raises(OutOfBoundsError, match="indexed with 4.*whose size is 4"):
            kernel(x, out)


def test_the_environment_variable_switches_it_on(monkeypatch):
    def application(x, out):
        out = x.source[out.offsets(0) + 1]

    kernel = make(application)
    kernel(torch.arange(8.0), torch.empty(8))
    monkeypatch.setenv("NINETOOTHED_DEBUG", "1")
    with pytest.raises(OutOfBoundsError):
        kernel(torch.arange(8.0), torch.empty(8))


def truncated(x, out):
    out = ntl.cast(x, out.dtype)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
def test_a_float_out_of_an_integers_range_is_reported(dtype):
    limits, kernel = torch.iinfo(dtype), make(truncated)
    # Five elements are eight lanes; what is beyond them is no float.
    within = [0.0, 1.9, -0.9, 100.5, float(limits.min)]
    out = torch.empty(5, dtype=dtype)
    with check():
        kernel(torch.tensor(within, dtype=torch.float64), out)
    assert out.tolist() == [0, 1, 0, 100, limits.min]
    for number in (2.0**limits.bits, -(2.0**limits.bits), float("nan"), float("inf")):
        x = torch.tensor([*within[:4], number], dtype=torch.float64)
        with check(), pytest.raises(OutOfRangeError, match=rf"becomes {kernel_type(dtype)}.*clamp"):
            kernel(x, out)
        kernel(x, out)


def kernel_type(dtype):
    return str(dtype).removeprefix("torch.")


def test_a_store_of_floats_to_integers_is_reported_too():
    x, out = torch.tensor([1.0, 128.0]), torch.empty(2, dtype=torch.int8)
    with (
        check(),
        pytest.raises(OutOfRangeError, match=r"128.0 becomes int8, which holds -128 to 127"),
    ):
        make(copy)(x, out)
    flags = torch.empty(2, dtype=torch.bool)
    with check():
        make(copy)(x, flags)
    assert flags.all()
