"""Several programs in one, and tiles that take turns, on the GPU: every element is right."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
from examples import rms_norm, rope, rope_in_place, softmax  # noqa: E402
from tests.examples.compare import assert_matches  # noqa: E402
from tests.examples.maker import Maker  # noqa: E402
from tests.examples.references import rope_reference  # noqa: E402
from tests.triton.options.cases import interleaved_pairs, program_coarsening  # noqa: E402

pytestmark = pytest.mark.fixes_options("its tests fix those that they are about")


@pytest.fixture(params=[1, 2, 16, 64], ids="{} programs".format, autouse=True)
def programs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    monkeypatch.setenv("NINETOOTHED_OPTIONS", f"program_coarsening={request.param}")
    return request.param


def make(*shape: int) -> torch.Tensor:
    return Maker(torch.float16, "cuda")(*shape)


def remade(module):
    """A kernel that has no plan yet."""
    return ninetoothed.make(module.arrangement, module.application, module.tensors)


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("shape", [(2, 33, 47, 64), (1, 5, 7, 90), (3, 1, 1, 2)], ids=str)
def test_one_head_a_program(shape, interleaved) -> None:
    kernel = program_coarsening.rope_of(interleaved)
    tensor, sin, cos = make(*shape), *(make(shape[1], shape[3] // 2) for _ in range(2))
    expected = rope_reference(tensor.double(), sin.double(), cos.double(), interleaved)
    kernel(tensor, sin, cos)
    assert_matches(tensor, expected, 2, rounds_intermediates=True)


@pytest.mark.parametrize("shape", [(2, 33, 47, 64), (1, 5, 7, 90), (3, 1, 1, 2)], ids=str)
def test_all_heads_a_program(shape) -> None:
    tensor, sin, cos = make(*shape), *(make(shape[1], shape[3] // 2) for _ in range(2))
    expected = rope_reference(tensor.double(), sin.double(), cos.double(), True)
    output = torch.full_like(tensor, torch.nan)
    remade(rope)(tensor, sin, cos, output)
    assert_matches(output, expected, 2)
    ninetoothed.make(rope_in_place.arrangement, rope_in_place.application, rope.tensors[:3])(
        tensor, sin, cos
    )
    assert_matches(tensor, expected, 2)


@pytest.mark.parametrize("shape", [(4099, 60), (1, 3), (77, 1000), (2048, 64)], ids=str)
def test_short_rows(shape) -> None:
    rows = make(*shape)
    output = torch.full_like(rows, torch.nan)
    remade(softmax)(rows, output)
    assert_matches(output, rows.double().softmax(-1), shape[1])
    output.fill_(torch.nan)
    remade(rms_norm)(rows, 1e-6, output)
    wide = rows.double()
    expected = wide / (wide.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    assert_matches(output, expected, shape[1])


@pytest.mark.parametrize("name", interleaved_pairs.KERNELS)
@pytest.mark.parametrize(("count", "size"), [(1, 1), (61, 5), (64, 8), (4099, 16)])
def test_tiles_that_take_turns(name, count, size) -> None:
    application = getattr(interleaved_pairs, name)
    kernel = interleaved_pairs.kernel_of(application)
    input = torch.randint(-9, 9, (count,)).float()
    output = torch.full((count,), -1.0, device="cuda")
    kernel(input.cuda(), output, BLOCK_SIZE=size)
    assert torch.equal(output.cpu(), interleaved_pairs.expected(name, input, size))
