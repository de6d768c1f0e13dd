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
from ninetoothed.records import dataclass

#: Packages whose Python functions are no user's. So are those of the standard library.
LIBRARIES = frozenset({"ninetoothed", "triton", "numpy", "torch", "paddle", "ml_dtypes"})

_INSTALLED = frozenset({"site-packages", "dist-packages"})
_PYTHON = str(Path(functools.__file__).parent)

#: How many files' trees are kept. Each is read again when its text has changed.
_FILES_KEPT = 64

#: Where statements of a statement stand, in the order of the text.
_BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")

#: What has no part that the function around it computes, and what has its defaults alone.
_WITHOUT_PARTS = (ast.Name, ast.Constant, ast.ClassDef)
_FUNCTIONS = (ast.FunctionDef, ast.Lambda)

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
    text = _generated.get(code.co_filename) or "".join(lines)
    tree = _find(code, text) if text else None
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


def _find(code: CodeType, text: str) -> ast.FunctionDef | None:
    """The definition that ``code`` was compiled from, else None."""
    try:
        if code.co_name == "<lambda>":
            return _as_definition(_choose_lambda(code, _lambdas(text).get(code.co_firstlineno, [])))
        found = _definitions(text).get((code.co_name, code.co_firstlineno))
    except SyntaxError:
        return None
    # A file that was edited since may have another function in its place.
    return found if found is not None and _parameter_names(found.args) == _varnames(code) else None


@functools.lru_cache(maxsize=_FILES_KEPT)
def _parsed(text: str) -> ast.Module:
    return threads.parse(text)


@functools.lru_cache(maxsize=_FILES_KEPT)
def _definitions(text: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """A file's definitions by name and first line."""
    definitions: dict[tuple[str, int], ast.FunctionDef] = {}
    pending: list[ast.AST] = [_parsed(text)]
    # Statements stand in statements alone: their expressions need not be gone through.
    for node in pending:
        pending.extend(statements_in(node))
        if isinstance(node, ast.FunctionDef):
            # A code object's first line is that of the first decorator.
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            definitions[node.name, first] = node
    return definitions


def statements_in(node: ast.AST) -> list[ast.AST]:
    """What stands in the blocks of a statement, in the order of the text; handlers and cases have blocks too."""
    return [statement for name in _BLOCKS for statement in node.__dict__.get(name, ())]


@functools.lru_cache(maxsize=_FILES_KEPT)
def _lambdas(text: str) -> dict[int, list[ast.Lambda]]:
    """A file's lambdas by line."""
    lambdas: dict[int, list[ast.Lambda]] = {}
    for node in ast.walk(_parsed(text)):
        if isinstance(node, ast.Lambda):
            lambdas.setdefault(node.lineno, []).append(node)
    return lambdas


def _choose_lambda(code: CodeType, candidates: list[ast.Lambda]) -> ast.Lambda | None:
    """The one lambda of a line that ``code`` can have come from; None where that is not certain."""
    fitting = [node for node in candidates if _parameter_names(node.args) == _varnames(code)]
    extent = _extent(code) if len(fitting) > 1 else None
    if extent is not None:
        # Of lambdas within each other it is the innermost one that has all that the code was made of.
        start, end = extent
        around = [node for node in fitting if _start(node.body) <= start and end <= _end(node.body)]
        latest = max((_start(node.body) for node in around), default=None)
        fitting = [node for node in around if _start(node.body) == latest]
    elif len(fitting) > 1:
        fitting = [node for node in fitting if _contents(_compiled(node)) == _contents(code)]
    return fitting[0] if len(fitting) == 1 else None


def _extent(code: CodeType) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """The lines and columns between which what code was made of stands; Python 3.10 keeps none."""
    starts, ends = [], []
    positions = getattr(code, "co_positions", tuple)
    for line, last_line, column, last_column in positions():
        if None not in (line, last_line, column, last_column):
            start, end = (line, column), (last_line, last_column)
            if start < end:
                starts.append(start)
                ends.append(end)
    return (min(starts), max(ends)) if starts else None


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _compiled(node: ast.Lambda) -> CodeType:
    code = compile(ast.Expression(node), "<lambda>", "eval")
    return next(constant for constant in code.co_consts if isinstance(constant, CodeType))


def _contents(code: CodeType) -> tuple[list[Any], list[str]]:
    """The constants and the names of a function; whether a name is a closure's is left open."""
    constants = [constant for constant in code.co_consts if not isinstance(constant, CodeType)]
    return constants, sorted(code.co_names + code.co_freevars)


def _as_definition(node: ast.Lambda | None) -> ast.FunctionDef | None:
    if node is None:
        return None
    body = ast.copy_location(ast.Return(value=node.body), node.body)
    definition = ast.FunctionDef(
        name="lambda_", args=node.args, body=[body], decorator_list=[], returns=None
    )
    return ast.copy_location(definition, node)


def _parameter_names(arguments: ast.arguments) -> list[str]:
    names = [item.arg for item in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
    return names + [item.arg for item in (arguments.vararg, arguments.kwarg) if item is not None]


def _varnames(code: CodeType) -> list[str]:
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + stars])


def returns_value(tree: ast.FunctionDef) -> bool:
    """Whether a function returns more than None: then assigning a parameter rebinds its own name."""
    found = (node.value for one in tree.body for node in returns_of(one))
    return any(v and not (isinstance(v, ast.Constant) and v.value is None) for v in found)


def returns_of(node: ast.AST) -> Iterator[ast.Return]:
    """The returns of the function itself that a statement of it is or has."""
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, ast.Return):
            yield current
        elif not isinstance(current, ast.FunctionDef | ast.ClassDef):
            pending.extend(reversed(statements_in(current)))


def of_one_function(node: ast.AST) -> Iterator[ast.AST]:
    """As ``ast.walk`` in the order of the text, but not into functions defined within: of these the
    defaults alone are this function's to compute."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, _WITHOUT_PARTS):
            continue
        if isinstance(current, _FUNCTIONS):
            pending.extend(reversed(defaults_of(current)))
            continue
        fields = current.__dict__
        is_own = isinstance(current, ast.comprehension)
        for name in reversed(current._fields):
            if is_own and name == "target":
                # Its variables are its own.
                continue
            value = fields.get(name)
            if isinstance(value, list):
                for item in reversed(value):
                    if isinstance(item, ast.AST):
                        pending.append(item)
            elif isinstance(value, ast.AST) and value._fields:
                pending.append(value)


def defaults_of(node: ast.FunctionDef | ast.Lambda) -> list[ast.expr]:
    """The defaults of a function defined within another one, which computes them."""
    return [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]


def assigned_names(nodes: Iterable[ast.AST]) -> dict[str, int]:
    """The names that statements of one function assign, in order, and how many places do."""
    found: dict[str, int] = {}
    for node in nodes:
        for child in of_one_function(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                found[child.id] = found.get(child.id, 0) + 1
            elif isinstance(child, ast.FunctionDef):
                found[child.name] = found.get(child.name, 0) + 1
    return found


def is_filled(cell: Any) -> bool:
    """Whether a closure's variable has a value."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
