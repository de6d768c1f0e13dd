"""The text of an application as a tree: which statements stand where, and what is known there."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

#: What has names of its own, and so is moved about as a whole or not at all.
_OWN_NAMES = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp)

#: How often a place is drawn before a rewriting is left.
TRIES = 30


@dataclass
class Run:
    """Some statements in a row.

    Attributes:
        block: the list that they stand in.
        known: the names that have a value before them whatever happened.
        depth: how many loops they stand in.
    """

    block: list[ast.stmt]
    start: int
    stop: int
    known: frozenset[str]
    depth: int

    @property
    def body(self) -> list[ast.stmt]:
        return self.block[self.start : self.stop]

    def replace(self, statements: Sequence[ast.stmt]) -> None:
        self.block[self.start : self.stop] = statements


@dataclass
class Application:
    """An application that is rewritten.

    Attributes:
        ranks: the tensors among its parameters, and how many dimensions their arguments have.
        numbers: its other parameters that only a call gives.
        flags: those that are known when it is compiled.
        levels: the numbers that sizes of levels are in a call, by how they are written.
    """

    module: ast.Module
    ranks: dict[str, int]
    numbers: tuple[str, ...]
    flags: tuple[str, ...]
    levels: dict[str, int] = field(default_factory=dict)
    choose: random.Random = field(default_factory=random.Random)

    @property
    def function(self) -> Any:
        return self.module.body[-1]

    @property
    def parameters(self) -> frozenset[str]:
        return frozenset((*self.ranks, *self.numbers, *self.flags))

    def fresh(self, letter: str) -> str:
        """A name that is nowhere."""
        taken = {getattr(node, "id", "") for node in ast.walk(self.module)}
        taken |= {getattr(node, "arg", "") for node in ast.walk(self.module)}
        taken |= {getattr(node, "name", "") for node in ast.walk(self.module)}
        return next(name for at in range(999) if (name := f"{letter}{at}_") not in taken)

    def chance(self, share: float) -> bool:
        return self.choose.random() < share

    def runs(self, most: int = 99) -> Iterator[Run]:
        """Statements in a row that are drawn, time and again, without names of their own."""
        blocks = list(self._blocks(self.function.body, self.parameters, 0))
        # Loops are where names are hard.
        blocks += 2 * [block for block in blocks if block[2]]
        for _ in range(TRIES):
            block, known, depth = self.choose.choice(blocks)
            start = self.choose.randrange(len(block))
            stop = min(self.choose.randint(start + 1, len(block)), start + most)
            before = [name for statement in block[:start] for name in _given(statement)]
            run = Run(block, start, stop, known.union(before), depth)
            if not any(isinstance(n, (*_OWN_NAMES, ast.Pass)) for n in walked(run.body)):
                yield run

    def statements(self) -> Iterator[tuple[Run, Any]]:
        """Single ones."""
        for run in self.runs(1):
            yield run, run.body[0]

    def _blocks(
        self, block: list[ast.stmt], known: frozenset[str], depth: int
    ) -> Iterator[tuple[list[ast.stmt], frozenset[str], int]]:
        yield block, known, depth
        for statement in block:
            if isinstance(statement, (ast.For, ast.While, ast.If)):
                within = known.union(names_of(getattr(statement, "target", ast.Pass())))
                is_loop = not isinstance(statement, ast.If)
                for part in filter(None, (statement.body, statement.orelse)):
                    yield from self._blocks(part, within, depth + is_loop)
            known = known.union(_given(statement))

    def asked_elsewhere(self, run: Run) -> set[str]:
        """The names that are read outside of some statements, or in the round after this one."""
        inside = set(map(id, walked(run.body)))
        nodes = [node for node in walked(self.function.body) if id(node) not in inside]
        return set(_reads(nodes)) | (set(run.known) if run.depth else set())

    def results(self, run: Run) -> list[str]:
        """What statements assign that is asked for after them."""
        asked = self.asked_elsewhere(run)
        return [name for name in assigned(run.body) if name in asked]

    def stored(self) -> set[str]:
        """The tensors that anything may be stored to."""
        body = self.function.body
        found = set(assigned(body))
        for node in walked(body):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                found |= names_of(node)
            if isinstance(node, ast.Call) and "atomic" in ast.unparse(node.func):
                found |= names_of(node)
        return found

    def is_known_within(self, body: list[ast.stmt]) -> bool:
        """Whether statements assign what a function that they may call knows from where it is defined."""
        nodes = walked(self.function.body)
        within = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.Lambda))]
        defined = {node.name for node in within if isinstance(node, ast.FunctionDef)}
        defined |= {
            name
            for node in nodes
            if isinstance(node, ast.Assign) and any(each in within for each in ast.walk(node))
            for name in _stores(node)
        }
        return bool(defined & set(reads(body)) and set(reads(within)) & set(assigned(body)))

    def is_computed(self, name: str) -> bool:
        """Whether a variable never stands for a tile, whose store another name's assignment would be."""
        return all(
            isinstance(node.value, (ast.BinOp, ast.Constant, ast.Compare))
            or (isinstance(node.value, ast.Call) and not isinstance(node.value.func, ast.Name))
            for node in walked(self.function.body)
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr))
            and name in _stores(node)
        ) and not any(name in targets_of_several(node) for node in walked(self.function.body))


def walked(body: Sequence[ast.AST]) -> list[ast.AST]:
    return [node for statement in body for node in ast.walk(statement)]


def names_of(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def counted_by(node: ast.AST) -> set[str]:
    """The names that a loop gives items; none where it is no loop."""
    return names_of(node.target) if isinstance(node, ast.For) else set()


def targets_of_several(node: ast.AST) -> set[str]:
    """The names that a statement gives parts of a value, or a loop items."""
    if isinstance(node, ast.For):
        return counted_by(node)
    several = isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name)
    return _stores(node) if several else set()


def _stores(node: ast.AST) -> set[str]:
    nodes = ast.walk(node)
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _given(statement: ast.stmt) -> set[str]:
    """The names to which a statement gives a value, whatever is decided."""
    return _stores(statement) if isinstance(statement, (ast.Assign, ast.AugAssign)) else set()


def _reads(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        if isinstance(node, ast.AugAssign):
            yield from names_of(node.target)


def reads(body: Sequence[ast.AST]) -> list[str]:
    """The names that statements read, each once."""
    return list(dict.fromkeys(_reads(walked(body))))


def assigned(body: Sequence[ast.AST]) -> list[str]:
    """The names that statements assign, or have a helper assign, each once."""
    found: list[str] = []
    for node in walked(body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append(node.id)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            if isinstance(node.value.func, ast.Name):
                given = [*node.value.args, *(each.value for each in node.value.keywords)]
                found += [each.id for each in given if isinstance(each, ast.Name)]
    return list(dict.fromkeys(found))


class Renamed(ast.NodeTransformer):
    """Gives names others."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.names.get(node.id, node.id), node.ctx)


def parsed(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
