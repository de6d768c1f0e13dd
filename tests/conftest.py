"""What holds for every test: a cache of its own, reproducible examples, and no fight for the cores."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

# Before any framework is imported: each of pytest-xdist's workers has one core to itself, and
# thread pools of many frameworks in many workers would only wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

# A kernel found in the user's own cache would hide that it no longer compiles. Workers share what the
# process that started them made: each kernel is compiled once a run.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _CACHE = tempfile.TemporaryDirectory(prefix="ninetoothed-tests-")
    os.environ["NINETOOTHED_CACHE_DIR"] = _CACHE.name

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

# The same examples at every run, so that a failure is the change's and can be had again;
# HYPOTHESIS_PROFILE=explore looks for new ones.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("reproducible", derandomize=True, database=None, **_COMMON)
settings.register_profile("explore", print_blob=True, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "reproducible"))


@pytest.fixture(autouse=True)
def _test_device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """``NINETOOTHED_TEST_DEVICE=cuda`` has PyTorch make the contract's tensors on a GPU, with exact products;
    kernels take their first choice there: each is called once or twice."""
    device = os.environ.get("NINETOOTHED_TEST_DEVICE")
    # Those of `gpu` say themselves where each tensor is.
    if not device or "tests/gpu/" in request.path.as_posix():
        yield
        return

    import torch

    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    previous = torch.get_default_device()
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(previous)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what an option that is fixed for all tests does not concern; refuse names that differ
    between two processes: pytest-xdist's workers must agree on them."""
    if os.environ.get("NINETOOTHED_OPTIONS") or config.getoption("--each-option", None):
        for item in items:
            for marker in item.iter_markers("fixes_options"):
                item.add_marker(
                    pytest.mark.skip(reason=f"not where options are fixed: {marker.args[0]}")
                )
    addressed = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if addressed:
        raise pytest.UsageError(
            f"a test's name holds an object's address; give its parameters ids: {addressed[0]}"
        )
