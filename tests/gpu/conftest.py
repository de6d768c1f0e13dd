"""GPU tests: skipped, with the reason, where there is no device to run them on."""

from __future__ import annotations

import pytest


def _missing() -> str | None:
    """What keeps these tests from running here, or None."""
    try:
        import torch
    except ImportError:
        return "needs PyTorch"
    return None if torch.cuda.is_available() else "needs a CUDA device"


def pytest_report_header() -> list[str]:
    """The machine and the versions, or why the tests are skipped."""
    if missing := _missing():
        return [f"tests/gpu: skipped, {missing}"]

    import torch
    import triton

    device = torch.cuda.get_device_properties(0)

    return [
        f"tests/gpu: {device.name}, {device.total_memory / 2**30:.0f} GiB, "
        f"compute capability {device.major}.{device.minor}",
        f"tests/gpu: torch {torch.__version__}, CUDA {torch.version.cuda}, "
        f"triton {triton.__version__}",
    ]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip every test of this folder where something is missing."""
    if missing := _missing():
        for item in items:
            if "tests/gpu/" in item.path.as_posix():
                item.add_marker(pytest.mark.skip(reason=missing))


@pytest.fixture(autouse=True)
def untuned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the first choice: hundreds of shapes are tested here, and none is called often."""
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")


@pytest.fixture(autouse=True)
def free_memory():
    """Give each test the whole memory: PyTorch's cache keeps what the one before it used."""
    yield

    import torch

    torch.cuda.empty_cache()
