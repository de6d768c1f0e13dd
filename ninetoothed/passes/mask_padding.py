"""Padding is left out of reductions: the identity stands in its place.

A lane that was loaded from outside of its source (where the tensor has no ``other``) reads as 0 and
is padding; so is an element-wise result of it. `validity` follows that through the program. Where such
a value is reduced, it becomes ``Masked(value, masks, identity)``, unless it is known to hold the
identity there anyway, as the sum of loaded values does. Where such a value is an index into a source,
it names no element of it: nothing is stored there, and what is loaded is padding again.

After an ``if`` a variable has the masks that it has at the end of both branches, unless each goes on by
itself; in a loop and after it those that it has before it and at the end of each round (a sum over
tiles has none: it holds what was accumulated). What is not followed loses its masks: elements moved
across dimensions, and results of functions unknown.

Afterwards no ``Forwarded`` is left: it is the stored value, rounded and in the tile's shape. And where
a tile of one element stands for a number, as an index, a bound of a range or a condition, its element
does, since the shapes are known here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from ninetoothed.errors import ApplicationError
from ninetoothed.passes.padding import stores, unrolled
from ninetoothed.passes.padding.branches import Branches, TooManyWays, names_in
from ninetoothed.passes.padding.conditions import Condition, is_partial
from ninetoothed.passes.padding.rounds import stays_out, without_kept
from ninetoothed.passes.padding.validity import (
    OPERATORS,
    UNKNOWN,
    Known,
    accumulated,
    joined,
    typed,
    with_rank,
)
from ninetoothed.passes.rewriting import Draft, assign, choices_of, place_of, read
from ninetoothed.program import nodes
from ninetoothed.program.constancy import is_constant
from ninetoothed.program.effects import (
    MEMORY,
    called_name,
    has_effect,
    names_changed,
    targets_of,
    writes_memory,
)
from ninetoothed.program.program import Program
from ninetoothed.program.tile_masks import TileMask
from ninetoothed.program.types import are_unlike, held, may_be_of_two_types


def run(program: Program) -> Program:
    """The program with padding masked from its reductions."""
    try:
        return _masked(program, may_split=True)
    except TooManyWays:
        # Then variables say which elements there are, whichever way it went.
        return _masked(program, may_split=False)


def _masked(program: Program, may_split: bool) -> Program:
    needed: frozenset[Any] = frozenset()
    looks = [0]
    while True:
        draft = Draft(program)
        analysis = _Analysis(draft, needed)
        analysis.may_split = analysis.counts_rounds = may_split
        analysis.looks = looks
        analysis.block(draft.body)
        if analysis.wanted <= needed:
            return draft.finished(helpers=analysis.helpers)
        needed |= analysis.wanted


def without_idle_rounds(program: Program) -> Program:
    """A program that is not masked yet, without the ends of unrolled rounds at which nothing has to be kept."""
    held = unrolled.begun(program.body)
    if not held:
        return program
    idle = held.keys() - unrolled.begun(run(program).body).keys()
    draft = Draft(program)
    draft.body = unrolled.without(draft.body, idle)
    return draft.finished()


class _Analysis(Branches):
    """Walks the statements in order, knowing the masks of each variable."""

    #: Whether the statements within loops are to be changed; else only what is known after them is asked.
    rewrites = True

    def __init__(self, draft: Draft, needed: frozenset[Any]) -> None:
        super().__init__(draft, needed)
        self.may_have_less = stores.may_have_less(draft.program)
        self.begun_unrolled = unrolled.begun(draft.body)

    def block(self, body: list[ast.stmt]) -> None:
        index = -1
        while (index := index + 1) < len(body):
            statement = self.statement = body[index]
            if unrolled.ends_round(statement):
                body[index : index + 1] = ending = unrolled.kept(self, statement)
                index += len(ending) - 1
                continue
            if chosen := self.choice_within(statement):
                body.insert(index, chosen)
                statement = self.statement = chosen
            if ways := self.differing(statement):
                assert isinstance(statement, ast.Assign)
                if self.is_chosen_at_once(statement, *ways):
                    self.choose(statement)
                    continue
                statement = self.statement = body[index] = _as_branches(statement)
            if isinstance(statement, nodes.Store) and self.stores_less(statement):
                tile_shape = self.tensors[statement.tile.parameter].tile_shape
                statement = body[index] = stores.of_elements(statement, tile_shape)
                self.statement = statement
            if isinstance(statement, ast.If):
                rest = body[index + 1 :]
                if self.branch(statement, rest):
                    del body[index + 1 :]
                    return
            elif isinstance(statement, ast.For | ast.While):
                self.loop(statement)
            else:
                self.simple(statement)
                if MEMORY in self.indices and writes_memory(statement):
                    self.change({MEMORY})

    def differing(self, statement: ast.stmt) -> tuple[Known, Known] | None:
        """What is known of the two values of a choice, where their masks are not the same."""
        choice = statement.value if isinstance(statement, ast.Assign) else None
        if not isinstance(choice, ast.IfExp):
            return None
        rehearsal = _Rehearsal(self)
        one, other = (
            rehearsal.visit(nodes.clone(node))[1] for node in (choice.body, choice.orelse)
        )
        return (one, other) if self.says_where(choice, one, other) else None

    def is_chosen_at_once(self, statement: ast.Assign, one: Known, other: Known) -> bool:
        """Whether both values of a choice must be brought to one type and shape, which branches do not."""
        choice = statement.value
        return (
            isinstance(choice, ast.IfExp)
            and isinstance(statement.targets[0], ast.Name)
            and not is_constant(choice.test, self.constants)
            and not (has_effect(choice.body) or has_effect(choice.orelse))
            and (are_unlike(one.type, other.type) or _is_literal(one) is not _is_literal(other))
        )

    def retypes_target(self, statement: ast.stmt) -> bool:
        """Whether a variable gets a value that is chosen, and had one of another type."""
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        old = self.known.get(target.id) if isinstance(target, ast.Name) else None
        if not isinstance(statement, ast.Assign) or old is None:
            return False
        value = _Rehearsal(self).visit(nodes.clone(statement.value))[1]
        return may_be_of_two_types(old.type, value.type)

    def stores_less(self, statement: nodes.Store) -> bool:
        """Whether a tile is stored to which may have elements where nothing of the value exists."""
        if not self.may_have_less:
            return False
        known = _Rehearsal(self).visit(nodes.clone(statement.value))[1]
        return bool(self.beyond(known, statement.tile).validity)

    def choice_within(self, statement: ast.stmt) -> ast.stmt | None:
        """A value that is chosen within a statement as one of its own, where masks depend on it."""
        if isinstance(statement, ast.While):
            # What chooses there was made a statement when it was parsed: it is asked again each round.
            return None
        whole = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        if isinstance(whole, ast.IfExp) and self.retypes_target(statement):
            whole = None
        for part, put in choices_of(statement):
            if part is whole or not self.differing(assign("", part, part)):
                continue
            variable = self.draft.fresh("choice")
            put(read(variable, part))
            return assign(variable, part, part)
        return None

    def simple(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.AugAssign):
            statement.value, value = self.visit(statement.value)
            assert isinstance(statement.target, ast.Name)
            old = self.known.get(statement.target.id, UNKNOWN)
            if isinstance(statement.op, ast.Add | ast.Sub):
                result = accumulated(old, value)
            else:
                result = joined([old, value], OPERATORS.get(type(statement.op), "none"))
            found = self.types.operated(old.type, statement.op, value.type, statement)
            result = self.since_the_round(statement.target, result)
            self.get(statement.target, typed(result, held(found)))
            return
        if isinstance(statement, ast.Assign) and self.adds_to_itself(statement):
            assert isinstance(statement.value, ast.BinOp)
            added = "right" if _is_named(statement.value.left, statement.targets[0]) else "left"
            node, value = self.visit(getattr(statement.value, added))
            setattr(statement.value, added, node)
            old = self.known.get(statement.targets[0].id, UNKNOWN)  # type: ignore[attr-defined]
            left, right = (old, value) if added == "right" else (value, old)
            found = self.types.operated(left.type, statement.value.op, right.type, statement)
            result = self.since_the_round(statement.targets[0], accumulated(old, value))
            self.get(statement.targets[0], typed(result, held(found)))
            return
        if isinstance(statement, nodes.Store):
            value = self.fields(statement)
            validity = with_rank(value).validity
            self.want(m for m in validity if not stays_out(m) or self.is_stored_over(m, statement))
            return
        if isinstance(statement, nodes.ElementStore):
            self.elements(statement)
            statement.value, _ = self.stored(statement.value, statement.view.is_by_element)
            return
        if isinstance(statement, nodes.SourceStore):
            self.addressed(statement)
            statement.value, _ = self.stored(statement.value)
            return
        value = self.fields(statement)
        if isinstance(statement, ast.AnnAssign):
            assert isinstance(statement.target, ast.Name)
            self.constants.add(statement.target.id)
            self.get(statement.target, value)
        elif isinstance(statement, ast.Assign):
            target = statement.targets[0]
            if isinstance(target, ast.Name) and target.id in self.begun_unrolled:
                self.untouched.pop(self.begun_unrolled[target.id], None)
            if not (isinstance(target, ast.Name) and _is_product_onto(statement.value, target.id)):
                value = without_kept(value)
            value = self.since_the_round(target, value)
            self.get(target, typed(value, held(value.type)))

    def adds_to_itself(self, statement: ast.Assign) -> bool:
        """Whether this is ``v = v + x``, ``v = x + v`` or ``v = v - x``."""
        value, target = statement.value, statement.targets[0]
        return (
            isinstance(value, ast.BinOp)
            and isinstance(value.op, ast.Add | ast.Sub)
            and (
                _is_named(value.left, target)
                or (isinstance(value.op, ast.Add) and _is_named(value.right, target))
            )
        )

    def want(self, validity: Iterable[TileMask]) -> None:
        """Masks are needed that can only be had when something is done for them."""
        self.wanted |= {mask.wanted for mask in validity if mask.wanted is not None}

    def lasting(
        self, statement: ast.For | ast.While, assigned: set[str], rounds: set[str]
    ) -> dict[str, Known]:
        """What is known of a loop's variables before each round and after the last."""
        known = {name: self.known[name] for name in assigned if name in self.known}
        for _ in range(_MOST_REHEARSALS + 4 * len(known)):
            rehearsal = _Rehearsal(self, rewrites=False)
            begun = self.begun(known)
            rehearsal.learn(assigned, begun)
            rehearsal.starts = _started(self.starts, assigned, begun)
            rehearsal.later = frozenset()
            if isinstance(statement, ast.For):
                rehearsal.enter(statement)
            if self.counts_rounds:
                self.look(statement.body)
            rehearsal.block([nodes.clone(item) for item in statement.body])
            after = {
                name: self.after_round(name, begun[name], rehearsal.known[name], rounds)
                for name in known
                if name in rehearsal.known
            }
            met = self.meet(assigned, known, after)
            if met == known:
                self.constants |= rehearsal.constants
                self.partial = {
                    name for name in after if is_partial(begun[name], rehearsal.known[name])
                }
                return known
            known = met
        raise ApplicationError(
            "Which elements the variables of this loop have could not be found out. Have fewer of them take "
            "what another one had in the round before.",
            nodes.location(statement),
        )

    def loop(self, statement: ast.For | ast.While) -> None:
        assigned = names_changed(statement.body)
        outer, identity = self.carried, place_of(statement)
        before: dict[str, str] = {}
        followed: dict[str, dict[bool, str]] = {}
        for name in sorted(assigned & self.known.keys()):
            if (identity, name) in self.needed:
                before[name] = self.draft.fresh(f"{name}_before")
            if self.is_followed(name, identity):
                followed[name] = self.followed(name, statement)
        self.carried = {**outer, **{name: (identity, before.get(name)) for name in assigned}}
        variables = {variable for kinds in followed.values() for variable in kinds.values()}
        condition = Condition(self, statement)
        changing = {*_target_names(statement), *variables, *condition.variables.values()}
        self.rounds |= changing
        untouched, self.untouched = self.untouched, {}
        lasting = self.lasting(statement, assigned, assigned | changing)
        partial = self.partial
        self.learn(assigned, lasting)
        if isinstance(statement, ast.For):
            assert isinstance(statement.iter, ast.Call) and isinstance(statement.target, ast.Name)
            statement.iter.args = [self.number(item) for item in statement.iter.args]
            begun = self.begun(lasting)
            self.learn(assigned, begun)
            self.enter(statement)
            function = getattr(statement.iter, "func", None)
            if isinstance(function, nodes.LanguageRef) and function.name == "static_range":
                self.constants.add(statement.target.id)
        else:
            self.learn(assigned, condition.asked(lasting, partial))
            statement.test = self.number(statement.test)
            begun = self.begun(lasting)
            self.learn(assigned, begun)
        was_certain = self.is_certain
        self.is_certain &= isinstance(statement, ast.For)
        starts, self.starts = self.starts, _started(self.starts, assigned, begun)
        if self.rewrites:
            tail = condition.tail
            del statement.body[len(statement.body) - len(tail) :]
            later, self.later = self.later, names_in(tail)
            self.block(statement.body)
            self.later = later
            condition.note(statement.body)
            self.kept(statement.body, begun, before, followed)
            if tail:
                # What else the round has assigned is what it left.
                asked = condition.asked(begun, partial)
                known = {name: asked[name] for name in condition.names if name in asked}
                self.learn(set(known), known)
                self.block(tail)
                statement.body += tail
        self.untouched = untouched | dict.fromkeys(assigned, frozenset())
        self.carried, self.is_certain, self.starts = outer, was_certain, starts
        self.learn(assigned, lasting)

    def rehearsal(self) -> _Rehearsal:
        return _Rehearsal(self)


class _Rehearsal(_Analysis):
    """Finds what is known after statements that are copies; nothing of the program changes.

    Args:
        rewrites: whether the copies are wanted too. Where not, a loop's body is visited once for each
            time that it is rehearsed, so that loops in loops do not double the work at each level.
    """

    def __init__(self, analysis: _Analysis, rewrites: bool = True) -> None:
        self.__dict__.update(analysis.__dict__)
        self.rewrites, self.is_rehearsal = rewrites, True
        self.draft = analysis.draft.scratch()
        self.known, self.versions = dict(analysis.known), dict(analysis.versions)
        self.constants = set(analysis.constants)
        self.helpers, self.accompanied = dict(analysis.helpers), dict(analysis.accompanied)
        self.wanted = set()
        self.carried = dict(analysis.carried)
        self.untouched = dict(analysis.untouched)

    def mask(self, mask: TileMask, origin: ast.AST) -> ast.expr:
        return nodes.at(mask.node(), origin)


#: What is known of a loop's variables settles long before; so many tries there are, and some for each.
_MOST_REHEARSALS = 8


def _started(
    outer: dict[str, Known], assigned: set[str], known: dict[str, Known]
) -> dict[str, Known]:
    """What is known of variables where a round of a loop within others begins."""
    return {**{name: outer[name] for name in outer.keys() - assigned}, **known}


def _as_branches(statement: ast.stmt) -> ast.If:
    """``v = a if c else b`` as a statement that chooses."""
    assert isinstance(statement, ast.Assign) and isinstance(statement.value, ast.IfExp)
    choice = statement.value
    blocks: list[list[ast.stmt]] = []
    for value in (choice.body, choice.orelse):
        targets = [nodes.clone(target) for target in statement.targets]
        blocks.append([nodes.at(ast.Assign(targets=targets, value=value), statement)])
    return nodes.at(ast.If(test=choice.test, body=blocks[0], orelse=blocks[1]), statement)


def _is_literal(known: Known) -> bool:
    """Whether a value takes the type of what it is chosen beside."""
    return known.type.number is not None


def _is_named(node: ast.expr, target: ast.expr) -> bool:
    """Whether this reads the variable that is assigned."""
    return isinstance(node, ast.Name) and isinstance(target, ast.Name) and node.id == target.id


def _is_product_onto(node: ast.expr, name: str) -> bool:
    """Whether this is a product that is added to a variable."""
    if not isinstance(node, ast.Call) or called_name(node) != "dot":
        return False
    given = [*node.args[2:3], *(item.value for item in node.keywords if item.arg == "acc")]
    return any(isinstance(item, ast.Name) and item.id == name for item in given)


def _target_names(statement: ast.For | ast.While) -> Iterator[str]:
    """The name of a loop's own variable, if it has one."""
    return (target.id for target in targets_of(statement))
