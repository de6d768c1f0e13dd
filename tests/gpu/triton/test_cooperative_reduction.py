"""Parts that share what follows the loop, on the GPU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from tests.triton.options.cases import cooperative_reduction as cases  # noqa: E402

pytestmark = pytest.mark.fixes_options("its tests fix those that they are about")


@pytest.fixture(params=["split_k=2", "split_k=7", "split_k=16"], autouse=True)
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    return request.param


@pytest.mark.parametrize("value", [1, 2])
@pytest.mark.parametrize("shape", [(64, 700, 80), (33, 1000, 17), (1, 4096, 300)], ids=str)
@pytest.mark.parametrize("name", cases.SHARED)
def test_all_that_is_shared_is_stored_once(name, shape, value, parts, monkeypatch) -> None:
    monkeypatch.setenv("NINETOOTHED_OPTIONS", f"{parts},cooperative_reduction={value}")
    cases.KERNELS[name].forget_launches()
    for seed in range(3):
        cases.run(name, shape, "cuda", seed)


@pytest.mark.parametrize("name", cases.SHARED)
def test_the_last_alone_gives_the_same_bits(name, parts, monkeypatch) -> None:
    kernel = cases.KERNELS[name]
    x, y = (torch.randn(shape, device="cuda").half() for shape in ((100, 3000), (3000, 90)))
    found = []
    for value in (0, 1, 2):
        monkeypatch.setenv("NINETOOTHED_OPTIONS", f"{parts},cooperative_reduction={value}")
        kernel.forget_launches()
        found.append(torch.full((100, 90), torch.nan, dtype=torch.float16, device="cuda"))
        kernel(x, y, 0.5, found[-1])
    assert all(torch.equal(found[0], other) for other in found[1:])
