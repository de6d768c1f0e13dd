"""Which device addresses are on, as the real driver tells it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from ninetoothed.backends.triton.runtime.device_addresses import on_device  # noqa: E402


@pytest.fixture
def x() -> torch.Tensor:
    return torch.ones(1024, device="cuda")


def test_memory_of_the_device_is_told_from_the_hosts(x: torch.Tensor) -> None:
    are_on = on_device(x.device.index, [x.data_ptr()])
    assert are_on is not None
    views = [x[1:].data_ptr(), x[512:].data_ptr(), torch.empty_like(x).data_ptr()]
    assert are_on(x.data_ptr(), *views)
    for other in (torch.ones(1024), torch.ones(1024).pin_memory()):
        assert not are_on(x.data_ptr(), other.data_ptr())
        assert on_device(0, [other.data_ptr()]) is None
    assert not are_on(x.data_ptr(), 0)


def test_memory_that_was_given_back_is_no_longer_the_devices() -> None:
    large = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    address = large.data_ptr()
    are_on = on_device(large.device.index, [address])
    assert are_on is not None and are_on(address)
    del large
    torch.cuda.empty_cache()
    assert not are_on(address)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_memory_of_another_device_is_seen(x: torch.Tensor) -> None:
    other = torch.ones(1024, device="cuda:1")
    are_on = on_device(0, [x.data_ptr()])
    assert are_on is not None and not are_on(x.data_ptr(), other.data_ptr())
