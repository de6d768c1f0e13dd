"""The driver in a process without a framework, against drivers that are fakes.

What a real device would be given is looked at: grid, stream, arguments, context. That a real
device then does the right thing is for tests/gpu/check_driver.py.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="Triton needs Linux"),
    pytest.mark.skipif(
        shutil.which("gcc") is None and shutil.which("clang") is None,
        reason="needs a C compiler, as Triton's launcher does",
    ),
]


def claims(script: str) -> list[str]:
    """The names in a script's list CLAIMS, without running it."""
    for statement in ast.parse((HERE / script).read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "CLAIMS":
            return [name.id for name in statement.value.elts]  # type: ignore[attr-defined]
    raise AssertionError(f"{script} has no CLAIMS")


@functools.lru_cache(maxsize=2)
def environment(source: str, directory: Path) -> dict[str, str]:
    """That of a process in which a driver is the fake one of this source."""
    triton = pytest.importorskip("triton")
    headers = Path(triton.__file__).parent / "backends" / "amd" / "include"
    library, variable = {
        "fake_cuda.c": ("libcuda.so.1", "TRITON_LIBCUDA_PATH"),
        "fake_hip.c": ("libamdhip64.so", "TRITON_LIBHIP_PATH"),
    }[source]
    compiler = shutil.which("gcc") or shutil.which("clang")
    built = directory / library
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-w", f"-I{headers}", HERE / source, "-o", built], check=True
    )
    found = {
        **os.environ,
        "LD_LIBRARY_PATH": str(directory),
        variable: str(directory if source == "fake_cuda.c" else built),
        "TRITON_CACHE_DIR": str(directory / "triton"),
        "NINETOOTHED_CACHE_DIR": str(directory / "ninetoothed"),
        "PYTHONPATH": str(HERE.parents[2]),
    }
    found.pop("TRITON_INTERPRET", None)
    return found


def told(script: str, source: str, directory: Path) -> str:
    """What a script prints against a fake driver."""
    finished = subprocess.run(
        [sys.executable, HERE / script],
        env=environment(source, directory),
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@functools.lru_cache(maxsize=2)
def outcomes(script: str, directory: Path) -> dict[str, str]:
    """What the script says of each claim, against the fake driver built for it."""
    source = {"driver_script.py": "fake_cuda.c", "hip_script.py": "fake_hip.c"}[script]
    claimed = re.findall(
        r"^(\w+): (.*(?:\n    .*)*)", told(script, source, directory), re.MULTILINE
    )
    return dict(claimed)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("driver")


@pytest.mark.parametrize("claim", claims("driver_script.py"))
def test_on_a_fake_nvidia_driver(claim: str, directory: Path) -> None:
    assert outcomes("driver_script.py", directory).get(claim) == "holds"


@pytest.mark.parametrize("claim", claims("hip_script.py"))
def test_on_a_fake_amd_driver(claim: str, directory: Path) -> None:
    assert outcomes("hip_script.py", directory).get(claim) == "holds"


def test_a_first_launch_imports_no_triton_where_its_kernel_is_kept(directory: Path) -> None:
    first, second = (told("first_launch.py", "fake_cuda.c", directory) for _ in range(2))
    assert first.split() == ["compiled,", "True"] and second.split() == ["found,", "False"]


def test_without_a_c_compiler_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    from ninetoothed.backends.triton.compiler import versions
    from ninetoothed.errors import DeviceError

    def refuse() -> None:
        raise RuntimeError("Failed to find C compiler.")

    monkeypatch.setattr(versions.driver_module("hip"), "HIPUtils", refuse)
    versions.utilities.cache_clear()
    with pytest.raises(DeviceError, match=r"hip driver cannot be built: Failed to find C comp"):
        versions.utilities()


def test_the_launcher_is_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("triton")
    from ninetoothed.backends.triton.runtime import launcher

    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", str(tmp_path))
    source = Path(launcher.__file__).with_name("launcher.c")
    first = launcher.extension(source, "ninetoothed_launcher")
    monkeypatch.setattr(launcher.versions, "build_library", lambda source: pytest.fail("again"))

    # Each is a library of its own: nothing on disk is loaded that anybody else could exchange.
    assert launcher.extension(source, "ninetoothed_launcher").Launcher is not first.Launcher
    assert not list(tmp_path.rglob("*.so"))


def test_what_cannot_be_loaded_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("triton")
    from ninetoothed.backends.triton.runtime import launcher
    from ninetoothed.errors import DeviceError

    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(launcher.versions, "build_library", lambda source: b"no library")
    with pytest.raises(DeviceError, match=r"launcher\.c cannot be loaded: "):
        launcher.extension(Path(launcher.__file__).with_suffix(".c"), "ninetoothed_launcher")


def test_without_a_driver_the_error_says_where_kernels_run() -> None:
    from ninetoothed.backends.triton.runtime.device_api import runtime
    from ninetoothed.errors import DeviceError

    if shutil.which("nvidia-smi"):
        pytest.skip("needs a machine without an NVIDIA driver")
    with pytest.raises(DeviceError, match=r"no cuda driver .* libcuda\.so\.1.*CPU tensors"):
        runtime("cuda")
