"""Nodes that do not change any more: those that a Program is made of.

A Program is shared by all that is found out about a kernel. A pass, an option, a printer makes new nodes or
changes its own copies (`nodes.clone`); what changes one of a Program's, or a list of one, raises. Types are
left on nodes (`inference`) and are no fields.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import FrozenInstanceError
from typing import Any, TypeGuard, TypeVar

NodeT = TypeVar("NodeT", bound=ast.AST)
Rule = TypeVar("Rule")


class FrozenList(list[Any]):
    """A list that a frozen node holds."""

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


def _refuse(node: ast.AST, name: str, *value: Any) -> None:
    raise FrozenInstanceError(f"{type(node).__name__}.{name} of a Program is changed")


def _reduce(node: ast.AST, protocol: Any) -> Any:
    kind = kind_of(node)
    return kind.__new__, (kind,), dict(node.__dict__)


#: What the class of frozen nodes has besides what that of the nodes has.
_OWN = {"__setattr__": _refuse, "__delattr__": _refuse, "__reduce_ex__": _reduce}

#: For each class of nodes that of its frozen ones.
_FROZEN: dict[type, type] = {}


def is_exactly(node: Any, kind: type[NodeT]) -> TypeGuard[NodeT]:
    """Whether a node is of this class, and of none below it."""
    return kind_of(node) is kind


def kind_of(node: Any) -> Any:
    """The class of a node, whether it is frozen or not: what a table of rules has."""
    kind = type(node)
    return getattr(kind, "thawed", kind)


def rule_for(node: Any, rules: dict[type, Rule | None]) -> Rule | None:
    """The rule for a node's class, else for the first that it is derived from; kept in the table."""
    kind = type(node)
    if kind not in rules:
        known = rules.get(kind_of(node))
        derived = (each for of, each in list(rules.items()) if each and isinstance(node, of))
        rules[kind] = known or next(derived, None)
    return rules[kind]


def freeze(nodes: Iterable[ast.AST]) -> None:
    """Has these nodes and all below them refuse to be changed. Operators and contexts have nothing to change."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        kind = node.__class__
        frozen = _FROZEN.get(kind)
        if frozen is None:
            if hasattr(kind, "thawed"):
                continue
            frozen = _FROZEN.setdefault(kind, type(kind.__name__, (kind,), _OWN | {"thawed": kind}))
        fields = node.__dict__
        for name in kind._fields:
            value = fields.get(name)
            if isinstance(value, list):
                fields[name] = FrozenList(value)
                pending += [each for each in value if isinstance(each, ast.AST) and each._fields]
            elif isinstance(value, ast.AST) and value._fields:
                pending.append(value)
        node.__class__ = frozen
