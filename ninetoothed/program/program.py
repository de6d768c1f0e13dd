"""The Program: what one program of a kernel does, as the parser makes it and the passes rewrite it.

See ``nodes`` for what it is made of, ``verify`` for what must always hold.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from ninetoothed import threads
from ninetoothed.program.effects import is_lowest, operation_of
from ninetoothed.program.frozen import FrozenList, freeze
from ninetoothed.program.nodes import (
    ElementLoad,
    ElementPlace,
    ElementRef,
    ElementStore,
    SequenceLength,
    SymbolValue,
    TileRef,
    walk,
)
from ninetoothed.program.printer import block_text, parameter_text
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import as_symbol

#: What is of a tensor's tiles, and not of its source alone.
_ARRANGED = (TileRef, ElementLoad, ElementStore, ElementPlace, SequenceLength)


@dataclass(frozen=True)
class Program:
    """What one program of a kernel does.

    Attributes:
        name: the kernel's name.
        parameters: the arranged parameters, in the application's order.
        body: statements: ``Assign`` to a name or a tuple of names, ``AnnAssign``, ``AugAssign`` to
            a name, ``Expr``, ``If``, ``For`` over a name, ``While``, ``Pass``, ``Store`` and
            ``SourceStore``. None is changed once the program is made (`frozen`).
        externs: ``triton.jit`` functions by the name that they have in the body.
        helpers: functions that the language calls back (the combine function of ``reduce``), by
            name. Their bodies end in a ``Return`` and otherwise have the same nodes.
        names: every identifier in the body: a backend's own names must differ from them.
        rebound: by variable, the parameter whose name it has in the application, which is never assigned.
        viewed: the parameters of whose tiles all names read what the tile is now (`parsing.holds`), which the
            body does and who runs the application itself has to know.
    """

    name: str
    parameters: tuple[Any, ...]
    body: list[ast.stmt]
    externs: Mapping[str, Any] = field(default_factory=dict)
    helpers: Mapping[str, ast.FunctionDef] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    rebound: Mapping[str, str] = field(default_factory=dict)
    viewed: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        freeze((*self.body, *self.helpers.values()))
        object.__setattr__(self, "body", FrozenList(self.body))

    def __str__(self) -> str:
        return self.text()

    def text(self, shows_types: bool = False) -> str:
        """The program as text, its parameters with their levels first.

        Args:
            shows_types: whether to show what type a variable has where it is assigned.
        """
        lines = [f"program {self.name}:"]
        lines += [f"    {parameter_text(parameter)}" for parameter in self.parameters]
        for helper in self.helpers.values():
            lines += ["", block_text([helper], shows_types)]
        return "\n".join([*lines, "", block_text(self.body, shows_types)]) + "\n"

    def parameter(self, name: str) -> Any:
        """The parameter called ``name``; ``KeyError`` if there is none."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise KeyError(name)

    def nodes(self) -> Iterator[ast.AST]:
        """Every node of the body and of the helpers."""
        return iter(self._nodes)

    @threads.cached_property
    def _nodes(self) -> tuple[ast.AST, ...]:
        statements = (*self.body, *self.helpers.values())
        return tuple([node for statement in statements for node in walk(statement)])

    @property
    def has_loop(self) -> bool:
        """Whether there is a loop in the body or in a helper."""
        return any(isinstance(node, ast.For | ast.While) for node in self.nodes())

    @property
    def has_lowest(self) -> bool:
        """Whether minus infinity stands in it as ``float("-inf")``."""
        return any(isinstance(node, ast.Call) and is_lowest(node) for node in self.nodes())

    @property
    def has_sort(self) -> bool:
        """Whether it sorts tiles, in the body or in a helper."""
        calls = (node for node in self.nodes() if isinstance(node, ast.Call))
        return any((found := operation_of(call)) and found.kind == "sort" for call in calls)

    def touched(self) -> frozenset[str]:
        """The tensor parameters whose elements, offsets, strides, pointer or type are used."""
        named, numbers = set(), set()
        for node in self.nodes():
            if hasattr(node, "parameter"):
                named.add(node.parameter)
            elif isinstance(node, SymbolValue):
                numbers |= set(as_symbol(node.symbol).leaves())
        tensors = (p for p in self.parameters if p.kind == "tensor")
        read = {p.name for p in tensors if numbers.intersection(map(as_symbol, p.source.strides))}
        return frozenset(named | read)

    @threads.cached_property
    def arranged(self) -> frozenset[str]:
        """The tensor parameters of which a tile is used, or elements of one, and not the source alone."""
        return frozenset(node.parameter for node in self.nodes() if isinstance(node, _ARRANGED))

    @property
    def tiled(self) -> frozenset[str]:
        """Those of which some whole tile is used."""
        return frozenset(
            node.parameter
            for node in self.nodes()
            if isinstance(node, TileRef) and not isinstance(node, ElementRef)
        )
