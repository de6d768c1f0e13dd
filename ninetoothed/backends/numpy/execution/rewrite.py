"""The application as Python that NumPy can run: the user's own file and lines, a few hooks added.

A tile's name stands for the tile's value where a value is needed and for the place where it is
assigned to. So in the tree of the user's function

- a parameter (or ``x[k]``) in a place that needs a value becomes ``__read__(x)``,
- an assignment to a parameter becomes ``x = __assign__(x, value)``,
- a call of a user's function becomes ``__invoke__(f)(x, …)``, which is handed the tiles
  themselves, and gives back what the function assigned to the parameters,
- the names that a loop or a run-time ``if`` assigns lose the masks of their padding.

What these hooks do is in `ninetoothed.backends.numpy.execution.hooks`. Everything else stays as it is.
"""

from __future__ import annotations
import __future__

import ast
import copy
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ninetoothed.backends.numpy.execution.functions import own_names
from ninetoothed.backends.numpy.execution.helpers import Helpers, key_of
from ninetoothed.backends.numpy.execution.rewrite_statements import Rewriter
from ninetoothed.bounded import keep
from ninetoothed.parsing import source as sources
from ninetoothed.parsing.source import FunctionSource
from ninetoothed.records import dataclass

#: The names that a rewritten function takes from its closure.
HOOKS = tuple(
    """__read__ __named__ __assign__ __augmented__ __atomic__ __place__ __position__ __invoke__ __function__
    __outcome__ __lasting__ __reached__ __rounds__ __asked__ __locals__ __value__ __stops__ __settles__ __decides__
    __beside__ __and__ __or__ __not__ __holds__ __failed__ __choose__ __met__ __pick__ __is__ __in__ __builtin__
    __after__ __quotient__ __upward__ __remainder__ __minus__ __left__ __owner__ __turns__ __range__""".split()
)

_FUTURES = tuple(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)

#: How many functions' code is kept.
_CODES_KEPT = 1024


@dataclass(frozen=True)
class Rewritten:
    """A function's code, rewritten.

    Attributes:
        code: runs in the user's file and lines, and returns ``__outcome__(result, {place or keyword
            of a parameter: last value})``.
        names: the free names that stand for something else than for the user (``tl`` for ``ntl``).
    """

    code: types.CodeType
    names: Mapping[str, Any]

    def bound(self, function: types.FunctionType, hooks: Mapping[str, Any]) -> types.FunctionType:
        """The code as a function, with the globals, closure and defaults of the user's."""
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        cells |= {name: types.CellType(self.names[name]) for name in cells.keys() & self.names}
        cells |= {name: types.CellType(hooks[name]) for name in HOOKS}
        bound = types.FunctionType(
            self.code,
            {**function.__globals__, **self.names} if self.names else function.__globals__,
            function.__name__,
            function.__defaults__,
            tuple(cells[name] for name in self.code.co_freevars),
        )
        bound.__kwdefaults__ = function.__kwdefaults__
        bound.__qualname__ = function.__qualname__
        return bound


_codes: dict[Any, Rewritten] = {}


def rewrite(function: Any, is_triton: bool = False) -> tuple[types.FunctionType, Rewritten]:
    """A user's own function, and its code rewritten, which is made once.

    Args:
        is_triton: whether it is written in Triton's language, whose division rounds toward zero.

    Raises:
        ApplicationError: the source is not found, or it uses what cannot run.
    """
    plain = sources.own_function(function)
    key = (*key_of(plain), is_triton)
    found = _codes.get(key)
    if found is None:
        found = keep(_codes, key, _rewritten(sources.read(plain), is_triton), _CODES_KEPT)
    return plain, found


def give_values(functions: Sequence[Any]) -> bool:
    """Whether there are functions, and all do no more than return an expression."""
    return bool(functions) and not any(map(Helpers(Rewriter).call_does_more, functions))


def _rewritten(source: FunctionSource, is_triton: bool) -> Rewritten:
    function = source.function
    names = own_names(function)
    rewriter = Rewriter(source, names)
    rewriter.truncates = is_triton
    tree = rewriter.function(copy.deepcopy(source.tree))
    return Rewritten(_compiled(tree, [*HOOKS, *function.__code__.co_freevars], source), names)


def _compiled(tree: ast.FunctionDef, free: Iterable[str], source: FunctionSource) -> types.CodeType:
    """The function's code, compiled within one that makes the names ``free`` free variables."""
    # Under its own name it would be the one within that a function which calls itself means.
    name, tree.name = tree.name, "__rewritten__"
    arguments = ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, [])
    around = ast.FunctionDef(
        name="__around__", args=arguments, body=[tree], decorator_list=[], returns=None
    )
    if "type_params" in ast.FunctionDef._fields:
        setattr(around, "type_params", [])  # noqa: B010 - a field since Python 3.12
    module = ast.Module(body=[ast.copy_location(around, tree)], type_ignores=[])
    ast.fix_missing_locations(module)
    flags = sum(flag for flag in _FUTURES if source.function.__code__.co_flags & flag)
    code = compile(module, source.file, "exec", flags=flags, dont_inherit=True)
    (outer,) = (const for const in code.co_consts if isinstance(const, types.CodeType))
    (inner,) = (
        const
        for const in outer.co_consts
        if isinstance(const, types.CodeType) and const.co_name == tree.name
    )
    return inner.replace(co_name=name)
