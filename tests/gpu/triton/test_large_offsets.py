"""Elements past offset 2**31: 64-bit offsets where they are needed, on float16 tensors."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
from examples import add, softmax  # noqa: E402
from ninetoothed import Symbol, Tensor  # noqa: E402
from tests.examples.compare import poisoned_memory  # noqa: E402

LIMIT = 2**31
NEEDED = 40 * 2**30
BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


@pytest.fixture(autouse=True)
def enough_memory() -> None:
    free, _ = torch.cuda.mem_get_info()
    if free < NEEDED:
        pytest.skip(f"needs {NEEDED // 2**30} GiB of free device memory, {free // 2**30} are")


def copy_application(input, output):
    output = input


def vector_arrangement(input, output):
    return input.tile((BLOCK_SIZE,)), output.tile((BLOCK_SIZE,))


def matrix_arrangement(input, output):
    return input.tile((16, BLOCK_SIZE)), output.tile((16, BLOCK_SIZE))


copy_vector = ninetoothed.make(vector_arrangement, copy_application, (Tensor(1), Tensor(1)))
copy_matrix = ninetoothed.make(matrix_arrangement, copy_application, (Tensor(2), Tensor(2)))


def counted(size: int) -> torch.Tensor:
    """Float16 numbers that differ between neighbours, and between positions 2**31 or 2**32 apart."""
    values = torch.empty(size, dtype=torch.float16, device="cuda")
    step = 2**28
    for start in range(0, size, step):
        piece = torch.arange(start, min(start + step, size), device="cuda")
        values[start : start + step] = (piece % 2039).to(torch.float16)
    return values


def test_add_past_the_limit() -> None:
    size = LIMIT + 1031
    x, y = counted(size), torch.ones(size, dtype=torch.float16, device="cuda")
    with poisoned_memory():
        output = add.add(x, y)
    x += 1.0
    assert torch.equal(output, x)
    assert output[-1].item() == (size - 1) % 2039 + 1


@pytest.mark.parametrize("stride", [2, 3, 32_771])
def test_read_a_slice_that_reaches_past_the_limit(stride: int) -> None:
    values = counted(LIMIT + 5 * stride + 7)[7::stride]
    output = torch.full(values.shape, torch.nan, dtype=torch.float16, device="cuda")
    copy_vector(values, output, BLOCK_SIZE=1024)
    assert torch.equal(output, values)


@pytest.mark.parametrize("stride", [2, 32_771])
def test_write_a_slice_that_reaches_past_the_limit(stride: int) -> None:
    buffer = torch.full((LIMIT + 5 * stride + 7,), torch.nan, dtype=torch.float16, device="cuda")
    output = buffer[7::stride]
    values = counted(output.numel())
    copy_vector(values, output, BLOCK_SIZE=1024)
    assert torch.equal(output, values)
    assert int(buffer.isnan().sum()) == buffer.numel() - values.numel()


def test_one_tile_that_reaches_past_the_limit() -> None:
    """No program's first element is past the limit: the offsets inside of a tile are."""
    stride = LIMIT // 512
    values = counted(1000 * stride)[::stride]
    output = torch.full(values.shape, torch.nan, dtype=torch.float16, device="cuda")
    copy_vector(values, output, BLOCK_SIZE=1024)
    assert torch.equal(output, values)


def test_copy_a_transposed_matrix() -> None:
    values = counted(65_537 * 32_800).view(65_537, 32_800).T
    output = torch.full(values.shape, torch.nan, dtype=torch.float16, device="cuda")
    copy_matrix(values, output, BLOCK_SIZE=64)
    assert torch.equal(output, values)


def test_rows_past_the_limit() -> None:
    """Some rows of a kernel that reduces; the last ones lie past the limit."""
    rows, columns = LIMIT // 1024 + 3, 1024
    values = counted(rows * columns).view(rows, columns).mul_(0.001)
    output = torch.full((rows, columns), torch.nan, dtype=torch.float16, device="cuda")
    softmax.kernel(values, output)
    for first in (0, rows // 2, rows - 8):
        expected = values[first : first + 8].double().softmax(-1)
        torch.testing.assert_close(
            output[first : first + 8].double(), expected, rtol=2e-3, atol=1e-6
        )
