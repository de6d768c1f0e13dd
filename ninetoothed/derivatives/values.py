"""Values on a tape: each expression's steps, where it depends on the inputs to be derived by."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

from ninetoothed.derivatives import rules
from ninetoothed.derivatives.arguments import argument, arguments_of, is_axis
from ninetoothed.derivatives.positions import is_at, is_of_whole_slices
from ninetoothed.derivatives.rounds import Access, repeating
from ninetoothed.derivatives.tape import (
    Dims,
    Item,
    Operand,
    Plain,
    Read,
    Rule,
    Step,
    dump,
    name,
    refused,
)
from ninetoothed.language import derivatives
from ninetoothed.program import nodes
from ninetoothed.program.effects import has_effect, names_read, operation_of
from ninetoothed.program.expression_types import Expressions
from ninetoothed.program.frozen import is_exactly
from ninetoothed.program.names import unused
from ninetoothed.program.program import Program
from ninetoothed.program.types import held
from ninetoothed.symbols.expr import Expression
from ninetoothed.tensors.views import Chosen, Fixed

_LEAVES = (
    ast.Name,
    ast.Constant,
    ast.Tuple,
    ast.List,
    ast.Attribute,
    nodes.SymbolValue,
    nodes.DTypeRef,
)


class Values:
    """A tape, and what expressions put on it.

    Attributes:
        items: the tape.
        wrt: the inputs to be derived by.
        outputs: the tensors that are stored to.
        dims: the shapes of the tape's values that depend on the inputs.
        depths: within how many loops each variable is made.
        names: every name that is taken.
        repeated: of inputs, the selections that make no difference: dimensions of the middle levels.
        atomic: the inputs whose gradients are added up, whichever rounds have the same tiles.
        elements: of a tile at a position, that are values: how they are read.
        left_out: as `absent.left_out` finds it.
    """

    def __init__(
        self, program: Program, wrt: Collection[str], outputs: Collection[str], names: set[str]
    ) -> None:
        self.items: list[Item] = []
        self.wrt, self.outputs = wrt, outputs
        self.names = names
        self.repeated: dict[str, tuple[int, ...]] = {}
        self.atomic: Collection[str] = ()
        self.elements: dict[str, nodes.ElementLoad] = {}
        self.left_out: dict[int, frozenset[str]] = {}
        self.parameters: dict[str, Any] = {p.name: p for p in program.parameters}
        self.types = Expressions(self.parameters)
        self.dims: dict[str, Dims] = {}
        self.depths: dict[str, int] = {}
        self._current: dict[str, str | None] = {}
        self._blocks: list[list[Item]] = [self.items]
        self._reads: list[dict[str, Operand]] = [{}]
        self._rounds: list[str] = []
        self._stored: dict[str, list[Access]] = {}
        self._plain: dict[str, ast.expr] = {}

    # Expressions.

    def value(self, node: ast.expr, wish: str = "value") -> Operand:
        """A value; the steps that make it, where it depends on the inputs, are recorded."""
        if not self.depends(node):
            expression = self.renamed(node)
            if any(isinstance(child, nodes.ExternRef) for child in nodes.walk(node)):
                raise refused("a function that is not the language's has no derivative.", node)
            if has_effect(node):
                raise refused("this changes memory.", node)
            return Operand(expression, self.types.of(expression).shape)
        if isinstance(node, nodes.Load):
            return self.read(node)
        if isinstance(node, ast.Name):
            own = self._current_of(node.id, node)
            return Operand(name(own), self.dims[own], own)
        if isinstance(node, ast.BinOp | ast.UnaryOp):
            return self.operator(node, wish)
        if isinstance(node, ast.IfExp):
            return self.choice(node, wish)
        if isinstance(node, ast.BoolOp):
            return self.either(node, wish)
        if isinstance(node, ast.Subscript):
            return self.subscript(node, wish)
        if isinstance(node, ast.Attribute) and node.attr == "T":
            called = self.at(ast.Call(nodes.LanguageRef(name="trans"), [node.value], []), node)
            return self.value(called, wish)
        if isinstance(node, ast.Call):
            return self.call(node, wish)
        if isinstance(node, nodes.ElementLoad) and is_of_whole_slices(
            node, self.parameters[node.parameter].tile_shape
        ):
            return self.chosen(node, wish)
        if isinstance(node, nodes.SourceLoad):
            raise refused(
                f"elements of `{node.parameter}` are chosen by position: several programs may choose "
                "one, and its gradient would be added to atomically.",
                node,
            )
        if isinstance(node, nodes.Kept):
            raise refused(
                "where this round of an unrolled loop has no element, a variable keeps what it held.",
                node,
            )
        raise refused(f"`{type(node).__name__}` has no derivative.", node)

    def read(self, node: nodes.Load) -> Operand:
        tile = self.renamed(node.tile)
        if not is_exactly(tile, nodes.TileRef):
            raise refused("elements of a tile are read that the program chooses.", node)
        for index in tile.indices:
            if any(isinstance(child, nodes.Load | nodes.SourceLoad) for child in nodes.walk(index)):
                raise refused(
                    f"which tile of `{tile.parameter}` is read is a value that was loaded: several "
                    "programs may read one, and its gradient would be added to atomically.",
                    node,
                )
        for place in self.repeated.get(tile.parameter, ()):
            tile.indices[place] = ast.Constant(0)
        key = dump(tile)
        used = [self.depths.get(each, 0) for index in tile.indices for each in names_read(index)]
        depth = max(used, default=0)
        known = self._reads[depth].get(key)
        if known is None:
            if tile.parameter not in self.atomic:
                self.check_rounds(tile, depth, node)
            own = self.fresh(f"{tile.parameter}_tile")
            self.types.known[own] = self.types.of(nodes.Load(tile=tile))
            dims = self.dims[own] = self.types.known[own].shape or ()
            self.depths[own] = depth
            self._blocks[depth].append(Read(own, tile, dims, node))
            known = self._reads[depth][key] = Operand(name(own), dims, own)
        return known

    def check_rounds(self, tile: nodes.TileRef, depth: int, node: ast.AST) -> None:
        """Refuses a tile that several rounds of the loops around have."""
        access = Access(tile.indices, tuple(self._rounds[:depth]))
        variable = repeating(access, self.depths, self._plain)
        if variable is not None:
            is_read = tile.parameter in self.wrt
            raise refused(
                f"several rounds of the loop over `{variable}` "
                + (
                    f"read the same tile of `{tile.parameter}`, and each would store its gradient over the last."
                    if is_read
                    else f"may store to the same tile of `{tile.parameter}`, and only the last is left."
                ),
                node,
            )

    def chosen(self, node: nodes.ElementLoad, wish: str) -> Operand:
        """Elements of a tile at a position in some of its dimensions: the sum over these, all others left out."""
        entries, count = node.view.entries, node.view.chosen
        given = iter(node.indices[len(node.indices) - count :])
        positions: dict[int, Operand] = {}
        for axis, entry in enumerate(entries):
            if isinstance(entry, Chosen):
                positions[axis] = self.operand(next(given))
            elif isinstance(entry, Fixed):
                positions[axis] = Operand(_as_node(entry.position), ())
        keeps = len(entries) == 1 and positions[0].dims == (1,)
        if not keeps and any(each.dims != () for each in positions.values()):
            raise refused("several elements of a tile are chosen by position.", node)
        indices = node.indices[: len(node.indices) - count]
        place = nodes.TileRef(parameter=node.parameter, indices=indices)
        found = self.read(self.at(nodes.Load(tile=place), node))
        dims = tuple(n if axis in positions else 1 for axis, n in enumerate(found.dims or ()))
        mask = Operand(name(self.named(Operand(is_at(found, positions), dims), "is_chosen")), dims)
        kept = rules.template("where(m, t, 0.0)", m=mask.expression, t=found.expression)
        operands = [mask, found, Operand(ast.Constant(0.0), ())]
        where = rules.elementwise(derivatives.RULES["where"])
        found = self.step(kept, operands, where, node, f"{node.parameter}_chosen")
        for axis in sorted(positions, reverse=True):
            text = f"sum(v, axis={axis}{', keep_dims=True' if keeps else ''})"
            total = rules.template(text, v=found.expression)
            assert isinstance(total, ast.Call)
            rule = rules.rule_of(total)
            assert rule is not None
            found = self.step(total, [found], rule, node, wish)
        self.elements[found.name or ""] = self.renamed(node)
        return found

    def operator(self, node: ast.BinOp | ast.UnaryOp, wish: str) -> Operand:
        row = rules.OPERATORS.get(type(node.op))
        if row is None:
            if isinstance(node.op, ast.UAdd):
                return self.value(node.operand, wish)  # type: ignore[union-attr]
            if isinstance(node.op, ast.FloorDiv):
                expression = self.renamed(node)
                return Operand(expression, self.types.of(expression).shape)
            raise refused(f"`{_symbol(node.op)}` has no derivative.", node)
        parts = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
        operands = [self.operand(part) for part in parts]
        if isinstance(node, ast.UnaryOp):
            made: ast.expr = ast.UnaryOp(node.op, operands[0].copied)
        else:
            made = ast.BinOp(operands[0].copied, node.op, operands[1].copied)
        rule = rules.elementwise(derivatives.RULES[row])
        if isinstance(node.op, ast.Div) and operands[1].name is not None and operands[1].dims == ():
            rule = rules.quotient
        return self.step(made, operands, rule, node, wish)

    def choice(self, node: ast.IfExp, wish: str) -> Operand:
        test = self.renamed(node.test)
        rule = rules.same if _is_cast_of(node) else rules.choice(test)
        ways = (node.body, node.orelse)
        # What is no step stays where it is asked for by one way alone.
        body, orelse = (self.operand(w) if self.depends(w) else self.value(w) for w in ways)
        made = ast.IfExp(test, _shaped(body, orelse), _shaped(orelse, body))
        return self.step(made, [body, orelse], rule, node, wish)

    def either(self, node: ast.BoolOp, wish: str) -> Operand:
        """``and`` or ``or``: of tiles a truth value, of numbers one of these."""
        expression = self.renamed(node)
        type_ = self.types.of(expression)
        if type_.shape is None:
            raise refused("whether this is of numbers or of tiles is not known.", node)
        if type_.shape or type_.kind in ("int", "bool"):
            return Operand(expression, type_.shape)
        found = node.values[-1]
        for each in reversed(node.values[:-1]):
            test = ast.Compare(each, [ast.NotEq()], [ast.Constant(0)])
            ways = (found, each) if isinstance(node.op, ast.And) else (each, found)
            found = self.at(ast.IfExp(test, *ways), node)
        return self.choice(found, wish)  # type: ignore[arg-type]

    def subscript(self, node: ast.Subscript, wish: str) -> Operand:
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not all(map(is_axis, entries)):
            raise refused("elements of a tile are chosen by position.", node)
        operand = self.operand(node.value)
        axes = tuple(axis for axis, entry in enumerate(entries) if isinstance(entry, ast.Constant))
        made = ast.Subscript(operand.copied, self.renamed(node.slice), ast.Load())
        return self.step(made, [operand], rules.without_axes(axes), node, wish)

    def call(self, node: ast.Call, wish: str) -> Operand:
        operation = operation_of(node)
        if rules.has_no_slope(operation):
            expression = self.renamed(node)
            return Operand(expression, self.types.of(expression).shape)
        try:
            rule = rules.rule_of(node)
        except ValueError:
            raise refused("an argument of it is known only when the kernel runs.", node) from None
        shown = ast.unparse(node.func) if operation is None else f"ntl.{operation.name}"
        if operation is None or rule is None:
            raise refused(f"`{shown}` has no derivative.", node)
        arguments = [self.operand(each) for each in arguments_of(node)]
        named = []
        for keyword in node.keywords:
            place = _PLACES.get(keyword.arg or "")
            if self.depends(keyword.value):
                if place != len(arguments):
                    raise refused(f"`{keyword.arg}` of `{shown}` depends on an input.", node)
                arguments.append(self.operand(keyword.value))
            else:
                named.append(ast.keyword(keyword.arg, self.renamed(keyword.value)))
        made = ast.Call(
            nodes.LanguageRef(name=operation.name if operation.name != "to" else "cast"),
            [each.copied for each in arguments],
            named,
        )
        if operation.name == "item":
            # A member of values alone.
            made.func = ast.Attribute(made.args.pop(0), operation.name, ast.Load())
        if operation.name in ("max", "min") and not _is_off(argument(node, 2, "return_indices")):
            raise refused(f"`{shown}` with `return_indices` has no derivative.", node)
        if operation.name in ("cast", "to") and not _is_off(argument(node, 3, "bitcast")):
            raise refused("a value's bits, taken as another type's, have no derivative.", node)
        return self.step(made, arguments, rule, node, wish)

    def operand(self, node: ast.expr) -> Operand:
        """A value under a name, where it is more than one."""
        found = self.value(node)
        if found.name is None and not isinstance(found.expression, _LEAVES) and found.dims != ():
            wish = "value"
            if isinstance(found.expression, nodes.Load):
                wish = f"{found.expression.tile.parameter}_tile"
            return Operand(name(self.named(found, wish)), found.dims)
        return found

    def step(
        self, made: ast.expr, operands: list[Operand], rule: Rule, node: ast.AST, wish: str
    ) -> Operand:
        type_ = self.types.of(made)
        if type_.kind in ("int", "bool"):
            return Operand(made, type_.shape)
        unknown = any(operand.name is not None and operand.dims is None for operand in operands)
        if type_.shape is None or unknown:
            raise refused("the shape of this value is not known.", node)
        own = self.fresh(wish)
        self.dims[own], self.types.known[own] = type_.shape, held(type_)
        self.add(Step(own, made, tuple(operands), rule, type_.shape, node))
        return Operand(name(own), type_.shape, own)

    # Names.

    def depends(self, node: ast.AST) -> bool:
        """Whether a value may change where an input to be derived by does by a little."""
        if isinstance(node, nodes.Load):
            if node.tile.parameter in self.outputs:
                raise refused(f"`{node.tile.parameter}` is read after it was stored to.", node)
            return node.tile.parameter in self.wrt
        if isinstance(node, ast.Name):
            return self._current_of(node.id, node) in self.dims
        if isinstance(node, ast.Compare | nodes.Offsets):
            return False
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
            return False
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            # A method's value is an argument as others are.
            return any(map(self.depends, [*arguments_of(node), *node.keywords]))
        if isinstance(node, ast.Attribute) and node.attr != "T":
            return False
        if isinstance(node, nodes.SourceLoad):
            if node.parameter in self.outputs:
                raise refused(f"`{node.parameter}` is read after it was stored to.", node)
            return node.parameter in self.wrt
        return any(self.depends(child) for child in ast.iter_child_nodes(node))

    def renamed(self, node: Any) -> Any:
        """A copy with the tape's names for variables."""
        copy = nodes.clone(node)
        for child in nodes.walk(copy):
            if isinstance(child, ast.Name):
                child.id = self._current_of(child.id, child)
            elif isinstance(child, nodes.Load | nodes.ElementLoad | nodes.SourceLoad):
                self.check_unchanged(child, node)
            elif isinstance(child, ast.Call):
                child.args = [self._spelled(each) for each in child.args]
        return copy

    def check_unchanged(self, load: Any, node: ast.AST) -> None:
        """Refuses what is no longer there when a backward kernel runs."""
        parameter = load.tile.parameter if isinstance(load, nodes.Load) else load.parameter
        if parameter in self.outputs and parameter not in self._stored:
            raise refused(f"`{parameter}` is changed in place: it is read, then stored to.", node)

    def _spelled(self, node: ast.expr) -> ast.expr:
        """The shape of a variable as a tuple of its sizes, where they are known."""
        if not (isinstance(node, ast.Attribute) and node.attr == "shape"):
            return node
        if not isinstance(node.value, ast.Name):
            return node
        own = self._current_of(node.value.id, node)
        shape = self.types.known[own].shape if own in self.types.known else None
        if shape is None or None in shape:
            return node
        sizes: list[ast.expr] = [
            ast.Constant(n) if isinstance(n, int) else nodes.SymbolValue(symbol=n) for n in shape
        ]
        return ast.Tuple(sizes, ast.Load())

    def _current_of(self, variable: str, node: ast.AST) -> str:
        found = self._current.get(variable, variable)
        if found is None:
            raise refused(f"what the last round of a loop leaves in `{variable}` is used.", node)
        return found

    def fresh(self, wish: str) -> str:
        own = unused(wish, self.names)
        self.names.add(own)
        self.depths[own] = len(self._blocks) - 1
        return own

    def add(self, item: Item) -> None:
        self._blocks[-1].append(item)

    def at(self, node: Any, origin: ast.AST) -> Any:
        node.lineno, node.col_offset = (
            getattr(origin, "lineno", 1),
            getattr(origin, "col_offset", 0),
        )
        node.file = getattr(origin, "file", None)
        return node

    def named(self, value: Operand, wish: str) -> str:
        """The variable that has a value."""
        if isinstance(value.expression, ast.Name) and value.expression.id in self.depths:
            return value.expression.id
        own = self.fresh(wish)
        self.types.known[own] = held(self.types.of(value.expression))
        self.add(Plain(own, value.expression))
        self._plain[own] = value.expression
        return own


def _as_node(number: Expression) -> ast.expr:
    return ast.Constant(number) if isinstance(number, int) else nodes.SymbolValue(symbol=number)


#: Arguments that may be given by name where they stand last.
_PLACES = {"acc": 2}


def _is_off(flag: ast.expr | None) -> bool:
    """Whether an argument is not given, or False."""
    return flag is None or (isinstance(flag, ast.Constant) and not flag.value)


def rule_name(call: ast.Call) -> str:
    operation = operation_of(call)
    return "" if operation is None else operation.name


def _shaped(way: Operand, other: Operand) -> ast.expr:
    """A way of a choice; 0 beside a tile as a tile, for what a constant chooses is no `where`."""
    is_zero = isinstance(way.expression, ast.Constant) and way.expression.value == 0
    if not is_zero or not other.dims:
        return way.copied
    return ast.Call(nodes.LanguageRef(name="zeros_like"), [other.copied], [])


def _is_cast_of(node: ast.IfExp) -> bool:
    """Whether a choice is between a value and itself in another element type."""

    def plain(part: ast.expr) -> ast.expr:
        while isinstance(part, ast.Call) and rule_name(part) in ("cast", "to"):
            part = arguments_of(part)[0]
        return part

    return dump(plain(node.body)) == dump(plain(node.orelse))


def _symbol(op: ast.AST) -> str:
    plain = ast.BinOp(name("a"), op, name("b")) if isinstance(op, ast.operator) else None
    return type(op).__name__ if plain is None else ast.unparse(plain)
