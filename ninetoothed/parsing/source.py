"""The source of a user's function: its tree with true positions, and what its free names mean.

Nothing here knows of tensors or kernels, and nothing changes the function that is read.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from ninetoothed import threads
from ninetoothed.errors import ApplicationError, Location, UnresolvedNameError, location_of, near
from ninetoothed.parsing.syntax.definitions import definition_of
from ninetoothed.records import dataclass

#: Packages whose Python functions are no user's. So are those of the standard library.
LIBRARIES = frozenset({"ninetoothed", "triton", "numpy", "torch", "paddle", "ml_dtypes"})

_INSTALLED = frozenset({"site-packages", "dist-packages"})
_PYTHON = str(Path(functools.__file__).parent)

#: By the identity of a function's code: what it was compiled from, once it was read.
_trees: dict[int, tuple[weakref.ref[CodeType], ast.FunctionDef]] = {}

#: By file: PyTorch's compiler empties `linecache`, and what kernels are compiled from must stay.
_generated: dict[str, str] = {}

#: Of such a file, by line, where that stands which it was made of; and where the whole of that begins.
_origins: dict[str, tuple[Mapping[int, Location], Location]] = {}


@dataclass(frozen=True)
class FunctionSource:
    """A function and its tree.

    Attributes:
        function: the function object, as `own_function` gives it.
        tree: its definition; lines and columns are those of ``file``. A lambda is given as a
            definition that returns its body. Shared between readers: copy before changing it.
        file: the file, as ``linecache`` knows it (a notebook's cell has one too).
    """

    function: FunctionType
    tree: ast.FunctionDef
    file: str

    @property
    def name(self) -> str:
        """The function's name, ``"lambda_"`` for a lambda."""
        return self.tree.name

    @threads.cached_property
    def closure(self) -> dict[str, Any]:
        """The closure's variables that have a value by now."""
        cells = zip(
            self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True
        )
        return {name: cell.cell_contents for name, cell in cells if is_filled(cell)}

    @property
    def defaults(self) -> dict[str, Any]:
        """The default values by parameter name."""
        arguments = self.tree.args
        positional = [argument.arg for argument in arguments.posonlyargs + arguments.args]
        values = self.function.__defaults__ or ()
        by_name = dict(zip(positional[len(positional) - len(values) :], values, strict=True))
        return {**by_name, **(self.function.__kwdefaults__ or {})}

    def resolve(self, name: str, node: ast.AST | None = None) -> Any:
        """The object that Python would find for the free name ``name``.

        Looks in the closure, then the module's globals, then the builtins.

        Raises:
            UnresolvedNameError: if there is none; it points at ``node``.
        """
        for namespace in self._namespaces():
            if name in namespace:
                return namespace[name]
        known = {key for namespace in self._namespaces() for key in namespace}
        known |= set(self.function.__code__.co_varnames)
        raise UnresolvedNameError(
            f"The name {name!r} in {self.name!r} is not defined: it is no local variable, and "
            f"neither the closure, nor the module, nor the builtins have it.{near(name, known)}",
            None if node is None else self.location(node),
        )

    def location(self, node: ast.AST) -> Location:
        """Where ``node`` of the tree stands in the user's file."""
        return location_of(node, self.file)

    def _namespaces(self) -> Iterator[dict[str, Any]]:
        yield self.closure
        yield self.function.__globals__
        yield self.function.__builtins__  # type: ignore[attr-defined]


def keep(file: str, text: str, origins: Mapping[int, Location], beginning: Location) -> None:
    """Keeps the text of functions that were generated, under a name for their file, and what it was made of."""
    _generated[file] = text
    _origins[file] = origins, beginning
    # Where tracebacks and debuggers look.
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)


def written_at(location: Location) -> Location:
    """Where that was written of which a place in generated text was made; of any other place itself."""
    while location.file in _origins:
        origins, beginning = _origins[location.file]
        location = origins.get(location.line, beginning)
    return location


def begins_at(function: Callable[..., Any]) -> Location:
    """Where a function was written, or what it was made of."""
    code = function.__code__
    return written_at(Location(code.co_filename, code.co_firstlineno))


def read(function: Callable[..., Any]) -> FunctionSource:
    """Read the source of ``function``.

    Args:
        function: a plain Python function: nested, decorated, a lambda, or from a notebook's cell.

    Raises:
        ApplicationError: if it is no Python function or its source cannot be found.
    """
    plain = own_function(function)
    if not isinstance(plain, FunctionType):
        raise ApplicationError(
            f"Expected a function written in Python, found {type(function).__name__} "
            f"{function!r}. Hand the plain function over."
        )
    code = plain.__code__
    if inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain):
        raise ApplicationError(
            f"{plain.__qualname__!r} is an `async def`: a program waits for nothing. Write `def`.",
            Location(code.co_filename, code.co_firstlineno),
        )
    tree = _tree_of(code, plain.__globals__)
    if tree is None:
        raise ApplicationError(
            f"The source of {plain.__qualname__!r} was not found, and a kernel is compiled from "
            "it. Define the function in a file or a notebook's cell that has not changed since: "
            "Python's plain prompt and `python -c` keep no source, and text given to exec() needs an "
            "entry in linecache.",
            Location(code.co_filename, code.co_firstlineno),
        )
    return FunctionSource(plain, tree, code.co_filename)


def _tree_of(code: CodeType, namespace: dict[str, Any]) -> ast.FunctionDef | None:
    """The definition that a function's code was compiled from; what it was stays, whatever becomes of the file."""
    kept = _trees.get(id(code))
    if kept is not None and kept[0]() is code:
        return kept[1]
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, namespace)
    if text := _generated.get(code.co_filename):
        lines = text.splitlines(keepends=True)
    tree = definition_of(code, lines) if lines else None
    if tree is not None:
        number = id(code)
        _trees[number] = weakref.ref(code, lambda _: _trees.pop(number, None)), tree
    return tree


def own_function(function: Any) -> Any:
    """The function that the user means: a wrapper of the user's own is one, and does what it says.

    What a decorator of an installed package puts around it is for who calls it from Python.
    """
    while hasattr(function, "__wrapped__"):
        if isinstance(function, FunctionType) and not _is_of_a_package(function):
            break
        function = function.__wrapped__
    return function


def _is_of_a_package(wrapper: FunctionType) -> bool:
    """Whether a wrapper is an installed package's, Python's own or of no file, and not what it wraps too."""
    file = wrapper.__code__.co_filename
    is_made_up = file.startswith("<") and not file.startswith("<ipython")
    is_installed = bool(_INSTALLED.intersection(Path(file).parts)) or file.startswith(_PYTHON)
    # `functools.wraps` gives a wrapper the module of what it wraps.
    package = str(wrapper.__globals__.get("__name__")).partition(".")[0]
    return (is_made_up or is_installed) and package != (wrapper.__module__ or "").partition(".")[0]


def names_in(code: CodeType) -> set[str]:
    """The names that a function and those within it read from outside."""
    names = {*code.co_names, *code.co_freevars}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= names_in(constant)
    return names


def application_of(given: Any) -> Any:
    """What a kernel is made from, as a function; keywords of a ``functools.partial`` become defaults.

    Raises:
        ApplicationError: it is no function written in Python, or a partial that leaves parameters
            open after one that it gives.
    """
    if isinstance(given, functools.partial):
        return _with_defaults(given)
    if not isinstance(given, FunctionType):
        raise ApplicationError(
            f"An application is a function written in Python, but got {type(given).__name__} "
            f"{given!r}. Write one that does what it does; a function within a function knows the objects "
            "around it."
        )
    return given


def _with_defaults(given: functools.partial[Any]) -> FunctionType:
    function = application_of(given.func)
    names = inspect.signature(function).parameters
    own = {p.name: p.default for p in names.values() if p.default is not p.empty}
    defaults = {**own, **given.keywords}
    wrong = (
        ["positional arguments"] if given.args else [n for n in given.keywords if n not in names]
    )
    open_after = [name for name in list(names)[_first(names, defaults) :] if name not in defaults]
    if wrong or open_after:
        found = wrong[0] if wrong else f"{open_after[0]!r} open behind one that it gives"
        raise ApplicationError(
            f"A partial application gives the last parameters of {function.__qualname__!r} "
            f"({', '.join(names)}) by keyword: the arranged tensors are its first. This one has "
            f"{found}."
        )
    positional = function.__code__.co_varnames[: function.__code__.co_argcount]
    by_position = tuple(defaults.pop(name) for name in positional if name in defaults)
    result = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        by_position,
        function.__closure__,
    )
    result.__kwdefaults__ = defaults
    for name in ("__module__", "__qualname__", "__doc__"):
        setattr(result, name, getattr(function, name))
    return result


def _first(names: Iterable[str], among: Container[str]) -> int:
    """The place of the first name that is there; their number where none is."""
    listed = list(names)
    return next((place for place, name in enumerate(listed) if name in among), len(listed))


def is_filled(cell: Any) -> bool:
    """Whether a closure's variable has a value."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
