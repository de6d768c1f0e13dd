"""Kernels whose parts may share what follows the loop, and others that must not."""

from __future__ import annotations

import torch

import ninetoothed
import ninetoothed.language as ntl
from examples import mm
from ninetoothed import Symbol, Tensor
from tests.corpus.products import activated, normalized, product_and_scale, two
from tests.examples.compare import assert_matches


def product(input, other, scale, output):
    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        accumulator += ntl.dot(input[k], other[k])
    output = accumulator


def added(input, other, scale, output):
    """What is loaded after the loop may have been stored by another part."""
    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        accumulator += ntl.dot(input[k], other[k])
    output = output + accumulator


def prepared(input, other, scale, output):
    """A tile that was made before the loop."""
    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
    start = ntl.full(output.shape, 1.0, dtype=ntl.float32)
    for k in range(input.shape[0]):
        accumulator += ntl.dot(input[k], other[k])
    output = accumulator + start


def turned(input, other, scale, output):
    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        accumulator += ntl.dot(input[k], other[k])
    output = ntl.trans(accumulator)


def conditional(input, other, scale, output):
    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        accumulator += ntl.dot(input[k], other[k])
    if scale > 0:
        output = accumulator


SHARED = {f.__name__: f for f in (product, activated, two)}
WHOLE = {f.__name__: f for f in (normalized, added, prepared, turned, conditional)}

KERNELS = {
    name: ninetoothed.make(
        product_and_scale,
        function,
        (Tensor(2), Tensor(2), Tensor(0), Tensor(2)),
        kernel_name=name,
        num_warps=4,
        num_stages=3,
    )
    for name, function in {**SHARED, **WHOLE}.items()
}


def expected(name: str, input: torch.Tensor, other: torch.Tensor, scale: float) -> torch.Tensor:
    """In float64, of the kernels that are shared."""
    input, other = input.double(), other.double()
    total = input @ other
    if name == "two":
        return total - scale * (input.abs() @ other)
    if name == "activated":
        total = total * scale
        return torch.where(total > -1, total * total.sigmoid(), -total)
    return total


def run(name: str, shape: tuple[int, int, int], device: str = "cpu", seed: int = 0) -> None:
    """Runs a kernel and checks what it gives, rows that nobody may write too."""
    generator = torch.Generator().manual_seed(seed)
    m, k, n = shape
    input = torch.randn(m, k, generator=generator).half().to(device)
    other = torch.randn(k, n, generator=generator).half().to(device)
    around = torch.full((m + 2, n + 2), torch.nan, dtype=torch.float16, device=device)
    output = around[1:-1, 1:-1]
    KERNELS[name](input, other, 0.25, output)
    assert_matches(output, expected(name, input, other, 0.25), k)
    around[1:-1, 1:-1] = torch.nan
    assert around.isnan().all()


def _case(name: str, shape: tuple[int, int, int]):
    return lambda: run(name, shape)


for _name in SHARED:
    for _shape in ((16, 64, 16), (20, 100, 33), (1, 200, 40), (7, 16, 5)):
        globals()[f"case_{_name}_{'_'.join(map(str, _shape))}"] = _case(_name, _shape)


def case_blocks_of_a_size_that_a_call_gives():
    BLOCK = Symbol("BLOCK", constexpr=True)

    def arrangement(input, other, scale, output):
        input, other, output = mm.arrangement(input, other, output, BLOCK, BLOCK, BLOCK)
        return input, other, scale, output

    tensors = (Tensor(2), Tensor(2), Tensor(0), Tensor(2))
    kernel = ninetoothed.make(arrangement, product, tensors)
    input, other = torch.randn(20, 100).half(), torch.randn(100, 33).half()
    output = torch.empty(20, 33).half()
    kernel(input, other, 0.25, output, BLOCK=16)
    assert_matches(output, input.double() @ other.double(), 100)
