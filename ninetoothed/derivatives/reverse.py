"""From a tape to the statements that compute gradients: what is needed again, then the steps backwards.

What a loop's rounds compute is computed again in the rounds of the loop backwards, so that nothing but
sums outlasts a round.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ninetoothed.derivatives import rules, tape
from ninetoothed.derivatives.invariance import unneeded_extrema
from ninetoothed.derivatives.record import Recorder
from ninetoothed.derivatives.rounds import Access, are_apart
from ninetoothed.errors import Location
from ninetoothed.language.dtypes import float64
from ninetoothed.passes.rewriting import key_of
from ninetoothed.program.effects import is_product, names_read, targets_of
from ninetoothed.program.nodes import ElementType, LanguageRef, Load, Store, TileRef, clone
from ninetoothed.program.types import UNKNOWN
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol


class Reverse:
    """Writes the statements of a backward program.

    Args:
        recorder: the tape.
        gradients: the names of the gradients' tensors, by what they are gradients of.
        saved: the tiles of outputs that values were stored to, by these: they are loaded, and not
            computed again.
        atomic: the inputs whose gradients programs add to tensors of zeros, whoever comes first.
    """

    def __init__(
        self,
        recorder: Recorder,
        gradients: dict[str, str],
        saved: Mapping[str, TileRef] | None = None,
        atomic: Collection[str] = (),
    ) -> None:
        self._recorder = recorder
        self._gradients = gradients
        self._saved, self._atomic = saved or {}, atomic
        self._unneeded = unneeded_extrema(recorder.items)
        self._quotients = _quotients(recorder.items)
        self._blocks: list[list[ast.stmt]] = [[]]
        self._found: dict[str, list[tape.Gradient]] = {}
        self._summed: dict[str, tuple[str, str | None]] = {}
        #: The tiles that are read: what comes of their gradients is stored alone.
        self._tiles = {
            item.target for item in tape.all_items(recorder.items) if isinstance(item, tape.Read)
        }
        self._loops: list[tape.Loop] = []
        #: Where that stands which statements are being made of.
        self._place: Location | None = None
        self._sums = 0
        self._stored: dict[str, dict[tuple[str, ...], list[Access]]] = {}

    def run(self) -> list[ast.stmt]:
        """The statements; what no gradient needs is not among them."""
        items = self._recorder.items
        self._forward(items, ())
        self._backward(items, 0)
        return needed(self._blocks[0])

    # What is computed again.

    def _forward(self, items: Sequence[tape.Item], outer: Sequence[str]) -> None:
        """The steps as they were, but for stores and for sums of loops further out."""
        for item in items:
            self._place = tape.item_place(item)
            if (
                isinstance(item, tape.Plain | tape.Step | tape.Summand)
                and item.target in self._saved
            ):
                if not isinstance(item, tape.Summand):
                    self._load(item.target, self._saved[item.target])
            elif isinstance(item, tape.Plain | tape.Step):
                self._assign(item.target, clone(item.expression))
            elif isinstance(item, tape.Read):
                self._assign(item.target, Load(tile=clone(item.tile)))
            elif isinstance(item, tape.Summand):
                if item.target not in outer:
                    op: ast.operator = ast.Sub() if item.is_negative else ast.Add()
                    target = ast.Name(id=item.target, ctx=ast.Store())
                    self._emit(ast.AugAssign(target, op, item.operand.copied))
            elif isinstance(item, tape.Loop):
                self._blocks.append([])
                self._forward(item.body, outer)
                self._close(item)

    # Backwards.

    def _backward(self, items: Sequence[tape.Item], depth: int) -> None:
        for item in reversed(items):
            self._place = tape.item_place(item)
            if isinstance(item, tape.Written):
                self._written(item, depth)
            elif isinstance(item, tape.Step):
                gradient = self._found_of(item.target)
                if gradient is not None and item.target not in self._unneeded:
                    for place, part in self._parts(item, gradient):
                        self._give(item.operands[place], part, depth)
            elif isinstance(item, tape.Read):
                gradient = self._taken(item.target)
                if gradient is not None:
                    lacking = {name for _, name in gradient.beyond} - {*self._atomic}
                    if item.tile.parameter in lacking:
                        gradient = self._onto_zeros(item.target, gradient)
                    self._store(item, gradient.everywhere)
            elif isinstance(item, tape.Summand):
                self._summand(item, depth)
            elif isinstance(item, tape.Loop):
                outside = tape.sums_outside(item)
                for target in outside:
                    # Named here, since what follows the loop reads it too.
                    self._taken(target)
                if item.sums_once:
                    self._backward(item.body, depth)
                    continue
                self._blocks.append([])
                self._loops.append(item)
                self._forward(item.body, outside)
                self._backward(item.body, depth + 1)
                self._loops.pop()
                self._close(item)

    def _written(self, item: tape.Written, depth: int) -> None:
        if item.operand.name is None:
            return
        tile = self._gradient_tile(item.tile)
        loaded = tape.name(self._load("gradient", tile, is_new=True))
        beyond = frozenset({(key_of(tile.indices), "")} if tile.indices else ())
        gradient = tape.Gradient(loaded, item.dims, True, beyond=beyond)
        narrowed = rules.narrowed(gradient, item.operand.expression, item.dims, item.operand)
        self._give(item.operand, narrowed, depth)

    def _gradient_tile(self, tile: TileRef) -> TileRef:
        """The tile of a tensor's gradient that is at the same place."""
        indices = [clone(each) for each in tile.indices]
        return TileRef(parameter=self._gradients[tile.parameter], indices=indices)

    def _load(self, target: str, tile: TileRef, is_new: bool = False) -> str:
        """Loads a tile, in float32 at least: so sums of gradients are made. The name that it has then."""
        loaded = self._named(Load(tile=clone(tile)), f"{tile.parameter}_tile")
        text = "v if t is float64 else cast(v, float32)"
        widened = rules.template(text, v=loaded, t=ElementType(parameter=tile.parameter))
        own = self._recorder.fresh(target) if is_new else target
        self._assign(own, widened)
        return own

    def _parts(
        self, item: tape.Step, gradient: tape.Gradient
    ) -> Iterator[tuple[int, tape.Gradient]]:
        """What a step gives its operands, where it has a gradient."""
        for place, part in self._divided(item, replace(gradient, under=tape.ALWAYS)):
            part = self._left_out(item, item.operands[place], part)
            under, beyond = tape.both(gradient.under, part.under), gradient.beyond | part.beyond
            yield place, replace(part, under=under, beyond=beyond)

    def _left_out(
        self, item: tape.Item, operand: tape.Operand, part: tape.Gradient
    ) -> tape.Gradient:
        """What an operand is given, where its elements exist: what was left out has no gradient."""
        more = self._recorder.left_out.get(id(item))
        if more is None or operand.dims is None:
            return part
        found = rules.existing_as(part.whole, operand.expression, operand.dims)
        beyond = frozenset((id(item), each) for each in more)
        return replace(found, under=part.under, beyond=part.beyond | beyond)

    def _divided(
        self, item: tape.Step, gradient: tape.Gradient
    ) -> Iterator[tuple[int, tape.Gradient]]:
        """The same; what all of it is to be divided by, it stays to be divided by."""
        # The factors of a product are narrow: what is not divided yet may not fit.
        over = None if is_product(item.expression) else gradient.over
        given = gradient.whole if over is None else replace(gradient, over=None)
        sizes = given.among.union(filter(_may_be_none, item.dims))
        for place, part in item.rule(item, given):
            among = sizes.difference(item.operands[place].dims or ())
            if part.over is not None:
                part = replace(part, among=among)
            found = None if over is None else self._without(part.expression, over)
            if over is None:
                yield place, part
            elif found is None:
                yield place, replace(part.whole, over=over, among=among)
            else:
                yield place, replace(part, expression=found)

    def _without(self, product: ast.expr, divisor: str) -> ast.expr | None:
        """A product, divided: a factor whose quotient is known becomes that. None where there is none."""
        if isinstance(product, ast.Name):
            known = self._quotients.get((product.id, divisor))
            return None if known is None else tape.name(known)
        if isinstance(product, ast.UnaryOp) and isinstance(product.op, ast.USub):
            inner = self._without(product.operand, divisor)
            return None if inner is None else ast.UnaryOp(product.op, inner)
        if not (isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult)):
            return None
        right = self._without(product.right, divisor)
        if right is not None:
            return ast.BinOp(clone(product.left), product.op, right)
        left = self._without(product.left, divisor)
        return None if left is None else ast.BinOp(left, product.op, clone(product.right))

    def _summand(self, item: tape.Summand, depth: int) -> None:
        found = self._found.get(item.target)
        if item.operand.name is None or not found:
            return
        gradient = self._sum_of(item.target).whole
        if item.is_negative:
            value = rules.template("-g", g=gradient.expression)
            gradient = replace(gradient, expression=value)
        part = rules.narrowed(gradient, tape.name(item.target), item.dims, item.operand)
        # A sum keeps what it has where what is added does not exist.
        is_exact = not item.operand.dims
        part = replace(part, is_exact=is_exact, under=gradient.under, beyond=gradient.beyond)
        self._give(item.operand, self._left_out(item, item.operand, part), depth)

    def _give(self, operand: tape.Operand, part: tape.Gradient, depth: int) -> None:
        """Adds a part of a value's gradient to what was found."""
        value = operand.name
        if value is None:
            return
        own_depth = self._recorder.depths[value]
        if own_depth == depth:
            self._found.setdefault(value, []).append(part)
            return
        if value not in self._summed:
            self._begin(value, own_depth, part.under)
        total, count = self._summed[value]
        self._add(total, part.everywhere.expression)
        beyond = self._apart(value, part)
        self._found[value] = [
            replace(each, beyond=each.beyond | beyond)
            if getattr(each.expression, "id", "") == total
            else each
            for each in self._found[value]
        ]
        if count is not None:
            is_one: ast.expr = ast.Constant(1)
            if part.under != tape.ALWAYS:
                is_one = ast.IfExp(tape.holds(part.under), is_one, ast.Constant(0))
            self._add(count, is_one)

    def _begin(self, value: str, depth: int, under: tape.Under) -> None:
        """Begins the sum of a value's gradients over rounds; where there may be none, they are counted."""
        total = self._recorder.fresh(f"{value}_gradient")
        dims = self._recorder.dims[value]
        block = self._blocks[depth]
        block.append(tape.assignment(total, self._zeros(value, dims)))
        count, reached = None, tape.ALWAYS
        may_be_none = not all(map(tape.has_rounds, self._loops[depth:])) or under != tape.ALWAYS
        if may_be_none and value not in self._tiles:
            count = self._recorder.fresh("rounds")
            block.append(tape.assignment(count, ast.Constant(0)))
            reached = tape.way(rules.template("n > 0", n=tape.name(count)), True)
        self._summed[value] = total, count
        found = tape.Gradient(tape.name(total), dims, False, under=reached)
        self._found.setdefault(value, []).append(found)

    def _add(self, total: str, summand: ast.expr) -> None:
        self._emit(ast.AugAssign(ast.Name(id=total, ctx=ast.Store()), ast.Add(), summand))

    def _zeros(self, value: str, dims: Sequence[object]) -> ast.expr:
        """Where a sum over rounds begins: in the shape of a value."""
        text = "zeros(v.shape, dtype=t)" if dims else "full((), 0.0, dtype=t)"
        known = self._recorder.types.known.get(value, UNKNOWN)
        found = LanguageRef(name="float64") if known.dtype is float64 else tape.SumType()
        return rules.template(text, v=tape.name(value), t=found)

    def _taken(self, value: str) -> tape.Gradient | None:
        """A value's whole gradient, under a name; None where nothing depends on the value."""
        found = self._found_of(value)
        if found is None or found.over is None:
            return found
        named = self._named(found.whole.expression, f"{value}_gradient")
        self._found[value] = [replace(found, expression=named, over=None)]
        return self._found[value][0]

    def _found_of(self, value: str) -> tape.Gradient | None:
        """The same, where it may yet have to be divided."""
        return self._sum_of(value) if self._found.get(value) else None

    def _sum_of(self, value: str) -> tape.Gradient:
        parts = self._together(value, self._found[value])
        under = functools.reduce(tape.either, (part.under for part in parts))
        beyond = tape.NOWHERE.union(*(part.beyond for part in parts))
        if len({part.under for part in parts}) > 1:
            parts = [part.everywhere for part in parts]
        elif len({part.over for part in parts}) > 1:
            parts = [part.whole for part in parts]
        total = parts[0]
        for part in parts[1:]:
            expression = ast.BinOp(total.expression, ast.Add(), part.expression)
            dims = total.dims if len(total.dims) >= len(part.dims) else part.dims
            if len(total.dims) == len(part.dims):
                dims = tuple(m if n == 1 else n for n, m in zip(total.dims, part.dims))
            is_exact, among = total.is_exact or part.is_exact, total.among | part.among
            total = replace(total, expression=expression, dims=dims, is_exact=is_exact, among=among)
        total = replace(total, under=under, beyond=beyond)
        if not isinstance(total.expression, ast.Name):
            named = self._named(total.expression, f"{value}_gradient")
            total = replace(total, expression=named)
        self._found[value] = [total]
        return total

    def _together(self, value: str, parts: list[tape.Gradient]) -> list[tape.Gradient]:
        """The parts of a gradient as they may be added: where one alone does not exist, it is 0."""
        if value in self._tiles:
            # It is stored to the whole of a tile, which does not ask where other tiles have elements.
            parts = [replace(p, beyond=frozenset(e for e in p.beyond if e[1])) for p in parts]
        if len({part.beyond for part in parts}) < 2:
            return parts
        return [self._onto_zeros(value, part) if part.beyond else part for part in parts]

    def _onto_zeros(self, value: str, gradient: tape.Gradient) -> tape.Gradient:
        """A gradient, and 0 where it does not exist and what it is of does.

        A sum over rounds keeps what it has where a round has no element, so one of one round does that.
        """
        total, dims = self._recorder.fresh(f"{value}_gradient"), self._recorder.dims[value]
        self._assign(total, self._zeros(value, dims))
        once = ast.Call(tape.name("range"), [ast.Constant(1)], [])
        loop = tape.Loop(self._recorder.fresh("once"), once)
        self._blocks.append([])
        self._add(total, gradient.everywhere.expression)
        self._close(loop)
        found = tape.Gradient(tape.name(total), dims, gradient.is_exact, under=gradient.under)
        return replace(found, beyond=self._apart(value, gradient))

    def _apart(self, value: str, gradient: tape.Gradient) -> frozenset[tuple[int, str]]:
        """What is said of a sum that exists everywhere: what it is multiplied by may not, as its parts did."""
        if value in self._tiles:
            return tape.NOWHERE
        self._sums += 1
        return frozenset((-self._sums, name) for _, name in gradient.beyond if name)

    def _store(self, item: tape.Read, gradient: tape.Gradient) -> None:
        """Stores a gradient, or adds it to what an earlier loop over the same tiles stored."""
        tile, value = self._gradient_tile(item.tile), gradient.copied
        if item.tile.parameter in self._atomic:
            # In the shape of the tile, of which it may be a part that is the same everywhere.
            whole = rules.spread(gradient, tape.name(item.target), item.dims).expression
            self._emit(tape.AtomicSum(tile=tile, value=whole))
            return
        form = self._form(tile)
        stored = self._stored.setdefault(tile.parameter, {})
        access = Access(tile.indices, tuple(loop.variable for loop in self._loops))
        before = stored.get(form, ())
        if before and "other" not in form and all(map(access.is_after, before)):
            value = ast.BinOp(Load(tile=clone(tile)), ast.Add(), value)
        elif form in stored or (stored and not are_apart(form, stored)):
            raise tape.refused(
                f"tiles of `{item.tile.parameter}` are read in several ways, which may be the same "
                "tiles.",
                item.node,
            )
        stored[form] = [*before, access]
        self._emit(Store(tile=tile, value=value))

    def _form(self, tile: TileRef) -> tuple[str, ...]:
        """How a tile is selected: by a number, by a loop's round, or otherwise."""
        found = []
        rounds = {loop.variable: tape.dump(loop.iterable) for loop in self._loops}
        for index in tile.indices:
            if isinstance(index, ast.Constant):
                found.append(str(index.value))
            else:
                found.append(rounds.get(getattr(index, "id", ""), "other"))
        return tuple(found)

    # Statements.

    def _named(self, expression: ast.expr, wish: str) -> ast.expr:
        own = self._recorder.fresh(wish)
        self._assign(own, expression)
        return tape.name(own)

    def _assign(self, target: str, expression: ast.expr) -> None:
        self._emit(tape.assignment(target, expression))

    def _emit(self, statement: ast.stmt) -> None:
        statement.__dict__["origin"] = self._place
        self._blocks[-1].append(statement)

    def _close(self, loop: tape.Loop) -> None:
        body = self._blocks.pop()
        target = ast.Name(id=loop.variable, ctx=ast.Store())
        self._emit(ast.For(target=target, iter=clone(loop.iterable), body=body, orelse=[]))


def _may_be_none(size: Any) -> bool:
    """Whether a tile may have no elements along a dimension of this size."""
    return isinstance(size, Symbol) and interval(size)[0] < 1


def _quotients(items: Sequence[tape.Item]) -> dict[tuple[str, str], str]:
    """What values over numbers are called, by both."""
    found: dict[tuple[str, str], str] = {}
    for item in tape.all_items(items):
        if isinstance(item, tape.Step) and item.rule is rules.quotient:
            dividend, divisor = (getattr(each.expression, "id", "") for each in item.operands)
            found[dividend, divisor] = item.target
    return found


def needed(body: list[ast.stmt], after: frozenset[str] = frozenset()) -> list[ast.stmt]:
    """Statements without those that compute what nothing reads."""
    return _needed(body, set(after))[0]


def _needed(body: list[ast.stmt], live: set[str]) -> tuple[list[ast.stmt], set[str]]:
    """What is left of statements, and the names that they read from before."""
    kept: list[ast.stmt] = []
    live = set(live)
    for statement in reversed(body):
        if isinstance(statement, ast.For):
            inside, growing = set(live), True
            while growing:
                rest, before = _needed(statement.body, inside)
                growing = not before <= inside
                inside |= before
            if not rest:
                continue
            variable = {target.id for target in targets_of(statement)}
            live |= (before - variable) | names_read(statement.iter)
            kept.append(ast.For(statement.target, statement.iter, rest, []))
            continue
        if isinstance(statement, ast.Assign | ast.AugAssign):
            targets = {target.id for target in targets_of(statement)}
            if not targets & live:
                continue
            if isinstance(statement, ast.Assign):
                live -= targets
        live |= names_read(statement)
        kept.append(statement)
    return kept[::-1], live
