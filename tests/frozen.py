"""Programs whose nodes cannot be changed once they are made: for tests of what works on Programs.

A pass, an option, a printer makes new nodes or changes its own copies (`nodes.clone`), since a Program is
shared by all that is found out about a kernel. What changes one of a Program's nodes, or a list of one,
raises here. Types are left on nodes (`program.inference`) and are no fields.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError
from typing import Any

from ninetoothed.program.program import Program


class FrozenList(list[Any]):
    """A list that a node holds."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (list(self),)


def _refused(name: str) -> Callable[..., Any]:
    def change(self: FrozenList, *arguments: Any, **keywords: Any) -> Any:
        raise FrozenInstanceError(f"a list of a Program's node is changed: {name}")

    return change


for _name in (
    *("append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"),
    *("__delitem__", "__iadd__", "__imul__", "__setitem__"),
):
    setattr(FrozenList, _name, _refused(_name))


def _freeze(program: Program) -> None:
    for node in program.nodes():
        fields = node.__dict__
        # A copy of the node brings it along, and is another one.
        fields["frozen"] = id(node)
        for name in node._fields:
            if type(fields.get(name)) is list:
                fields[name] = FrozenList(fields[name])
    object.__setattr__(program, "body", FrozenList(program.body))


@contextlib.contextmanager
def frozen_programs() -> Iterator[None]:
    """Programs that are made within are frozen."""
    make, put, remove = Program.__init__, ast.AST.__setattr__, ast.AST.__delattr__

    def made(self: Program, *arguments: Any, **keywords: Any) -> None:
        make(self, *arguments, **keywords)
        _freeze(self)

    def check(node: ast.AST, name: str) -> None:
        if node.__dict__.get("frozen") == id(node):
            raise FrozenInstanceError(f"{type(node).__name__}.{name} of a Program is changed")

    def changed(self: ast.AST, name: str, value: Any) -> None:
        check(self, name)
        put(self, name, value)

    def removed(self: ast.AST, name: str) -> None:
        check(self, name)
        remove(self, name)

    Program.__init__ = made  # type: ignore[method-assign]
    ast.AST.__setattr__, ast.AST.__delattr__ = changed, removed  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        Program.__init__ = make  # type: ignore[method-assign]
        ast.AST.__setattr__, ast.AST.__delattr__ = put, remove  # type: ignore[method-assign]
