"""What a kernel and its symbols are called: the user's own names, wherever there are some."""

from __future__ import annotations

import functools
import inspect
import keyword
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from ninetoothed.parsing import source
from ninetoothed.parsing.frames import MODULE_NAMES
from ninetoothed.program.names import unused
from ninetoothed.program.nodes import SymbolValue
from ninetoothed.program.program import Program
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.tensors.arrange import Arrangement, Parameter, symbols_of
from ninetoothed.tensors.level import Level, owner_of


def default_name(arrangement: Callable[..., Any], application: Callable[..., Any]) -> str:
    if isinstance(arrangement, functools.partial):
        return default_name(arrangement.func, application)
    name = getattr(application, "__name__", "application")
    module = getattr(arrangement, "__module__", None) or "__main__"
    if name == "application" and module != "__main__":
        name = module.rpartition(".")[2]
    return kernel_name_of(name)


def kernel_name_of(name: str) -> str:
    """What a kernel is called after a function of this name."""
    return name if is_kernel_name(name) else "kernel"


def is_kernel_name(name: Any) -> bool:
    """Whether a generated source, and what a compiler makes of it, can have a function of this name."""
    is_plain = isinstance(name, str) and name.isidentifier() and name.isascii()
    return (
        is_plain
        and not keyword.iskeyword(name)
        and name not in MODULE_NAMES
        and name.strip("_") != ""
    )


def default_symbols(arrangement: Any, depth: int = 3) -> dict[Symbol, str]:
    """The symbols that are defaults of the arrangement's parameters, with those names.

    The functions that the arrangement itself uses are asked too, so that an arrangement built on
    another's shows that one's names.
    """
    if isinstance(arrangement, functools.partial):
        return default_symbols(arrangement.func, depth)
    if not inspect.isfunction(arrangement):
        return {}
    found: dict[Symbol, str] = {}
    for parameter in inspect.signature(arrangement).parameters.values():
        if isinstance(parameter.default, Symbol) and parameter.default.op == "leaf":
            found.setdefault(parameter.default, parameter.name)
    for function in _functions_used(arrangement) if depth else ():
        for symbol, name in default_symbols(function, depth - 1).items():
            found.setdefault(symbol, name)
    return found


def _functions_used(function: Any) -> list[Any]:
    """The functions that a function may call, by the names in its code."""
    names = function.__code__.co_names
    known = [function.__globals__[name] for name in names if name in function.__globals__]
    within = [
        getattr(module, name, None)
        for module in known
        if inspect.ismodule(module)
        for name in names
    ]
    return [each for each in (*known, *within) if inspect.isfunction(each) and each is not function]


def written_symbols(parameters: Sequence[Parameter]) -> list[Symbol]:
    """The users' symbols in the order in which meta-operations name them: a tile's shape, then strides."""
    found: dict[Symbol, None] = {}
    seen: set[int] = set()

    def walk(level: Level) -> None:
        # The levels of a tile are of one operation.
        if level.origin is None or id(level.origin.operation) in seen:
            return
        seen.add(id(level.origin.operation))
        for operand in level.origin.operands:
            walk(operand)
        for symbol in level.origin.operation.symbols():
            found.setdefault(symbol)

    for parameter in parameters:
        for level in parameter.tensor.levels if parameter.tensor is not None else ():
            walk(level)
    return [symbol for symbol in found if symbol.leaf.role == "symbol"]


def all_symbols(
    arrangement: Arrangement, program: Program | None = None, among: Collection[str] | None = None
) -> list[Symbol]:
    found = dict.fromkeys(symbols_of(arrangement, among))
    for node in () if program is None else program.nodes():
        read: Iterable[Symbol] = ()
        if isinstance(node, SymbolValue):
            read = as_symbol(node.symbol).leaves()
        elif hasattr(node, "view"):
            read = node.view.symbols
        for symbol in read:
            if symbol.leaf.role != "index":
                found.setdefault(symbol)
    return list(found)


def names_in(function: Any) -> frozenset[str]:
    """The identifiers of a function's code."""
    code = function.__code__
    return frozenset((*code.co_varnames, *code.co_names, *code.co_freevars, *code.co_cellvars))


def symbols_in(function: Any) -> list[Symbol]:
    """The symbols that a function's free names stand for, and what those are made of."""
    known = {**function.__globals__, **source.read(function).closure}
    named = (known.get(name) for name in sorted(names_in(function)))
    return [
        leaf
        for symbol in named
        if isinstance(symbol, Symbol)
        for leaf in symbol.leaves()
        if leaf.leaf.role != "index"
    ]


def named_symbols(
    symbols: Sequence[Symbol],
    parameters: Sequence[Parameter],
    defaults: Mapping[Symbol, str],
    names: Collection[str],
) -> dict[Symbol, str]:
    """A name for each symbol: the user's for symbols, the parameter's for sizes and strides.

    Args:
        names: what is called otherwise already.
    """
    sources: dict[int, str] = {}
    for parameter in parameters:
        sources.setdefault(id(parameter.source), parameter.name)
    named: dict[Symbol, str] = {}
    everything = dict.fromkeys(
        [
            *symbols,
            *(as_symbol(s) for p in parameters for s in (*p.source.shape, *p.source.strides)),
        ]
    )
    leaves = [symbol for symbol in everything if symbol.op == "leaf"]
    # The user's own name is how a call gives it, whatever else is called so: nothing before it takes that.
    own = {symbol: symbol.leaf.name for symbol in leaves if _is_given_by_name(symbol)}
    for symbol in leaves:
        if symbol.leaf.owner is None and symbol not in own:
            # What the tuner chooses is called as the user called it, unless another symbol is.
            own[symbol] = unused(symbol.leaf.name, own.values())
    taken = {*names, *own.values()}
    for symbol in leaves:
        leaf = symbol.leaf
        if symbol in own:
            named[symbol] = own[symbol]
            continue
        if leaf.role in ("size", "stride"):
            owner = owner_of(symbol)
            wanted = f"{sources[id(owner)]}_{leaf.role}_{leaf.dim}"
        else:
            wanted = defaults.get(symbol, leaf.name)
        named[symbol] = unused(wanted, taken)
        taken.add(named[symbol])
    return named


def _is_given_by_name(symbol: Symbol) -> bool:
    return symbol.leaf.owner is None and not symbol.leaf.meta
