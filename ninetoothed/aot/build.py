"""`build`, and `make` for callers in C: from kernels to a folder of C sources and binaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ninetoothed import __version__
from ninetoothed.aot import compiling, packaging, rust, torch_operator
from ninetoothed.aot.configurations import Choice, Configuration, choice_of, configurations
from ninetoothed.aot.headers import dispatcher, header
from ninetoothed.aot.packaging import checked_kinds, compile_libraries
from ninetoothed.aot.tables import suffix_of
from ninetoothed.aot.unit import Unit, same_interface
from ninetoothed.aot.writer import Source
from ninetoothed.cache import directory
from ninetoothed.errors import ArgumentError
from ninetoothed.kernels.definition import Specializations
from ninetoothed.kernels.making import specializations_of
from ninetoothed.kernels.naming import default_name
from ninetoothed.records import dataclass
from ninetoothed.tuning.results import read_exported


@dataclass(frozen=True)
class Built:
    """What was written.

    Attributes:
        name: of the functions: ``launch_<name>``, ``<name>_launch``, ``<name>_prepare``.
        folder: where.
        files: their names there.
        units: what each configuration became.
    """

    name: str
    folder: Path
    files: tuple[str, ...]
    units: tuple[Unit, ...]

    def __repr__(self) -> str:
        num_binaries = sum(len(b.images) for unit in self.units for b in unit.binaries)
        return (
            f"<{self.name}: {len(self.files)} files in {self.folder}, "
            f"of {len(self.units)} kernels {num_binaries} binaries>"
        )

    @property
    def source_path(self) -> Path:
        """The C source with the functions."""
        return self.folder / f"{self.name}.c"

    @property
    def source(self) -> str:
        """Its text."""
        return self.source_path.read_text(encoding="utf-8")


def build(
    premake: Callable[..., Any],
    configs: Sequence[Any],
    *,
    meta_parameters: Sequence[str] | None = None,
    caller: str | None = None,
    kernel_name: str | None = None,
    output_dir: Any = None,
    lazy: bool = False,
    targets: Sequence[str] | None = None,
    is_portable: bool = False,
    progress: Callable[[int, int], None] | None = None,
    tuned: Any = None,
    device: str | None = None,
    torch_library: str | None = None,
    libraries: Sequence[str] = (),
) -> Built:
    """Many variants of a kernel, compiled ahead of time behind one C function; needs no device.

    Args:
        premake: gives ``(arrangement, application, tensors)`` for a configuration's arguments.
        configs: each ``(arguments, keywords, options)``: what ``premake`` is called with, and
            ``num_warps``, ``num_stages`` or ``max_num_configs`` of `make`.
        meta_parameters: those of ``premake``'s parameters that are chosen here. A caller in C gives all
            others as integers, element types as ``NINETOOTHED_FLOAT16``. Of configurations that differ
            in meta parameters and options alone, the fastest by the estimate is built, for the last
            target.
        caller: ``"cuda"``, which None stands for.
        kernel_name: of the C function, ``launch_<kernel_name>``.
        output_dir: where the folder is; by default in the cache.
        lazy: taken for the published interface's sake: binaries are always loaded by the first launch
            that needs them, or by ``<kernel_name>_prepare``.
        targets: ``"sm_90"``, ``"gfx942"``, …; by default ``$NINETOOTHED_TARGETS``, or sm_80 and sm_90.
        is_portable: whether the binaries are numbers in the C text, for compilers without ``.incbin``.
        progress: called with how many binaries are compiled, and of how many.
        tuned: a file of results that ``python -m ninetoothed tuning export`` wrote on a machine with a
            device. Those of this kernel's name and element types choose for the sizes that they were
            found for.
        device: the name of a device that the estimate chooses for, where its target has several, as
            ``"NVIDIA H200"``.
        torch_library: the name of a library of PyTorch's operators; a C++ source beside the others makes
            the kernel one of them.
        libraries: which are made of the C sources by ``$CC`` or ``cc``: ``"static"``, ``"shared"``.

    Raises:
        NineToothedError: ``tuned`` holds no results.
        CompilationError: the C compiler for the libraries is not there, or fails.
        ArgumentError: a configuration does not fit, or something of the calls is not declared.
    """
    _check_caller(caller)
    libraries = checked_kinds(libraries)
    candidates: dict[Choice, list[Configuration]] = {}
    tuned_here = tuple(meta_parameters or ())
    for configuration in configurations(premake, configs, tuned_here):
        choice = choice_of(configuration, tuned_here)
        candidates.setdefault(choice, []).append(configuration)
    targets = compiling.checked_targets(targets)
    kernels: list[compiling.Named] = []
    name = kernel_name
    for number, alike in enumerate(candidates.values()):
        made = []
        for configuration in alike:
            given = premake(**configuration.arguments)
            if not isinstance(given, tuple | list) or len(given) != 3:
                raise ArgumentError(
                    f"premake gives (arrangement, application, tensors), not {given!r}"
                )
            arrangement, application, tensors = given
            name = name or default_name(arrangement, application)
            specializations = specializations_of(
                arrangement, application, tensors, name, **_options(configuration.options)
            )
            made.append((f"{name}_{number}", specializations, dict(configuration.arguments)))
        kernels.append(compiling.fastest(made, targets[-1]))
    assert name is not None
    _check_names(name, torch_library)
    found = () if tuned is None else read_exported(tuned)
    units = compiling.units(kernels, targets, progress, compiling.Guidance(found, device))
    same_interface(units)
    chosen = list(zip(candidates, units, strict=True))
    return _written(name, chosen, output_dir, is_portable, torch_library, libraries)


def make_ahead(specializations: Specializations, output_dir: Any) -> Built:
    """`make` with ``caller="cuda"``: one kernel, compiled ahead of time; see `build`."""
    name = specializations.declaration.name
    _check_names(name)
    kernels = [(name, specializations, dict[str, Any]())]
    units = compiling.units(kernels, compiling.checked_targets(None))
    return _written(name, [(None, units[0])], output_dir)


def _check_names(name: str, torch_library: str | None = None) -> None:
    """`ArgumentError` for names that C and C++ do not have, before anything is compiled."""
    if name == "launch":
        raise ArgumentError(
            "a kernel that is built is not called 'launch', of which C's `launch_launch` would mean two things: "
            "give another `kernel_name`"
        )
    if torch_library is not None and not (torch_library.isidentifier() and torch_library.isascii()):
        raise ArgumentError(f"`torch_library` is a name in ASCII, not {torch_library!r}")


def _check_caller(caller: str | None) -> None:
    if caller not in (None, "cuda"):
        raise ArgumentError(
            f'`build` makes C sources for caller="cuda", got {caller!r}; `make` makes kernels for '
            "callers in Python"
        )


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    known = ("num_warps", "num_stages", "max_num_configs")
    for option in given:
        if option not in known:
            raise ArgumentError(f"a configuration's options are {', '.join(known)}, not {option!r}")
    return dict(given)


def _written(
    name: str,
    chosen: Sequence[tuple[Choice | None, Unit]],
    output_dir: Any,
    is_portable: bool = False,
    torch_library: str | None = None,
    libraries: Sequence[str] = (),
) -> Built:
    """A folder with everything.

    Raises:
        ArgumentError: the folder cannot be made.
    """
    folder = directory() / "ahead" / name if output_dir is None else Path(output_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"{str(folder)!r} cannot be written to: {error}") from None
    units = tuple(unit for _, unit in chosen)
    files: dict[str, str | bytes] = {path.name: path.read_bytes() for path in packaging.RUNTIME}
    sources = []
    for unit in units:
        files[f"{unit.name}.h"] = header(unit.name, unit, (), __version__)
        files[f"{unit.name}.c"] = Source(unit, is_portable, __version__).text()
        sources.append(f"{unit.name}.c")
        if not is_portable:
            files |= _binaries(unit)
    choices = [(choice, unit) for choice, unit in chosen if choice is not None]
    if choices:
        files[f"{name}.h"] = header(name, units[0], choices[0][0].names, __version__)
        files[f"{name}.c"] = dispatcher(name, choices, __version__)
        sources.append(f"{name}.c")
    names = choices[0][0].names if choices else ()
    files |= packaging.files(name, units, sources, __version__)
    files |= rust.files(name, units[0], names, sources, __version__)
    if torch_library is not None:
        text = torch_operator.text(name, torch_library, units[0], names, __version__)
        files[f"{name}_torch.cpp"] = text
        files[packaging.FOR_TORCH] = (packaging.FOLDER / packaging.FOR_TORCH).read_bytes()
    for file, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(data)
    made = compile_libraries(folder, name, [*sources, *packaging.RUNTIME_SOURCES], libraries)
    return Built(name, folder, tuple(sorted([*files, *made])), units)


def _binaries(unit: Unit) -> dict[str, bytes]:
    found = {}
    for binaries in unit.binaries:
        variants = unit.editions[binaries.edition].variants
        for variant, image in zip(variants, binaries.images, strict=True):
            # Text ends in a zero, which `NT_EMBED` adds.
            found[f"{unit.name}.c{suffix_of(binaries, variant)}"] = image.data
    return found
