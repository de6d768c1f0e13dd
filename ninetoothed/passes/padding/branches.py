"""What the branches of an ``if`` do to the masks of variables: for ``mask_padding``."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ninetoothed.errors import ApplicationError
from ninetoothed.passes.padding.moves import held_mask
from ninetoothed.passes.padding.rounds import Carried, Knowns, lost_masks, of_either, on_demand
from ninetoothed.passes.padding.validity import UNKNOWN, Known, met, with_rank
from ninetoothed.passes.rewriting import Draft, assign, key_of, place_of, read
from ninetoothed.program import nodes
from ninetoothed.program.constancy import is_constant
from ninetoothed.program.effects import names_assigned, names_changed, names_read
from ninetoothed.program.tile_masks import TileMask, by_kind, of_kind
from ninetoothed.program.types import may_be_of_two_types, type_of

#: How many nodes of what follows an ``if`` may be looked at once more, for each of its ways or to see whether to.
_MOST_LOOKS = 80000


class TooManyWays(ApplicationError):
    """What follows branches is looked at for too many ways through them."""


class Branches(Carried):
    """What is known after an ``if``.

    Attributes:
        looks: how many nodes were looked at once more, rehearsals included.
        may_split: whether what follows one may be copied into its ways where its condition is not constant.
        counts_rounds: whether what loops are rehearsed counts too.
        later: the variables that the round at hand reads or assigns after the block at hand.
    """

    is_rehearsal = False
    may_split = counts_rounds = True
    later: frozenset[str] = frozenset()

    def __init__(self, draft: Draft, needed: frozenset[Any]) -> None:
        super().__init__(draft, needed)
        self.looks = [0]

    def block(self, body: list[ast.stmt]) -> None:
        raise NotImplementedError

    def simple(self, statement: ast.stmt) -> None:
        """A statement without others in it."""
        raise NotImplementedError

    def rehearsal(self) -> Branches:
        """The same for copies of statements."""
        raise NotImplementedError

    def branch(self, statement: ast.If, rest: list[ast.stmt]) -> bool:
        """An ``if``; whether the statements after it went into its branches.

        Where the branches leave different masks and it matters, each goes on with its own copy of the
        rest, unless that gives a variable another type, which a device's branch cannot; else the masks
        that both leave are left, and which elements there are is said on demand.
        """
        constant = is_constant(statement.test, self.constants)
        statement.test = self.number(statement.test)
        before, was_certain = dict(self.known), self.is_certain
        assigned = names_changed([*statement.body, *statement.orelse])
        self.is_certain = False
        untouched = dict(self.untouched)
        later = self.later
        if self.starts:
            # Elsewhere no loop carries anything that it would matter for.
            self.later = later | names_in(rest)
        way, versions = self.way, dict(self.versions)
        one_way, other_way = (self.reached(statement, each) for each in ("body", "orelse"))
        self.way = one_way
        self.block(statement.body)
        one, ones, versions_of_one = self.known, self.untouched, self.versions
        self.known, self.untouched = dict(before), untouched
        self.way, self.versions = other_way, versions
        self.block(statement.orelse)
        self.way = way
        other = self.known
        self.keep_ways(statement, assigned, before, one, other)
        self.later, used_later = later, self.later
        met, self.known = self.of_ways(assigned, one, other), other
        differing = _read_of({n for n in met if _loses(met[n], one[n], other[n])}, rest)
        is_split = bool(differing) and (
            constant
            or (
                self.may_split
                and not self.retypes(statement, assigned, rest, before, met)
                and (self.is_rehearsal or self.matters(statement, differing, rest, one, other, met))
            )
        )
        if not is_split:
            self.is_certain = was_certain
            self.of_both_ways(ones, self.untouched)
            self.later = used_later
            self.learn(assigned, self.followed_ways(statement, assigned, before, one, other))
            self.later = later
            return False
        copied = self.copied(rest, statement)
        others, self.untouched = self.untouched, ones
        versions, self.versions = self.versions, versions_of_one
        self.way, self.known = one_way, one
        self.continued(statement.body, rest)
        one, self.known = self.known, other
        ones, self.untouched = self.untouched, others
        self.way, self.versions = other_way, versions
        self.continued(statement.orelse, copied)
        self.way = way
        self.of_both_ways(ones, self.untouched)
        self.is_certain = was_certain
        assigned |= names_changed(rest)
        other = self.known
        self.keep_ways(statement, assigned, before, one, other)
        self.learn(assigned, self.followed_ways(statement, assigned, before, one, other))
        return True

    def keep_ways(
        self,
        statement: ast.If,
        assigned: set[str],
        before: Mapping[str, Known],
        one: Knowns,
        other: Knowns,
    ) -> None:
        """Where one way lacks masks, what a loop carries keeps what it had, unless the round goes on with it."""
        for name in sorted((assigned & before.keys() & self.starts.keys()) - self.later):
            if name in one and name in other:
                # What is kept is what it had before the round, whatever the round assigned before.
                start = self.starts[name]
                self.unite_ways(name, start, statement, one, other)
                ways = (one, statement.body, other), (other, statement.orelse, one)
                for way, block, beside in ways:
                    own, others = way[name], beside[name]
                    way[name] = self.after_way(name, start, own, others, block, statement)

    def of_ways(self, assigned: set[str], one: Knowns, other: Knowns) -> Knowns:
        """What holds after both ways."""
        return {
            name: of_either(known, one[name], other[name])
            for name, known in self.meet(assigned, one, other).items()
        }

    def followed_ways(
        self,
        statement: ast.If,
        assigned: set[str],
        before: Mapping[str, Known],
        one: Knowns,
        other: Knowns,
    ) -> Knowns:
        """The same, with variables that say where others hold an element.

        That is done on demand: for what follows in the branch that the ``if`` is in, and after that.
        """
        for name in sorted(assigned & one.keys() & other.keys()):
            if name not in self.starts or name not in before or name in self.later:
                self.follow_ways(name, statement, one, other)
        return self.of_ways(assigned, one, other)

    def follow_ways(self, name: str, statement: ast.If, one: Knowns, other: Knowns) -> None:
        """Has a variable say which elements there are after an ``if``, where its ways have others."""
        ways = ((one, statement.body), (other, statement.orelse))
        for is_loaded, lost in _lost_by_kind(one[name], other[name]):
            wish = "way", place_of(statement), name, is_loaded
            if wish in self.needed:
                self.say_where(name, statement, ways, is_loaded)
                continue
            mask = on_demand(wish, lost, is_loaded=is_loaded)
            for way, _ in ways:
                known = with_rank(way[name])
                way[name] = replace(known, validity=(*known.validity, mask))

    def choose(self, statement: ast.Assign) -> None:
        """A variable gets one of two values, of which other elements exist.

        Which of them do other variables say, on demand.
        """
        choice, (target,) = statement.value, statement.targets
        assert isinstance(choice, ast.IfExp) and isinstance(target, ast.Name)
        wishes = {kind: ("chosen", place_of(statement), target.id, kind) for kind in (False, True)}
        if not self.needed.isdisjoint(wishes.values()):
            test, asked = self.draft.fresh("is_first"), self.number(choice.test)
            self.draft.insert_before(statement, assign(test, asked, statement))
            self.known[test] = Known(type_of(asked))
            choice.test = read(test, statement)
        self.simple(statement)
        known = self.known[target.id]
        one, other = (with_rank(way, known.rank) for way in self.ways)
        validity = list(with_rank(known).validity)
        for is_loaded, lost in _lost_by_kind(one, other):
            if wishes[is_loaded] not in self.needed:
                validity.append(on_demand(wishes[is_loaded], lost, is_loaded=is_loaded))
                continue
            body, orelse = (
                self.real(
                    target.id, replace(way, validity=of_kind(way.validity, is_loaded)), statement
                )
                for way in (one, other)
            )
            exists = ast.IfExp(test=read(test, statement), body=body, orelse=orelse)
            variable = self.draft.fresh(f"{target.id}_exists")
            self.rounds.add(variable)
            self.draft.insert_after(
                statement, assign(variable, nodes.at(exists, statement), statement)
            )
            mask = held_mask(variable, known.rank, statement, is_loaded)
            validity.append(replace(mask, is_moved=any(m.is_moved for m in lost)))
        self.known[target.id] = replace(known, validity=tuple(validity))

    def copied(self, rest: list[ast.stmt], statement: ast.If) -> list[ast.stmt]:
        """Copies of what follows an ``if``, which is looked at once more.

        Raises:
            TooManyWays: where that was done for too many nodes; they double with each ``if``.
        """
        self.look(rest)
        if self.looks[0] > _MOST_LOOKS:
            raise TooManyWays(
                "In too many branches in a row a variable gets elements that exist in different places, "
                "and what follows is looked at for each way through them. Give it elements of the same "
                "tiles in both branches, or choose between values with `ntl.where`.",
                nodes.location(statement),
            )
        return [nodes.clone(item) for item in rest]

    def look(self, statements: list[ast.stmt]) -> None:
        self.looks[0] += sum(1 for item in statements for _ in nodes.walk(item))

    def matters(
        self,
        statement: ast.If,
        names: set[str],
        rest: list[ast.stmt],
        *outcomes: Mapping[str, Known],
    ) -> bool:
        """Whether the rest becomes another with the masks of one of the outcomes.

        So it does where a variable that a loop carries gets others: where they fail it is to keep what it had.
        """
        carried = sorted(self.carried.keys() & names_assigned(rest))
        found = set()
        for known in outcomes:
            rehearsal = self.rehearsal()
            rehearsal.learn(names, {n: known[n].changed() for n in names if n in known})
            copied = self.copied(rest, statement)
            rehearsal.block(copied)
            left = [rehearsal.known.get(name, UNKNOWN).validity for name in carried]
            places = tuple(frozenset(mask.place for mask in each) for each in left)
            # What is done on demand shows in what is demanded.
            found.add((key_of(copied), places, frozenset(rehearsal.wanted)))
            if len(found) > 1:
                return True
        return False

    def retypes(
        self,
        statement: ast.If,
        assigned: set[str],
        rest: list[ast.stmt],
        before: Knowns,
        met: Knowns,
    ) -> bool:
        """Whether the rest leaves a variable that there was before an ``if`` another type."""
        names = before.keys() & names_assigned(rest)
        if not names:
            return False
        if any(before[name].type.dtype is None for name in names):
            # What is not known may be of two types, whatever the rest leaves.
            return True
        rehearsal = self.rehearsal()
        rehearsal.may_split = False
        rehearsal.learn(assigned, met)
        rehearsal.block(self.copied(rest, statement))
        return any(
            may_be_of_two_types(before[name].type, rehearsal.known[name].type)
            for name in names & rehearsal.known.keys()
        )

    def continued(self, branch: list[ast.stmt], rest: list[ast.stmt]) -> None:
        self.block(rest)
        branch += rest

    def meet(
        self, names: set[str], one: Mapping[str, Known], other: Mapping[str, Known]
    ) -> dict[str, Known]:
        """What holds of the variables, which are assigned in between, in both cases."""
        return {name: met(one[name], other[name]) for name in names & one.keys() & other.keys()}

    def learn(self, names: set[str], known: Mapping[str, Known]) -> None:
        """From now on this is known of the variables, and nothing of the rest of them."""
        for name in names:
            self.known.pop(name, None)
        self.known.update(known)
        self.change(names)


def names_in(body: list[ast.stmt]) -> frozenset[str]:
    """The variables that statements read or assign."""
    return frozenset(names_assigned(body).union(*(names_read(item) for item in body)))


def _read_of(names: set[str], body: list[ast.stmt]) -> set[str]:
    """Those of some variables that statements read; it is not looked on where all are found."""
    found: set[str] = set()
    for item in body:
        if len(found) == len(names):
            break
        found |= names & names_read(item)
    return found


def _lost_by_kind(one: Known, other: Known) -> list[tuple[bool, tuple[TileMask, ...]]]:
    """The masks that one value has and another does not, by their kinds."""
    return by_kind(lost_masks(one, other) + lost_masks(other, one))


def _loses(met: Known, *outcomes: Known) -> bool:
    """Whether one of the outcomes has masks that are not left of them."""
    return any(len(known.validity) > len(met.validity) for known in outcomes)
