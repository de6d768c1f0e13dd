"""What this machine can run and what it lacks; no framework and no compiler is imported."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ninetoothed.errors import DeviceError

if TYPE_CHECKING:
    from ninetoothed.plugins import Listing

_TRITON_FLOOR = (3, 6)


class Finding(NamedTuple):
    """One line of the report.

    Attributes:
        what: what was looked for.
        state: ``"ok"``, ``"missing"`` (nothing is wrong, but something is not there) or ``"broken"``.
        found: the version, the name, the path, or why it is broken.
        advice: what to do, where there is something.
    """

    what: str
    state: str
    found: str
    advice: str = ""


class Examined(NamedTuple):
    """The findings, and a line for each kind of device that kernels can run on."""

    findings: list[Finding]
    runs_on: list[str]


class _Framework(NamedTuple):
    name: str
    #: The starts of the names of its distributions.
    distributions: tuple[str, ...]
    #: The frontend, and the package that it comes with, or "" for ours.
    frontend: str
    package: str
    install: str


_FRAMEWORKS = (
    _Framework("torch", ("torch",), "torch", "", "pip install torch"),
    _Framework(
        "paddle", ("paddlepaddle", "paddlepaddle-gpu"), "paddle", "", "pip install paddlepaddle"
    ),
    _Framework("numpy", ("numpy",), "numpy", "ninetoothed-numpy", "pip install numpy"),
    _Framework(
        "cupy",
        ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x", "cupy-rocm-7-0"),
        "cupy",
        "ninetoothed-cupy",
        "pip install cupy-cuda13x",
    ),
    _Framework("jax", ("jax",), "jax", "ninetoothed-jax", "pip install jax"),
)


def examine(plugins: Sequence[Listing]) -> Examined:
    """Looks at this machine.

    Args:
        plugins: what the plugin manager lists.
    """
    devices = list(_devices())
    frameworks = [_framework(framework, plugins) for framework in _FRAMEWORKS]
    findings = [
        Finding("python", "ok", sys.version.split()[0]),
        _own_package(),
        _package("numpy"),
        _package("ml_dtypes"),
        _triton(has_device=any(finding.state == "ok" for finding in devices)),
        *frameworks,
        *_broken_plugins(plugins),
        _compiler(),
        *devices,
        _cache(),
    ]
    return Examined(findings, _runs_on(findings, frameworks, devices))


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _own_package() -> Finding:
    import ninetoothed
    from ninetoothed.plugins import namesake

    other = namesake.installed_namesake()
    if other is not None:
        found = f"{ninetoothed.__version__}, and another project's {other}"
        return Finding("ninetoothed", "broken", found, namesake.advice(other))
    version = _version("ninetoothed")
    if version is None:
        found = f"{ninetoothed.__version__}, not installed as a package"
    elif version != ninetoothed.__version__:
        found = f"{ninetoothed.__version__} from a folder, {version} is installed"
    else:
        found = version
    return Finding("ninetoothed", "ok", found)


def _package(name: str) -> Finding:
    version = _version(name)
    if version is not None:
        return Finding(name, "ok", version)
    return Finding(name, "broken", "not installed", f"pip install {name}")


def _triton(has_device: bool) -> Finding:
    version = _version("triton")
    if version is None:
        state = "broken" if has_device else "missing"
        return Finding("triton", state, "not installed", "pip install triton, to run on a GPU")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < _TRITON_FLOOR:
        floor = ".".join(map(str, _TRITON_FLOOR))
        return Finding("triton", "broken", version, f"pip install 'triton>={floor}'")
    return Finding("triton", "ok", version)


def _framework(framework: _Framework, plugins: Sequence[Listing]) -> Finding:
    what = f"{framework.name} tensors"
    versions = [version for name in framework.distributions if (version := _version(name))]
    has_frontend = any(framework.frontend in listed.frontends for listed in plugins)
    if not versions:
        return Finding(
            what, "missing", "not installed", "" if not has_frontend else framework.install
        )
    if not has_frontend:
        advice = _installing(framework.package) if framework.package else ""
        return Finding(what, "missing", f"{framework.name} {versions[0]}, and no frontend", advice)
    return Finding(what, "ok", f"{framework.name} {versions[0]}")


def _installing(package: str) -> str:
    """How a plugin of ours is installed: from the checkout where this runs from one."""
    folder = Path(__file__).parents[1] / "plugins" / package
    return f"pip install {folder if folder.is_dir() else package}"


def _broken_plugins(plugins: Sequence[Listing]) -> Iterator[Finding]:
    for listed in plugins:
        if listed.why:
            where = listed.origin if listed.origin != "built in" else "ninetoothed"
            yield Finding(
                f"plugin {listed.name}", "broken", listed.why, f"update or uninstall {where}"
            )


def _compiler() -> Finding:
    """Triton has a small launcher built by a C compiler, once a process and signature."""
    chosen = os.environ.get("CC")
    for name in (chosen,) if chosen else ("gcc", "clang"):
        path = shutil.which(name)
        if path is not None:
            return Finding("C compiler", "ok", path)
    found = f"CC is {chosen}, which is not there" if chosen else "none"
    return Finding("C compiler", "missing", found, "install gcc or clang, to run on a GPU")


def _devices() -> Iterator[Finding]:
    """The GPUs, as their own driver tells of them."""
    from ninetoothed.plugins import backend_for

    for kind in ("cuda", "hip"):
        try:
            described = backend_for(kind).devices(kind)
        except DeviceError as error:
            if kind == "cuda":
                yield Finding("GPU", "missing", error.message)
            continue
        for index, found in enumerate(described):
            yield Finding(f"{kind}:{index}", "ok", found)


def _cache() -> Finding:
    from ninetoothed.cache import directory, is_private

    path = directory()
    existing = next(place for place in (path, *path.parents) if place.exists())
    if not os.access(existing, os.W_OK):
        advice = "set NINETOOTHED_CACHE_DIR to a folder of yours; kernels are compiled every time"
        return Finding("cache directory", "broken", f"{path} cannot be written", advice)
    if path.exists() and not is_private(path.stat()):
        advice = f"chmod 700 {path}; nothing is read from it while others can write there"
        return Finding("cache directory", "broken", f"{path} can be written by others", advice)
    return Finding("cache directory", "ok", f"{path} ({_size(path)})")


def _size(path: Path) -> str:
    if not path.exists():
        return "nothing yet"
    files = [file for file in path.rglob("*") if file.is_file()]
    return f"{len(files)} files, {sum(file.stat().st_size for file in files) / 2**20:.1f} MiB"


def _runs_on(
    findings: Sequence[Finding], frameworks: Sequence[Finding], devices: Sequence[Finding]
) -> list[str]:
    states = {finding.what: finding.state for finding in findings}
    known = [
        framework.name
        for framework, finding in zip(_FRAMEWORKS, frameworks, strict=True)
        if finding.state == "ok"
    ]
    lines = []
    on_cpu = [name for name in known if name != "cupy"]
    if on_cpu and states["numpy"] == states["ml_dtypes"] == "ok":
        lines.append(f"the CPU, by the NumPy backend: tensors of {', '.join(on_cpu)}")
    on_gpu = [name for name in known if name != "numpy"]
    if on_gpu and states["triton"] == states["C compiler"] == "ok":
        lines += [
            f"{device.what}, by the Triton backend: tensors of {', '.join(on_gpu)}"
            for device in devices
            if device.state == "ok"
        ]
    return lines
