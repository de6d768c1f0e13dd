"""From the emitted source to a compiled kernel, for a named target; needs no device, no framework."""

from __future__ import annotations

import ast
import functools
import linecache
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ninetoothed import cache, threads
from ninetoothed.backends.triton.compiler import installed, mending, versions
from ninetoothed.backends.triton.compiler.private_cache import private_cache
from ninetoothed.bounded import keep
from ninetoothed.errors import CompilationError, Location

if TYPE_CHECKING:
    from ninetoothed.backends.triton.specialization.target import Target

_DIVISIBILITY = "tt.divisibility"


def compile_source(
    source: str,
    kernel_name: str,
    signature: Mapping[str, str],
    constants: Mapping[str, object],
    divisors: Mapping[str, int],
    target: Target,
    num_warps: int | None = None,
    num_stages: int | None = None,
    externs: Mapping[str, object] | None = None,
    path: Path | None = None,
    most_registers: int | None = None,
    waits: bool = False,
    **options: object,
) -> Any:
    """Compiles one kernel.

    Args:
        source: a module's text that defines ``@triton.jit def <kernel_name>``.
        kernel_name: the function's name.
        signature: each parameter's type in Triton's spelling: ``"*fp16"``, ``"i32"``, or
            ``"constexpr"``.
        constants: the values of the parameters whose type is ``"constexpr"``.
        divisors: powers of two that parameters are multiples of at every launch, addresses in bytes.
        target: what to compile for.
        num_warps: warps a program; Triton's default if None.
        num_stages: stages of a pipelined loop; Triton's default if None.
        externs: what the source uses and does not define, by name: functions under ``triton.jit``.
        path: the file that the source is said to be of; by default it is written to the cache.
        most_registers: that a thread may have; Triton decides if None.
        waits: whether programs first wait for the kernel before.
        options: further options of Triton's backend.

    Returns:
        Triton's ``CompiledKernel``.

    Raises:
        CompilationError: Triton refused the source; located in the generated file.
        DeviceError: there is no Triton that serves.
    """
    versions.version()
    installed.imported()
    from triton.backends.compiler import GPUTarget
    from triton.compiler import compile as triton_compile

    kept_as = "triton" if path is None else "ahead"
    if path is None:
        path = cache.write_source(kernel_name, source)
    function = load(source, kernel_name, path, externs or {})
    _check_parameters(kernel_name, function.arg_names, signature, constants)
    names = function.arg_names
    attributes = {
        (names.index(name),): [[_DIVISIBILITY, divisors[name]]]
        for name in names
        if name in divisors
    }
    chosen = versions.options(
        num_warps=num_warps, num_stages=num_stages, maxnreg=most_registers, launch_pdl=waits or None
    )
    try:
        with versions.without_dumps(), private_cache(kept_as), mending.mended():
            # Triton parses the source, and that of what it calls, without asking for our lock.
            return threads.undisturbed(
                lambda: triton_compile(
                    _source_class(function.is_gluon())(
                        function,
                        {name: signature[name] for name in names},
                        dict(constants),
                        attributes,
                    ),
                    target=GPUTarget(target.backend, target.arch, target.warp_size),
                    options={**chosen, **options},
                )
            )
    except Exception as error:
        raise _refused(error, kernel_name, source, path, target) from error


#: So many sources stay loaded; one that is needed again is executed again.
_MOST_LOADED = 512

_loading = threads.lock()
_loaded: dict[tuple[object, ...], Any] = {}


def load(source: str, kernel_name: str, path: Path, externs: Mapping[str, object]) -> Any:
    """The ``triton.jit`` function of a source, as if imported from ``path``; made once a source.

    The text is executed as given. The file is for people and for tracebacks, and is not trusted.
    """
    key = (str(path), kernel_name, source, *sorted((name, id(it)) for name, it in externs.items()))
    with _loading:
        if key not in _loaded:
            function = _execute(source, kernel_name, path, externs)
            keep(_loaded, key, function, _MOST_LOADED, _forget_lines)
        return _loaded[key]


def _forget_lines(key: tuple[object, ...]) -> None:
    """The file is still there for tracebacks."""
    linecache.cache.pop(str(key[0]), None)


def _execute(source: str, kernel_name: str, path: Path, externs: Mapping[str, object]) -> Any:
    # Triton asks `inspect` for the source, which asks `linecache`; an entry without a time of
    # modification is never checked against the disk.
    lines = source.splitlines(keepends=True)
    linecache.cache[str(path)] = (len(source), None, lines, str(path))
    # The name is part of Triton's cache key, so it must not depend on this process.
    module = ModuleType(f"ninetoothed.generated.{kernel_name}")
    module.__file__ = str(path)
    module.__dict__.update(externs)
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except SyntaxError as error:
        location = Location(str(path), error.lineno or 1, (error.offset or 1) - 1)
        raise CompilationError(
            f"The generated source of {kernel_name!r} is no Python: {error.msg}.", location
        ) from error
    function = getattr(module, kernel_name, None)
    if not hasattr(function, "arg_names"):
        raise CompilationError(
            f"The generated source defines no `triton.jit` function {kernel_name!r}.",
            Location(str(path), 1),
        )
    return function


def _check_parameters(
    kernel_name: str,
    names: list[str],
    signature: Mapping[str, str],
    constants: Mapping[str, object],
) -> None:
    constexpr = {name for name, type_ in signature.items() if type_ == "constexpr"}
    for what, expected, given in (
        ("parameters", set(names), set(signature)),
        ("constants", constexpr, set(constants)),
    ):
        if expected != given:
            raise CompilationError(
                f"{kernel_name!r} has the {what} {sorted(expected)}, but was given {sorted(given)}."
            )


class _CompilingFor:
    """Triton's active driver while a kernel is compiled for a target other than the machine's.

    Parts of Triton's language (`tl.target_info`) ask the active driver for the target, and making
    Triton's own driver would import torch. To other threads it is the driver that was there.
    """

    def __init__(self, target: Any, previous: Any) -> None:
        self._target = target
        self._previous = previous
        self._thread = threading.get_ident()

    def get_current_target(self) -> Any:
        if threading.get_ident() == self._thread:
            return self._target
        return self._other().get_current_target()

    def _other(self) -> Any:
        from triton.runtime import driver

        return driver.default if self._previous is None else self._previous

    def __getattr__(self, name: str) -> Any:
        return getattr(self._other(), name)


_active_driver = threads.lock()


@contextmanager
def compiling_for(target: Any) -> Iterator[None]:
    """Triton's language sees ``target``, a ``GPUTarget``, as the current one, in this thread."""
    from triton.runtime import driver

    with _active_driver:
        previous = driver._active
        driver.set_active(_CompilingFor(target, previous))
        try:
            yield
        finally:
            driver.set_active(previous)


@functools.lru_cache(maxsize=2)
def _source_class(is_gluon: bool) -> Any:
    class Source(versions.source_class(is_gluon)):  # type: ignore[misc]
        def make_ir(self, target: Any, *arguments: Any, **keywords: Any) -> Any:
            # Only this stage runs Triton's language, and it is Python: holding a lock costs a
            # parallel compilation nothing that the interpreter's own lock would not.
            with compiling_for(target):
                return super().make_ir(target, *arguments, **keywords)

    return Source


#: What to do about what Triton says, by a pattern of it.
_ADVICE = {
    r"'InterpretedFunction' object": (
        "TRITON_INTERPRET is set, under which Triton compiles nothing: unset it."
    ),
    r"Input shapes should have M >= .* and K >= (\d+)": (
        "On this device `ntl.dot` takes tiles whose inner size is {0} or more. Tile both tensors with "
        "{0} there: what lies beyond a tensor's end is loaded as zero."
    ),
    r"'dtype' object has no attribute 'numel'": (
        "A tile is needed here, but this is one number. Use it as it is."
    ),
    r"Boolean value of Tensor with more than one value|can only unsplat single-element": (
        "One number is needed here: ntl.where chooses element by element, ntl.max and ntl.sum "
        "reduce to one."
    ),
    r"extra\.\w+\.libdevice' has no attribute '(\w+)'": (
        "Triton has no `libdevice.{0}` for this device: write it with functions of `ntl` that are "
        "everywhere, or with another of `ntl.libdevice`."
    ),
    r"^(\w+) is not defined$": (
        "Assign {0} a value of the same shape and type before the if or the loop that assigns it."
    ),
    r"Loop-carried variable (\w+) has initial type": (
        "Give {0} the shape and the element type that the loop leaves it before the loop, as "
        "`{0} = ntl.zeros(shape, dtype=ntl.float32)` does."
    ),
}


def _refused(
    error: Exception, kernel_name: str, source: str, path: Path, target: Target
) -> CompilationError:
    """Triton's error as ours, with the line of the generated source where it is known."""
    line = _line_of(error, kernel_name, source)
    reason = "; ".join(dict.fromkeys(_reasons(error)))
    message = (
        f"Triton cannot compile {kernel_name!r} for ({target.backend!r}, {target.arch!r}): {reason}"
    )
    for pattern, advice in _ADVICE.items():
        if said := re.search(pattern, reason):
            message += f". {advice.format(*said.groups())}"
    if line is None:
        return CompilationError(f"{message}\n  generated source: {path}")
    column = getattr(getattr(error, "node", None), "col_offset", None)
    return CompilationError(message, Location(str(path), line, column))


def _reasons(error: BaseException | None) -> Iterator[str]:
    """What Triton says, innermost first, without its excerpts of the source."""
    if error is None:
        return
    yield from _reasons(error.__cause__)
    said = getattr(error, "error_message", None) if hasattr(error, "node") else str(error)
    if said:
        # What Triton did not raise itself it quotes as `repr` has it.
        quoted = re.fullmatch(r"\w+\((['\"])(.*)\1\)", said.strip(), re.DOTALL)
        yield quoted[2] if quoted else said.strip()
    elif not hasattr(error, "node") or error.__cause__ is None:
        # An assertion at compile time may say nothing.
        yield type(error).__name__


def _line_of(error: BaseException, kernel_name: str, source: str) -> int | None:
    """The generated file's line: Triton counts from the ``def`` of the kernel."""
    offset: int | None = getattr(getattr(error, "node", None), "lineno", None)
    if offset is None:
        return None
    for definition in threads.parse(source).body:
        if isinstance(definition, ast.FunctionDef) and definition.name == kernel_name:
            return definition.lineno + offset - 1
    return None
