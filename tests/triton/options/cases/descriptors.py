"""Products whose tiles are boxes, and others; run in Triton's interpreter with ``descriptors`` fixed."""

from __future__ import annotations

import os

import torch

import ninetoothed
import ninetoothed.language as ntl
from examples import addmm, bmm, mm, sdpa
from ninetoothed import Tensor
from tests.corpus.products import one_more, padded_product
from tests.triton.emitted import last_emitted


def half(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).half()


def constant(input, other, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        total += ntl.dot(input[k], other[k])
    output = 3


padded = ninetoothed.make(padded_product, one_more, tuple(Tensor(2) for _ in range(3)))
ignoring = ninetoothed.make(mm.arrangement, constant, tuple(Tensor(2) for _ in range(3)))


def uses(kernel: ninetoothed.Kernel, *names: str) -> None:
    """The kernel's last source moves exactly these by descriptor; where persistent, in a loop."""
    last = last_emitted(kernel)
    kernel.definition.further_answers.clear()
    found = {p.parameter for p in last.parameters if p.kind == "descriptor"}
    assert found == set(names), found
    if "persistent=1" in os.environ["NINETOOTHED_OPTIONS"]:
        assert ("flatten=True" in last.text) is (len(found & {"input", "mat1"}) > 0)


def close(actual: torch.Tensor, expected: torch.Tensor) -> None:
    error = (actual.double() - expected).norm() / expected.norm()
    assert error < 1e-3, error


def product(input: torch.Tensor, other: torch.Tensor) -> None:
    close(mm.mm(input, other), input.double() @ other.double())


def case_sizes_that_no_tile_divides() -> None:
    product(half(50, 72), half(72, 88))
    uses(mm.kernel, "input", "other", "output")


def case_transposed_operands() -> None:
    product(half(72, 48).T, half(88, 72).T)
    uses(mm.kernel, "input", "other", "output")


def case_rows_of_a_wider_tensor() -> None:
    product(half(50, 160)[:, 16:88], half(72, 96)[:, :40])
    uses(mm.kernel, "input", "other", "output")


def case_rows_that_are_not_aligned_are_loaded_plainly() -> None:
    product(half(50, 73), half(73, 88))
    uses(mm.kernel, "other", "output")


def case_an_address_that_is_not_aligned() -> None:
    product(half(50, 80)[:, 1:73], half(72, 88))
    uses(mm.kernel, "other", "output")


def case_broadcast_rows() -> None:
    product(half(1, 72).expand(50, 72), half(72, 88))
    uses(mm.kernel, "other", "output")


def case_one_row() -> None:
    product(half(1, 72), half(72, 88))
    uses(mm.kernel, "input", "other", "output")


def case_nothing_to_add() -> None:
    input, other = half(50, 0), half(0, 88)
    assert not mm.mm(input, other).any()


def case_wide_elements_go_through_registers() -> None:
    product(half(50, 72).float(), half(72, 88).float())
    uses(mm.kernel)


def case_batches() -> None:
    input, other = half(3, 50, 72), half(3, 72, 88)
    close(bmm.bmm(input, other), input.double() @ other.double())
    uses(bmm.kernel, "input", "other", "output")


def case_batches_inside() -> None:
    input, other = half(50, 3, 72).transpose(0, 1), half(88, 3, 72).permute(1, 2, 0)
    close(bmm.bmm(input, other), input.double() @ other.double())
    uses(bmm.kernel, "input", "other", "output")


def case_what_else_is_read_leaves_the_store_plain() -> None:
    input, mat1, mat2 = half(50, 88), half(50, 72), half(72, 88)
    expected = 0.5 * input.double() + 2 * (mat1.double() @ mat2.double())
    close(addmm.addmm(input, mat1, mat2, beta=0.5, alpha=2.0), expected)
    uses(addmm.kernel, "mat1", "mat2")


def case_attention() -> None:
    query, key, value = half(2, 3, 40, 16), half(2, 3, 56, 16), half(2, 3, 56, 16)
    attention = torch.nn.functional.scaled_dot_product_attention
    close(sdpa.sdpa(query, key, value), attention(query.double(), key.double(), value.double()))
    uses(sdpa.kernel, "key", "value")


def case_padding_is_outside() -> None:
    input, other, output = half(50, 72), half(72, 88), half(50, 88)
    padded(input, other, output)
    close(output, input.double() @ other.double() + 1)
    uses(padded, "input", "other", "output")


def case_a_constant_is_stored() -> None:
    output = half(50, 88)
    ignoring(half(50, 72), half(72, 88), output)
    assert (output == 3).all()
