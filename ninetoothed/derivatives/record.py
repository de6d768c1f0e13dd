"""From a Program to a tape; what has no derivative is refused where it stands.

Variables have one value each on the tape: what a program assigns again gets another name. A loop's
rounds must not depend on each other, but for sums that nothing in the loop reads.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from ninetoothed.derivatives import rules, tape
from ninetoothed.derivatives.arguments import argument
from ninetoothed.derivatives.rounds import Access
from ninetoothed.derivatives.values import Values, rule_name
from ninetoothed.passes.rewriting import Draft, assign, blocks_of, read
from ninetoothed.program import effects
from ninetoothed.program.frozen import is_exactly
from ninetoothed.program.nodes import (
    Kept,
    Load,
    SourcePointer,
    SourceStore,
    Store,
    TileRef,
    at,
    clone,
    walk,
)
from ninetoothed.program.program import Program
from ninetoothed.program.types import COUNT, UNKNOWN, held_shape


class Recorder(Values):
    """Walks a Program's statements in order.

    Attributes:
        summed: the outputs that stores add to what others stored.
    """

    def __init__(
        self, program: Program, wrt: Collection[str], outputs: Collection[str], names: set[str]
    ) -> None:
        super().__init__(program, wrt, outputs, names)
        self.program = program
        self._sums: dict[str, str] = {}
        self.summed: set[str] = set()

    def run(self) -> None:
        """Records the whole program.

        Raises:
            ApplicationError: a part of it has no derivative.
        """
        for node in self.program.nodes():
            if isinstance(node, SourcePointer) and node.parameter in self.wrt:
                raise tape.refused(
                    f"`{node.parameter}` is read by a pointer; where it has no gradient, leave it out of `wrt`.",
                    node,
                )
        for statement in self.program.body:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            self.assign(node)
        elif isinstance(node, ast.AugAssign):
            target = self.at(tape.name(getattr(node.target, "id", "")), node)
            value = self.at(ast.BinOp(left=target, op=node.op, right=clone(node.value)), node)
            self.bind(node.target.id, value)  # type: ignore[union-attr]
        elif isinstance(node, Store):
            self.store(node)
        elif isinstance(node, ast.For):
            self.loop(node)
        elif isinstance(node, ast.Expr):
            self.expression_statement(node)
        elif isinstance(node, SourceStore):
            raise tape.refused(
                f"elements of `{node.parameter}` are stored to that the program chooses.", node
            )
        elif isinstance(node, ast.If):
            raise tape.refused(self.undecided(node.test), node)
        elif isinstance(node, ast.While):
            raise tape.refused("how often a `while` runs is known when it has run.", node)
        elif not isinstance(node, ast.Pass):
            raise tape.refused("this statement has no derivative.", node)

    def undecided(self, test: ast.expr) -> str:
        """Why an `if` has both its ways, and what to do."""
        read = sorted(effects.names_read(test))
        kinds = {self.parameters[each].kind if each in self.parameters else "" for each in read}
        if kinds == {"constexpr"}:
            given = ", ".join(f"{each!r}: ..." for each in read)
            return (
                "what runs depends on a constant that each call may give, whatever its default is. Give it once, as "
                f"`constants={{{given}}}`, or choose with `ntl.where`."
            )
        return (
            "what runs depends on a condition that is known when the kernel runs. Give constants "
            "that decide it, or choose with `ntl.where`."
        )

    def expression_statement(self, node: ast.Expr) -> None:
        for child in walk(node):
            if isinstance(child, ast.Call) and effects.is_atomic(rule_name(child)):
                raise tape.refused("an atomic operation changes memory.", node)
        if effects.writes_memory(node):
            raise tape.refused("this changes memory.", node)

    def assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = list(effects.targets_of(node))
        if node.value is None:
            return
        if len(targets) == 1 and not isinstance(getattr(node, "targets", [0])[0], ast.Tuple):
            self.bind(targets[0].id, node.value)
        elif isinstance(node.value, ast.Tuple) and len(node.value.elts) == len(targets):
            values = [self.value(each) for each in node.value.elts]
            for target, value in zip(targets, values):
                self._current[target.id] = self.named(value, target.id)
        else:
            if self.depends(node.value):
                raise tape.refused("an operation of several results has no derivative.", node)
            fresh = [self.fresh(target.id) for target in targets]
            whole = self.fresh("results")
            self.add(tape.Plain(whole, self.renamed(node.value)))
            for place, (target, own) in enumerate(zip(targets, fresh)):
                part = ast.Subscript(tape.name(whole), ast.Constant(place), ast.Load())
                self.add(tape.Plain(own, part))
                self.types.known[own] = UNKNOWN
                self._current[target.id] = own

    def bind(self, target: str, node: ast.expr) -> None:
        """``target = node``, under a name of its own."""
        self._current[target] = self.named(self.value(node, target), target)

    def store(self, node: Store) -> None:
        parameter = node.tile.parameter
        self.check_place(node.tile, node)
        tile = self.renamed(node.tile)
        added = self.added_to(tile, node.value)
        operand = self.value(node.value if added is None else added)
        self.check_rounds(tile, len(self._rounds), node)
        access = Access(tile.indices, tuple(self._rounds))
        before = self._stored.setdefault(parameter, [])
        others = [each for each in before if not access.is_apart(each)]
        if others:
            if added is None or not all(map(access.is_after, others)):
                raise tape.refused(f"`{parameter}` is stored to more than once.", node)
            self.summed.add(parameter)
        elif added is not None:
            raise tape.refused(f"`{parameter}` is changed in place.", node)
        before.append(access)
        dims = held_shape(self.parameters[parameter].tile_shape)
        self.add(tape.Written(tile, operand, dims))

    def added_to(self, tile: TileRef, value: ast.expr) -> ast.expr | None:
        """What a store adds to what its tile has; None where it is another store."""
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
            return None
        for one, other in ((value.left, value.right), (value.right, value.left)):
            if isinstance(one, Load) and tape.dump(self.renamed(one.tile)) == tape.dump(tile):
                return other
        return None

    def check_place(self, tile: TileRef, node: ast.AST) -> None:
        if not is_exactly(tile, TileRef):
            raise tape.refused("elements of a tile are stored to.", node)
        if tile.parameter in self.wrt:
            raise tape.refused(f"`{tile.parameter}` is changed in place.", node)

    def loop(self, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name)
        sums = [target for target in self.sums_of(node) if target not in self._sums]
        if self.depends(node.iter):
            raise tape.refused("how often a loop runs depends on the inputs.", node)
        before = dict(self._current)
        for target in sums:
            if target not in self._current:
                raise tape.refused(f"`{target}` is summed from nothing.", node)
            self._current[target] = self.started(target, self._current_of(target, node))
        iterable = self.renamed(node.iter)
        variable = self.fresh(node.target.id)
        loop = tape.Loop(variable, iterable)
        self._blocks.append(loop.body)
        self._reads.append({})
        self._rounds.append(variable)
        self.depths[variable] = len(self._blocks) - 1
        self.types.known[variable] = COUNT
        self._current[node.target.id] = variable
        self._sums |= {target: self._current_of(target, node) for target in sums}
        for statement in node.body:
            self.round(statement)
        self._blocks.pop()
        self._reads.pop()
        self._rounds.pop()
        self._sums = {t: own for t, own in self._sums.items() if t not in sums}
        self.add(loop)
        after = {target: self._current[target] for target in sums}
        # What else a round leaves behind is the last round's.
        lost = effects.names_assigned([node]) - {*sums, *self._sums}
        self._current = {**before, **after, **dict.fromkeys(lost)}

    def round(self, node: ast.stmt) -> None:
        """A statement of a loop's body."""
        target = next(iter(effects.targets_of(node)), None)
        if target is None or target.id not in self._sums or isinstance(node, ast.For):
            self.statement(node)
            return
        value, is_negative = summand(node, target.id)
        own = self._sums[target.id]
        operand = self.value(value)
        dims = self.types.known[own].shape
        if operand.name is not None:
            if dims is None:
                raise tape.refused(f"the shape of `{target.id}` is not known.", node)
            self.dims[own] = dims
        self.add(tape.Summand(own, operand, is_negative, dims or (), node))

    def started(self, target: str, before: str) -> str:
        """A variable of its own for a sum, that begins with another's value."""
        own = self.fresh(target)
        self.types.known[own] = self.types.known.get(before, UNKNOWN)
        if before not in self.dims:
            self.add(tape.Plain(own, tape.name(before)))
        else:
            dims = self.dims[own] = self.dims[before]
            start = tape.Operand(tape.name(before), dims, before)
            self.add(tape.Step(own, tape.name(before), (start,), rules.same, dims, ast.Pass()))
        return own

    def sums_of(self, node: ast.For) -> list[str]:
        """The variables that a loop only adds to.

        Raises:
            ApplicationError: its rounds depend on each other otherwise.
        """
        if node.orelse:
            raise tape.refused("a loop has an `else`.", node)
        assigned = (
            made.id
            for statement in node.body
            for inner in effects.statements_of(statement)
            # The variable of a loop within begins anew.
            for made in (() if isinstance(inner, ast.For) else effects.targets_of(inner))
        )
        found = []
        for target in dict.fromkeys(assigned):
            if adds_only(node.body, target):
                found.append(target)
                continue
            first = self._first_use(node.body, target)
            if first is not None:
                raise tape.refused(
                    f"`{target}` is carried from one round of the loop to the next, and is no sum.",
                    first,
                )
        return found

    def _first_use(self, body: list[ast.stmt], target: str) -> ast.AST | None:
        """The statement that reads a variable before the round assigns it."""
        for statement in body:
            if target in _read_by(statement):
                return statement
            if isinstance(statement, ast.For | ast.If | ast.While):
                inner = self._first_use([*statement.body, *statement.orelse], target)
                if inner is not None:
                    return inner
            elif any(each.id == target for each in effects.targets_of(statement)):
                return None
        return None


def adds_only(body: Sequence[ast.stmt], target: str) -> bool:
    """Whether statements, and those within them, do nothing with a variable but add to it."""
    parts = [part for statement in body for part in effects.statements_of(statement)]
    sums = [part for part in parts if _assigns(part, target)]
    if not all(is_sum(each, target) for each in sums):
        return False
    values = (summand(each, target)[0] for each in sums)
    return not any(target in effects.names_read(value) for value in values) and not any(
        target in _read_by(part) for part in parts if part not in sums
    )


def _assigns(statement: ast.AST, target: str) -> bool:
    is_loop = isinstance(statement, ast.For)
    return not is_loop and any(each.id == target for each in effects.targets_of(statement))


def with_rounds_as_loops(program: Program) -> Program:
    """A program in which what a round of an unrolled loop adds to a variable is summed by a loop of one round.

    There too the variable keeps what it held where what is added has no element.
    """
    draft = Draft(program)
    _loop_over_rounds(draft, draft.body)
    return draft.finished()


def _loop_over_rounds(draft: Draft, body: list[ast.stmt]) -> None:
    for inner in (block for statement in body for block in blocks_of(statement)):
        _loop_over_rounds(draft, inner)
    for end in [each for each in body if isinstance(getattr(each, "value", None), Kept)]:
        target, before = (getattr(end.value, each).id for each in ("value", "before"))  # type: ignore[attr-defined]
        place = body.index(end)
        begin = next((p for p in range(place) if _assigns(body[p], before)), place)
        round_ = body[begin + 1 : place]
        sums = [each for each in round_ if _assigns(each, target)]
        others = [each for each in round_ if each not in sums]
        if not sums or not adds_only(round_, target) or target in effects.names_assigned(others):
            continue
        added_last: list[ast.stmt] = []
        for each in sums:
            value, is_negative = summand(each, target)
            own = draft.fresh("summand")
            round_[round_.index(each)] = assign(own, value, each)
            op = ast.Sub() if is_negative else ast.Add()
            variable = ast.Name(id=target, ctx=ast.Store())
            added_last.append(at(ast.AugAssign(variable, op, read(own, each)), each))
        once = ast.Name(id=draft.fresh("once"), ctx=ast.Store())
        rounds = ast.Call(tape.name("range"), [ast.Constant(1)], [])
        loop = at(ast.For(once, rounds, added_last, []), end)
        body[begin : place + 1] = [*round_, loop]


#: What `ntl.dot` takes by place after what it adds to.
_AFTER_ACC = ("input_precision", "allow_tf32", "max_num_imprecise_acc", "out_dtype")


def is_sum(node: ast.AST, target: str) -> bool:
    """Whether a statement only adds to a variable."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add | ast.Sub)
    return isinstance(node, ast.Assign) and (
        accumulated(node.value, target) is not None or added(node.value, target) is not None
    )


def summand(node: ast.AST, target: str) -> tuple[ast.expr, bool]:
    """What such a statement adds, and whether it is taken away."""
    if isinstance(node, ast.AugAssign):
        return node.value, isinstance(node.op, ast.Sub)
    assert isinstance(node, ast.Assign)
    product = accumulated(node.value, target)
    if product is not None:
        return product, False
    found = added(node.value, target)
    assert found is not None
    return found


def added(node: ast.expr, target: str) -> tuple[ast.expr, bool] | None:
    """What a chain of sums and differences adds to a variable in it, and whether that is taken away.

    None where it adds to something else.
    """
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub):
        return None
    is_negative = isinstance(node.op, ast.Sub)
    if isinstance(node.left, ast.Name) and node.left.id == target:
        return node.right, is_negative
    if isinstance(node.right, ast.Name) and node.right.id == target and not is_negative:
        return node.left, False
    inner = added(node.left, target)
    if inner is None:
        return None
    value, is_taken = inner
    rest = clone(node)
    # What is taken away all along is a sum that is; else it has a sign of its own.
    if is_taken and is_negative:
        rest.op = ast.Add()
    elif is_taken:
        value = ast.UnaryOp(ast.USub(), value)
    rest.left = value
    return rest, is_taken and is_negative


def accumulated(node: ast.expr, target: str) -> ast.Call | None:
    """The product alone, of ``ntl.dot(a, b, target)``; None for what is none."""
    if not isinstance(node, ast.Call) or rule_name(node) != "dot":
        return None
    given = argument(node, 2, "acc")
    if not (isinstance(given, ast.Name) and given.id == target):
        return None
    product: ast.Call = clone(node)
    kept = [each for each in product.keywords if each.arg != "acc"]
    after = [ast.keyword(*each) for each in zip(_AFTER_ACC, product.args[3:])]
    product.args, product.keywords = product.args[:2], [*after, *kept]
    return product


def _read_by(statement: ast.AST) -> set[str]:
    """The variables that a statement itself reads, not those within it."""
    if isinstance(statement, ast.AugAssign):
        return effects.names_read(statement.value) | {getattr(statement.target, "id", "")}
    if isinstance(statement, ast.For):
        return effects.names_read(statement.iter)
    if isinstance(statement, ast.If | ast.While):
        return effects.names_read(statement.test)
    return effects.names_read(statement)
