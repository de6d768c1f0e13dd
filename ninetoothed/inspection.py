"""A kernel laid open, as text: what ``python -m ninetoothed inspect`` shows."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ninetoothed.errors import NineToothedError, near, raised_at
from ninetoothed.tensors.meta_operation import shape_text

if TYPE_CHECKING:
    from ninetoothed.launch.kernel import Kernel


class InspectionError(NineToothedError, LookupError):
    """There is no such file or kernel to be shown, or the file cannot be run."""


class Inspected(NamedTuple):
    """What there is to see of a kernel.

    Attributes:
        name, arguments, grid: the kernel's name, its call's arguments, and how many programs run.
        parameters: for each its name, kind, the source's shape and the levels' shapes.
        program: what one program does.
        source: for Triton, with nothing known of the arguments.
        launch: the launch function for a frontend.
    """

    name: str
    arguments: list[str]
    grid: str
    parameters: list[dict[str, Any]]
    program: str
    source: str
    launch: str


def inspect_kernel(kernel: Kernel, frontend: str) -> Inspected:
    """What there is to see of a kernel, with its launch function for the frontend of this name."""
    from ninetoothed import plugins
    from ninetoothed.launch.generate import source_of

    chosen = plugins.frontend_named(frontend)
    parameters = [
        {
            "name": parameter.name,
            "kind": parameter.kind,
            "source": shape_text(parameter.source.shape) if parameter.kind == "tensor" else "-",
            "levels": [shape_text(level) for level in parameter.levels],
        }
        for parameter in kernel.definition.parameters
    ]
    launch = f"{frontend} takes over the launch." if chosen.launch else source_of(kernel, chosen)
    return Inspected(
        kernel.name,
        list(kernel.definition.call_names),
        shape_text(kernel.definition.grid),
        parameters,
        kernel.definition.optimized.text(shows_types=True),
        kernel.source,
        launch,
    )


def load_kernel(place: str) -> Kernel:
    """The kernel at ``FILE:NAME``; `InspectionError` where there is none."""
    from ninetoothed.launch.kernel import Kernel

    file, _, name = place.rpartition(":")
    if not file or not name:
        raise InspectionError(f"Say FILE:KERNEL, as in examples/mm.py:kernel; got {place!r}.")
    module = _load(Path(file))
    kernels = [key for key, value in vars(module).items() if isinstance(value, Kernel)]
    found = getattr(module, name, None)
    if isinstance(found, Kernel):
        return found
    what = "is not there" if found is None else f"is of type {type(found).__name__}, no kernel"
    raise InspectionError(
        f"{name!r} in {file} {what}.{near(name, kernels)} "
        f"Its kernels: {', '.join(kernels) or 'none'}."
    )


def _load(file: Path) -> ModuleType:
    """The module in a file, run as an import would: from its folder, and from here."""
    if not file.is_file():
        raise InspectionError(f"There is no file {file}.")
    specification = importlib.util.spec_from_file_location(file.stem, file)
    if specification is None or specification.loader is None:
        raise InspectionError(f"{file} is no Python file.")
    module = importlib.util.module_from_spec(specification)
    kept = list(sys.path)
    sys.path[:0] = [str(Path.cwd()), str(file.resolve().parent)]
    sys.modules.setdefault(file.stem, module)
    try:
        specification.loader.exec_module(module)
    except NineToothedError:
        raise
    except Exception as error:
        why = f"{file} cannot be run: {type(error).__name__}: {error}"
        raise InspectionError(why, raised_at(error)) from error
    finally:
        sys.path[:] = kept
        if sys.modules.get(file.stem) is module:
            del sys.modules[file.stem]
    return module
