"""Every error and warning a user can see. Each says what was found, what was expected, what to do, and where.

A `Location` points into the user's own file; the message ends with the line and a caret.
"""

from __future__ import annotations

import ast
import functools
import importlib
import linecache
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, TypeVar

from ninetoothed.records import dataclass

_FunctionT = TypeVar("_FunctionT", bound=Callable[..., Any])

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


@dataclass(frozen=True)
class Location:
    """A place in the user's source: lines count from 1, columns from 0."""

    file: str
    line: int
    column: int | None = None
    end_column: int | None = None

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.line).rstrip("\n")
        where = f'  File "{self.file}", line {self.line}'
        if not text:
            return where
        stripped = text.lstrip()
        shown = f"{where}\n    {stripped}"
        if self.column is None:
            return shown
        start = self.column - (len(text) - len(stripped))
        width = 1
        if self.end_column is not None:
            width = max(1, min(self.end_column, len(text)) - self.column)
        return f"{shown}\n    {' ' * max(start, 0)}{'^' * width}"


def location_of(node: ast.AST, file: str) -> Location:
    """The place of ``node``; its end column only where it ends on the line it starts on."""
    line = getattr(node, "lineno", 1)
    same_line = getattr(node, "end_lineno", None) == line
    end = getattr(node, "end_col_offset", None) if same_line else None
    return Location(
        file,
        line,
        _characters(file, line, getattr(node, "col_offset", None)),
        _characters(file, line, end),
    )


def _characters(file: str, line: int, column: int | None) -> int | None:
    """A tree's columns count UTF-8 bytes; a reader's count characters."""
    if not column:
        return column
    text = linecache.getline(file, line)
    return column if text.isascii() else len(text.encode()[:column].decode(errors="ignore"))


#: How the names of files begin that were written for a call.
_GENERATED = ("<launch of ", "<operator ", "<frozen ")

#: The packages of frameworks that call operators: a frontend that registers some adds its framework's.
FRAMEWORKS: set[str] = set()


def is_own(file: str) -> bool:
    """Whether a file is one of the package's."""
    return file.startswith(_PACKAGE)


def caller_location() -> Location | None:
    """Where the user's code called into the package: the innermost frame outside of it.

    Plugins of ours, packages called ``ninetoothed_…``, are not the user's code either, nor are `FRAMEWORKS`, what
    compilers wrote into no module, and the module of Python's by which a property of ours is found once.
    """
    frame = sys._getframe(1)
    while frame is not None and (
        frame.f_code.co_filename.startswith(_PACKAGE) or _is_nobodys(frame)
    ):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return None
    return Location(frame.f_code.co_filename, frame.f_lineno)


def _is_nobodys(frame: FrameType) -> bool:
    """Whether a frame that is not our own is of no user's code; see `caller_location`."""
    file, module = frame.f_code.co_filename, frame.f_globals.get("__name__")
    return (
        file.startswith(_GENERATED)
        or file == functools.__file__
        or not module
        or module.startswith("ninetoothed_")
        or module.partition(".")[0] in FRAMEWORKS
    )


def raised_at(error: BaseException) -> Location | None:
    """Where in the user's source an error was raised, or what raised it was called: the innermost frame there."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Location(error.filename, error.lineno)
    place, reached = None, error.__traceback__
    while reached is not None:
        file = reached.tb_frame.f_code.co_filename
        if not (is_own(file) or file.startswith("<") or file == importlib.__file__):
            place = Location(file, reached.tb_lineno)
        reached = reached.tb_next
    return place


class NineToothedError(Exception):
    """The base of all errors of the package.

    Args:
        message: what was found, what was expected, what to do.
        location: where in the user's source, if it is known.
    """

    #: Whether one without a place points at the user's call into the package.
    points_at_caller = False

    def __init__(self, message: str, location: Location | None = None) -> None:
        if location is None and self.points_at_caller:
            location = caller_location()
        self.message = message
        self.location = location
        super().__init__(message if location is None else f"{message}\n{location}")


class ArrangementError(NineToothedError, ValueError):
    """A meta-operation was given what it cannot take, or the arranged tensors do not match."""

    points_at_caller = True


class ApplicationError(NineToothedError, SyntaxError):
    """The application uses something that cannot be compiled."""

    points_at_caller = True

    def __str__(self) -> str:
        return str(self.args[0])


class UnresolvedNameError(ApplicationError):
    """A name in the application is not defined anywhere Python would look."""

    # No NameError too: its instances are laid out differently from SyntaxError's.


class ArgumentError(NineToothedError, TypeError):
    """A kernel was called with arguments that it cannot take. It points at the call."""

    points_at_caller = True


class DeviceError(NineToothedError, RuntimeError):
    """The device at hand cannot run the kernel, or there is no backend for it."""


class CompilationError(NineToothedError, RuntimeError):
    """The backend's compiler refused the generated source."""


class ShapeError(ApplicationError, CompilationError):
    """Tiles of the sizes that a call gives do not fit each other, which a backend found."""


def failed_assertion(said: Any = "", where: str = "") -> str:
    """The words of an application's assertion that does not hold."""
    return f"An assertion of the application fails{where}{f': {said}' if said else '.'}"


class PluginError(NineToothedError, RuntimeError):
    """A frontend or a backend is missing, broken or ambiguous."""


class OutOfBoundsError(NineToothedError, IndexError):
    """Debug mode: an access left its tensor."""

    points_at_caller = True


class UnwrittenOutputError(NineToothedError, RuntimeError):
    """Debug mode: a kernel left elements of an output unwritten."""


class ConflictingStoreError(NineToothedError, RuntimeError):
    """Debug mode: two programs stored to one element."""


class DifferingStoreError(NineToothedError, ArithmeticError):
    """Debug mode: a second backend stored something else."""


class OutOfRangeError(NineToothedError, OverflowError):
    """Debug mode: a float became an integer of a type that does not hold it."""


class MissingPackageError(NineToothedError, ImportError):
    """An optional package is needed and not installed."""


def too_deep(subject: str) -> str:
    """The message for a `RecursionError`: what walks a tree calls itself for each level of it."""
    return (
        f"{subject} is nested too deep: a sum of hundreds of terms is nested as deep as it has terms, and "
        "functions of which each calls the next as deep as there are. Give parts of it names of their own, call "
        "fewer within one another, or raise Python's recursion limit, which is "
        f"{sys.getrecursionlimit()} (`sys.setrecursionlimit`)."
    )


def located_where_too_deep(
    subject: str, kind: type[NineToothedError]
) -> Callable[[_FunctionT], _FunctionT]:
    """Makes a function raise an error that points at its user where Python's recursion limit is reached."""

    def decorate(function: _FunctionT) -> _FunctionT:
        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            try:
                return function(*arguments, **keywords)
            except RecursionError:
                raise kind(too_deep(subject), caller_location()) from None

        return call  # type: ignore[return-value]

    return decorate


class DeclarationWarning(UserWarning):
    """What a call gives is not what was declared, or what was declared is nothing that there is.

    The kernel runs, and correctly, with what is given. It points at the declaration.

    Attributes:
        message: what was declared and what is given.
        location: where the user declared it, if it is known.
    """

    def __init__(self, message: str, location: Location | None = None) -> None:
        self.message = message
        self.location = location
        super().__init__(message if location is None else f"{message}\n{location}")


def warn_of_declaration(message: str, location: Location | None) -> None:
    """Warns of a declaration each time, whatever was warned of before.

    Raises:
        DeclarationWarning: warnings of the kind were made errors.
    """
    place = location or caller_location() or Location("<unknown>", 1)
    warning = DeclarationWarning(message, location)
    warnings.warn_explicit(warning, DeclarationWarning, place.file, place.line)


def shown(value: Any) -> str:
    """``repr(value)`` for a message; of an int that is long to read, or that Python does not print, its bits."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an int of {value.bit_length()} bits"
    try:
        return repr(value)
    except ValueError:
        return f"a {type(value).__name__} with an int of too many digits to print"
    except Exception:
        return object.__repr__(value)


def near(name: str, candidates: Iterable[str]) -> str:
    """`` Did you mean 'x'?`` where a candidate comes near ``name``, else an empty string."""
    import difflib  # Only an error needs it, and it costs a millisecond.

    matches = difflib.get_close_matches(name, list(candidates), n=1)
    return f" Did you mean {matches[0]!r}?" if matches else ""
