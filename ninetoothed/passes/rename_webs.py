"""A variable that an ``if`` gives another shape or element type has another name from there on.

To Triton's compiler a name that has a value before an ``if`` has one type through it, also where both ways
assign it. Assignments of which some read sees one or the other are a web (Muchnick, "Advanced Compiler Design
and Implementation", 16.3.3); what a variable holds before an ``if`` and what both ways give it are two of them,
unless a loop hands the latter on or a lane keeps what it had. A web that needs one gets a name of its own.
"""

from __future__ import annotations

import ast

from ninetoothed.passes.rewriting import Draft, assign, blocks_of, read
from ninetoothed.program.constancy import is_constant
from ninetoothed.program.effects import names_assigned, statements_of, targets_of
from ninetoothed.program.inference import infer
from ninetoothed.program.nodes import Held, Kept, at, walk
from ninetoothed.program.program import Program
from ninetoothed.program.types import may_be_of_two_types, type_of

#: By variable the assignments, by their targets, that it may have its value of.
_Reaching = dict[str, tuple[ast.Name, ...]]


def run(program: Program) -> Program:
    """The program in which no ``if`` of the running kernel gives a variable another type."""
    if not any(map(_may_change_a_type, program.body)):
        return program
    draft = Draft(program)
    webs = _Webs({p.name for p in program.parameters if p.kind == "constexpr"})
    webs.block(draft.body, {})
    if not webs.changed:
        return program
    infer(draft)
    names: dict[ast.Name, str] = {}
    for earlier, target in webs.changed:
        web = webs.of(target)
        is_apart = web is not webs.of(earlier) and target.id not in webs.held
        if is_apart and may_be_of_two_types(type_of(earlier), type_of(target)) and web not in names:
            names[web] = draft.fresh(target.id)
    if not names:
        return program
    for reader, target in webs.reads:
        reader.id = names.get(webs.of(target), reader.id)
    _rename(draft.body, webs, names)
    return draft.finished()


def _may_change_a_type(statement: ast.stmt) -> bool:
    """Whether both ways of an ``if`` in a statement assign some variable."""
    return any(
        isinstance(each, ast.If) and names_assigned(each.body) & names_assigned(each.orelse)
        for each in statements_of(statement)
    )


class _Webs:
    """Walks statements in order, knowing which assignments each variable may have its value of.

    Attributes:
        reads: each name that is read, and one of the assignments that it may see.
        added: of each ``v += x`` one of the assignments that its ``v`` may see.
        changed: assignments before an ``if``, each with one of the same variable within.
        held: variables that a condition of padding names, which keep their names.
    """

    def __init__(self, constants: set[str]) -> None:
        self.constants = constants
        self.reads: list[tuple[ast.Name, ast.Name]] = []
        self.added: dict[ast.AugAssign, ast.Name] = {}
        self.changed: list[tuple[ast.Name, ast.Name]] = []
        self.held: set[str] = set()
        self._joined: dict[ast.Name, ast.Name] = {}

    def of(self, target: ast.Name) -> ast.Name:
        """What stands for an assignment's web."""
        while (joined := self._joined.get(target)) is not None:
            target = joined
        return target

    def block(self, body: list[ast.stmt], reaching: _Reaching) -> None:
        for statement in body:
            if isinstance(statement, ast.If):
                self._branch(statement, reaching)
            elif isinstance(statement, ast.For | ast.While):
                self._loop(statement, reaching)
            else:
                self._read(statement, reaching)
                if isinstance(statement, ast.AugAssign):
                    self._added(statement, reaching)
                self._assign(statement, reaching)

    def _branch(self, statement: ast.If, reaching: _Reaching) -> None:
        self._read(statement.test, reaching)
        before, other = dict(reaching), dict(reaching)
        self.block(statement.body, reaching)
        self.block(statement.orelse, other)
        _add(reaching, other)
        if is_constant(statement.test, self.constants):
            return
        within = [target for each in statements_of(statement) for target in targets_of(each)]
        self.changed += [(one, new) for new in within for one in before.get(new.id, ())]

    def _loop(self, loop: ast.For | ast.While, reaching: _Reaching) -> None:
        if isinstance(loop, ast.For):
            self._read(loop.iter, reaching)
        size = -1
        while size != sum(map(len, reaching.values())):
            size = sum(map(len, reaching.values()))
            inside = dict(reaching)
            if isinstance(loop, ast.While):
                self._read(loop.test, inside)
            self._assign(loop, inside)
            self.block(loop.body, inside)
            _add(reaching, inside)
        self.block(loop.orelse, reaching)

    def _read(self, node: ast.AST, reaching: _Reaching) -> None:
        for child in walk(node):
            if isinstance(child, Held):
                self.held.add(child.name)
            elif isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Store):
                if seen := self._join(reaching.get(child.id, ())):
                    self.reads.append((child, seen))

    def _added(self, statement: ast.AugAssign, reaching: _Reaching) -> None:
        if isinstance(statement.target, ast.Name):
            if seen := self._join(reaching.get(statement.target.id, ())):
                self.added[statement] = seen

    def _assign(self, statement: ast.stmt, reaching: _Reaching) -> None:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, Kept):
            # What keeps what it had, where it has nothing new, stays what it is.
            for target in targets_of(statement):
                self._join((target, *reaching.get(target.id, ())))
        reaching.update({target.id: (target,) for target in targets_of(statement)})

    def _join(self, targets: tuple[ast.Name, ...]) -> ast.Name | None:
        """Makes one web of assignments; gives one of them."""
        if not targets:
            return None
        first, *others = targets
        for other in others:
            one, another = self.of(first), self.of(other)
            if one is not another:
                self._joined[another] = one
        return first


def _add(reaching: _Reaching, more: _Reaching) -> None:
    """After one way or another: what a variable may have its value of."""
    for name, targets in more.items():
        known = reaching.get(name, ())
        reaching[name] = (*known, *(target for target in targets if target not in known))


def _rename(body: list[ast.stmt], webs: _Webs, names: dict[ast.Name, str]) -> None:
    """Gives what is assigned in a block its web's name; ``v += x`` of two webs is ``w = v + x``."""

    def name_of(target: ast.Name) -> str:
        return names.get(webs.of(target), target.id)

    for place, statement in enumerate(body):
        for block in blocks_of(statement):
            _rename(block, webs, names)
        if isinstance(statement, ast.AugAssign) and statement in webs.added:
            assert isinstance(statement.target, ast.Name)
            new, old = name_of(statement.target), name_of(webs.added[statement])
            if new != old:
                body[place] = _apart(statement, new, old)
        for target in targets_of(statement):
            target.id = name_of(target)


def _apart(statement: ast.AugAssign, name: str, old: str) -> ast.Assign:
    """``name = old + x`` for ``v += x``."""
    value = at(ast.BinOp(read(old, statement), statement.op, statement.value), statement)
    return assign(name, value, statement)
