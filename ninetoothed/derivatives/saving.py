"""What backward needs again: computed again of the inputs, or loaded where the forward kernel stored it.

A value that an output has is loaded from that output where fewer bytes are moved then: softmax's own result
stands for the row that it is made of, and a sum over a loop for all that the loop reads. It was rounded on
its way there, so it stands for the value where that changes no gradient by more than as much: where its
element type holds the value, or where all that is made of it are sums and products.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from ninetoothed.derivatives.absent import moves
from ninetoothed.derivatives.arguments import argument, arguments_of
from ninetoothed.derivatives.record import Recorder
from ninetoothed.derivatives.reverse import Reverse
from ninetoothed.derivatives.rules import template
from ninetoothed.derivatives.tape import Plain, Step, SumType, Written, dump
from ninetoothed.derivatives.values import rule_name
from ninetoothed.language.dtypes import float64
from ninetoothed.program.effects import operation_of, targets_of
from ninetoothed.program.nodes import (
    DTypeRef,
    ElementType,
    LanguageRef,
    Load,
    SourceLoad,
    SymbolValue,
    TileRef,
    clone,
    walk,
)
from ninetoothed.program.types import UNKNOWN, is_one
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Expression
from ninetoothed.symbols.simplify import difference
from ninetoothed.tensors.arrange import Parameter

#: How many elements a parameter's tile has.
Size = Callable[[str], Expression]


def backwards(
    recorder: Recorder,
    gradients: dict[str, str],
    outputs: Mapping[str, str],
    size_of: Size,
    atomic: Collection[str] = (),
    is_strict: bool = False,
) -> list[ast.stmt]:
    """The statements of a backward kernel; what is stored to an output is loaded where that moves less.

    Args:
        recorder: the tape.
        gradients, atomic: as `Reverse` takes them.
        outputs: those that may be loaded, by each the input whose element type it has.
        is_strict: whether what was rounded is loaded only where that changes little.
    """
    names = set(recorder.names)
    tensors = [each for each in recorder.parameters.values() if each.kind == "tensor"]
    # Elements beyond a tensor's end, and those that were moved, make values that no output has.
    has_other = any(each.source.other is not None for each in tensors)
    is_partial = has_other or moves(recorder.program.body) or bool(recorder.left_out)

    def written(saved: Mapping[str, TileRef]) -> list[ast.stmt]:
        recorder.names.clear()
        recorder.names.update(names)
        return Reverse(recorder, gradients, saved, atomic).run()

    kept: dict[str, TileRef] = {}
    loaded = _loaded(written(kept))
    unsummed = {*outputs} - recorder.summed
    found = list(_stored(recorder, unsummed, is_partial))
    rounded: set[str] = set()
    if is_strict:
        rounded = {tile.parameter for v, tile in found if not _holds(recorder, v, tile, outputs)}
    wide = {each for each in rounded if not _is_as_narrow(recorder, outputs, each)}
    stored = {value: tile for value, tile in found if tile.parameter not in wide}
    # One by one; then all, for a loop is run while anything that it sums is needed.
    for more in (*({value: tile} for value, tile in stored.items()), stored):
        body = written({**kept, **more})
        while misused := {t.parameter for t in more.values()} & magnified(body, rounded):
            more = {v: t for v, t in more.items() if t.parameter not in misused}
            body = written({**kept, **more})
        fewer = _loaded(body)
        if not magnified(body, rounded) and _moves_less(fewer, loaded, size_of):
            kept, loaded = {**kept, **more}, fewer
    return written(kept)


def _is_as_narrow(recorder: Recorder, outputs: Mapping[str, str], output: str) -> bool:
    """Whether no gradient is known to better than an output's element type has it.

    That is where all are of the one input that has this type, or come of outputs that all have it.
    """
    like = outputs[output]
    are_all = {*recorder.outputs} == {*outputs} and {*outputs.values()} == {like}
    return are_all or {*recorder.wrt} == {like}


def _holds(recorder: Recorder, value: str, tile: TileRef, outputs: Mapping[str, str]) -> bool:
    """Whether an output's element type is known to hold a value as it was computed."""
    own, like = tile.parameter, outputs[tile.parameter]
    dtype = recorder.parameters[own].dtype or recorder.parameters[like].dtype
    known = recorder.types.known.get(value, UNKNOWN).dtype
    if known is not None and dtype is not None and known.is_floating():
        return known is dtype or (known.bits < dtype.bits and dtype.is_floating())
    steps = {e.target: e.expression for e in recorder.items if isinstance(e, Plain | Step)}
    made = steps.get(value)
    if not (isinstance(made, ast.Call) and rule_name(made) == "cast"):
        return False
    given = argument(made, 1, "dtype")
    if isinstance(given, ast.Name):
        given = steps.get(given.id)
    return isinstance(given, ElementType) and given.parameter in (own, like)


def _stored(
    recorder: Recorder, outputs: Collection[str], is_partial: bool
) -> Iterator[tuple[str, TileRef]]:
    """The values on a tape that are stored as they are and whole, once a program, and where."""
    for item in recorder.items:
        if isinstance(item, Written) and item.tile.parameter in outputs:
            dims = item.operand.dims
            is_whole = not is_partial or (dims is not None and all(map(is_one, dims)))
            value = getattr(item.operand.expression, "id", "")
            is_float = recorder.types.known.get(value, UNKNOWN).kind == "float"
            if is_whole and value and (is_float or item.operand.name is not None):
                yield value, item.tile


def _loaded(
    body: Sequence[ast.stmt], depth: int = 0, found: dict[str, int] | None = None
) -> dict[str, int]:
    """Within how many loops statements load each tensor's tiles."""
    found = {} if found is None else found
    for statement in body:
        if isinstance(statement, ast.For):
            _loaded(statement.body, depth + 1, found)
            continue
        for node in walk(statement):
            if isinstance(node, Load | SourceLoad):
                parameter = node.tile.parameter if isinstance(node, Load) else node.parameter
                found[parameter] = max(found.get(parameter, 0), depth)
    return found


def magnified(body: Sequence[ast.stmt], rounded: Collection[str]) -> set[str]:
    """Those of some tensors of which more is made than sums and products, so that a rounding may grow.

    What a rounded value decides, such as a comparison or a maximum, may be decided otherwise, and its
    logarithm or a quotient by it be anything. The root of squares that a number was added to, as in a norm,
    is not: it changes by less than they do, and is not 0.
    """
    found = _Rounding(frozenset(rounded))
    before = -1
    while rounded and before != (before := found.count):
        found.statements(body)
    return found.magnified


#: Operations that are sums and products, or move what they are given.
_LINEAR = frozenset("sum cumsum dot fma cast to item broadcast_to flip zeros_like".split())


class _Rounding:
    """Of which rounded tensors values are made by sums and products.

    Attributes:
        made_of: these, by the names of values.
        signs: of those that are, ``"squares"`` of what is no less than 0; ``"apart"`` of what is more by a number.
    """

    def __init__(self, rounded: frozenset[str]) -> None:
        self.rounded = rounded
        self.made_of: dict[str, frozenset[str]] = {}
        self.signs: dict[str, str] = {}
        self.magnified: set[str] = set()

    @property
    def count(self) -> int:
        """How much was found so far: a loop's statements come again till that is all."""
        return sum(map(len, self.made_of.values())) + len(self.magnified)

    def statements(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.For):
                self.statements(node.body)
                continue
            value: ast.expr = node.value  # type: ignore[attr-defined]
            found = self.of(value)
            is_sum = isinstance(node, ast.AugAssign)
            for target in targets_of(node):
                self.made_of[target.id] = found | self.made_of.get(target.id, frozenset())
                self.signs[target.id] = "" if is_sum else self.sign(value)

    def of(self, node: ast.AST) -> frozenset[str]:
        """The tensors that a value is made of."""
        if isinstance(node, Load):
            return self.rounded & {node.tile.parameter}
        if isinstance(node, ast.Name):
            return self.made_of.get(node.id, frozenset())
        if isinstance(node, ast.Attribute):
            return self.of(node.value) if node.attr == "T" else frozenset()
        taken, asked = self.parts(node)
        for each in asked:
            self.magnified |= self.of(each)
        return frozenset[str]().union(*map(self.of, taken))

    def parts(self, node: ast.AST) -> tuple[Sequence[ast.AST], Sequence[ast.AST]]:
        """What a value is made of by sums and products, and what else it depends on."""
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.BinOp):
            if (
                isinstance(node.op, ast.Add | ast.Sub | ast.Mult)
                or self.sign(node.right) == "apart"
            ):
                return [node.left, node.right], []
            return ([node.left], [node.right]) if isinstance(node.op, ast.Div) else ([], children)
        if isinstance(node, ast.IfExp):
            return [node.body, node.orelse], [node.test]
        if not isinstance(node, ast.Call):
            is_part = isinstance(node, ast.Subscript | ast.Tuple | ast.List)
            is_part = is_part or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub))
            return (children, []) if is_part else ([], children)
        name, given = rule_name(node), arguments_of(node)
        if name == "where":
            # What asks only which elements exist has the same both ways.
            is_same = dump(given[1]) == dump(given[2])
            return given[1:], [] if is_same else given[:1]
        if name in ("sqrt", "rsqrt") and self.sign(given[0]) == "apart":
            return given, []
        if name in ("cast", "to") and isinstance(type_ := argument(node, 1, "dtype"), DTypeRef):
            return (given[:1], []) if type_.dtype.is_floating() else ([], given[:1])
        operation = operation_of(node)
        kind = "" if operation is None else operation.kind
        is_linear = name in _LINEAR or kind in ("rearrangement", "hint")
        given = [*given, *(word.value for word in node.keywords)]
        return (given, []) if is_linear else ([], given)

    def sign(self, node: ast.AST) -> str:
        """Whether a value is of squares, and apart from 0."""
        if isinstance(node, ast.Name):
            return self.signs.get(node.id, "")
        if isinstance(node, ast.Subscript):
            return self.sign(node.value)
        if isinstance(node, ast.Call):
            given, name = arguments_of(node), rule_name(node)
            found = self.sign(given[0]) if given else ""
            if name in ("sqrt", "rsqrt"):
                return found if found == "apart" else ""
            return found if name in ("sum", "cast", "broadcast_to", "expand_dims") else ""
        if not isinstance(node, ast.BinOp):
            return ""
        left, right = self.sign(node.left), self.sign(node.right)
        if isinstance(node.op, ast.Mult) and dump(node.left) == dump(node.right):
            return "squares"
        if isinstance(node.op, ast.Add) and (left or right):
            return "apart" if self.is_number(node.right if left else node.left) else ""
        is_scaled = isinstance(node.op, ast.Div) and isinstance(node.right, SymbolValue)
        return left if is_scaled else ""

    def is_number(self, node: ast.AST) -> bool:
        """Whether a value is a number that the kernel is given, or that stands there."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int | float) and node.value > 0
        return isinstance(node, ast.Name) and node.id not in self.made_of


def _values_of(node: ast.AST) -> list[ast.expr]:
    """What a call is given, or a variable."""
    if isinstance(node, ast.Call):
        return [*node.args, *(word.value for word in node.keywords)]
    return [node.value] if isinstance(node, ast.Assign) else []


def decide_sums(body: Sequence[ast.stmt], parameters: Sequence[Parameter]) -> None:
    """Says what element type the sums of a program have.

    Args:
        parameters: of the forward kernel, for the numbers among them.
    """
    nodes = [node for statement in body for node in walk(statement)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    numbers = [each for each in parameters if each.kind == "scalar" and each.name in names]
    # What is asked, or chosen by what was asked, is of tensors that are loaded.
    given = [each for node in nodes for each in _values_of(node)]
    said = [each.dtype for each in given if isinstance(each, DTypeRef)]
    found: ast.expr = LanguageRef(name="float32")
    if float64 in (*said, *(number.dtype for number in numbers)):
        found = LanguageRef(name="float64")
    else:
        for each in sorted(_loaded(body), reverse=True):
            type_ = ElementType(parameter=each)
            found = template("float64 if t is float64 else f", t=type_, f=found)
    for node in nodes:
        if isinstance(node, ast.keyword) and isinstance(node.value, SumType):
            node.value = clone(found)


def _moves_less(mine: Mapping[str, int], theirs: Mapping[str, int], size_of: Size) -> bool:
    """Whether one way loads no more than another, as far as the sizes tell."""
    both, left = mine.keys() & theirs.keys(), theirs.keys() - mine.keys()
    if any(mine[each] > theirs[each] for each in both):
        return False
    if any(theirs[each] > 0 for each in left) or any(theirs[each] > mine[each] for each in both):
        # What every round of a loop loaded is more than what is loaded once.
        return True
    sizes = [size_of(each) for each in left], [size_of(each) for each in mine.keys() - both]
    less, more = (sum(each[1:], start=each[0]) if each else 0 for each in sizes)
    return bool(left) and interval(difference(less, more))[0] >= 0
