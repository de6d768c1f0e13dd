"""Results that stay in the cache, on the GPU: every element is right, kept or not, wherever it lies."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
from examples import add, rms_norm, rope, silu, softmax  # noqa: E402
from tests.examples.compare import assert_matches  # noqa: E402
from tests.examples.maker import Maker  # noqa: E402
from tests.examples.references import rms_norm_reference, rope_reference  # noqa: E402
from tests.triton import interior_cases, keep_cases  # noqa: E402

pytestmark = pytest.mark.fixes_options("it fixes what it is about")


@pytest.fixture(params=[1, 10], ids="{} MiB".format, autouse=True)
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    monkeypatch.setenv("NINETOOTHED_OPTIONS", f"keep={request.param}")


def remade(module):
    """A kernel that has no plan yet, which fills what it is to write with NaN first."""
    kernel = ninetoothed.make(module.arrangement, module.application, module.tensors)

    def call(*arguments, **constants):
        arguments[-1].fill_(torch.nan)
        kernel(*arguments, **constants)
        return arguments[-1]

    return call


@pytest.mark.parametrize("size", [1, 1000, 2**20, 3 * 2**20 + 77, 2**24])
def test_vectors(size) -> None:
    make = Maker(torch.float16, "cuda")
    x, y = make(size), make(size)
    output = remade(add)(x, y, torch.empty_like(x), BLOCK_SIZE=1024)
    assert_matches(output, x.double() + y.double())
    # The result begins and ends within a line of the cache, and nothing lies after it.
    part = torch.empty(size + 1, dtype=x.dtype, device="cuda")[1:]
    output = remade(silu)(x, part, BLOCK_SIZE=1024)
    assert_matches(output, torch.nn.functional.silu(x.double()))


@pytest.mark.parametrize("shape", [(4096, 4096), (1000, 1000), (3, 77), (700, 4100)], ids=str)
def test_rows(shape) -> None:
    x = Maker(torch.float16, "cuda")(*shape)
    output = remade(softmax)(x, torch.empty_like(x))
    assert_matches(output, torch.softmax(x.double(), -1), shape[1])
    sliced = x[:, 1:]
    output = remade(rms_norm)(sliced, 1e-6, torch.empty_like(sliced))
    assert_matches(output, rms_norm_reference(sliced.double()), shape[1])


@pytest.mark.parametrize("shape", [(4, 1024, 48, 64), (2, 33, 47, 64)], ids=str)
def test_rope(shape) -> None:
    make = Maker(torch.float16, "cuda")
    x, sin, cos = make(*shape), *(make(shape[1], shape[3] // 2) for _ in range(2))
    output = remade(rope)(x, sin, cos, torch.empty_like(x))
    assert_matches(output, rope_reference(x.double(), sin.double(), cos.double(), True), 2)


@pytest.mark.parametrize(
    "case", [value for key, value in vars(keep_cases).items() if key.startswith("case_")]
)
def test_cases(case, monkeypatch) -> None:
    monkeypatch.setattr(interior_cases, "DEVICE", "cuda")
    case()
