"""Inputs whose elements several programs have: the dimensions that those differ in become a loop.

What a program of the forward kernel gives to an input is summed over the programs that share it. So the
grid's dimensions that the input's access has none of become a level above the tiles, to loop over; where
the input's tiles are selected by a loop's round, that loop becomes a dimension of the grid instead.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Any

from ninetoothed.derivatives import rules
from ninetoothed.derivatives.tape import SumType, assignment, name
from ninetoothed.program import nodes
from ninetoothed.program.effects import names_read
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol
from ninetoothed.symbols.simplify import difference, simplify
from ninetoothed.tensors.arrange import Arrangement, Parameter
from ninetoothed.tensors.meta_operation import Rewrite
from ninetoothed.tensors.tensor import Tensor


class ExchangeError(Exception):
    """Why the grid and a loop cannot be exchanged."""


@dataclass
class Exchange:
    """An exchange of dimensions of the grid with loops.

    Attributes:
        arrangement: the forward kernel's.
        absent: the dimensions of the grid that become loops.
        parameters: the forward kernel's tensors, by the names that they have in the statements; a
            gradient's is that which it is a gradient of.
        rounds: the sizes of the loops that become dimensions of the grid, by their variables.
        selected: for each tensor, by these variables, the middle level and its dimension.
        parts: in how many parts, at most, a sum is left to be added up; None: in one.
        beside: gradients of inputs that no programs share, stored in each round of the loops.
        equal: what sizes are the same as.
        fixed: where sums are in parts, the tensors of which every round has the same tile.
        repeated: of gradients, the selections that make no difference: there is one tile.
        order: the new grid: dimensions of the grid that stay and variables of loops, as the dimensions
            of the input that they go along.
    """

    arrangement: Arrangement
    absent: tuple[int, ...]
    parameters: dict[str, Parameter]
    rounds: dict[str, Expression] = field(default_factory=dict)
    selected: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    order: list[int | str] = field(default_factory=list)
    parts: int | None = None
    beside: frozenset[str] = frozenset()
    fixed: frozenset[str] = frozenset()
    repeated: Mapping[str, Collection[int]] = field(default_factory=dict)
    equal: Mapping[Symbol, Expression] = field(default_factory=dict)

    def _ordered(self, gradient: str) -> list[int | str]:
        grid, parameter = self.arrangement.grid, self.parameters[gradient]
        access = self.arrangement.accesses[parameter.name]
        sizes = [len(level) for level in parameter.middle_levels]
        found: dict[int | str, Any] = {
            dim: self.arrangement.programs[dim]
            for dim, size in enumerate(grid)
            if dim not in self.absent and size != 1
        }
        for variable, (level, dim) in self.selected.get(gradient, {}).items():
            found[variable] = access.selections[sum(sizes[:level]) + dim]

        def first(key: int | str) -> int:
            along = (
                place for place, index in enumerate(access.indices) if found[key] in index.leaves()
            )
            return next(along, len(access.indices))

        return sorted(found, key=first)

    @property
    def sizes(self) -> list[Expression]:
        """The sizes that it takes of other tensors than those that have them."""
        return [*self.arrangement.grid, *self.rounds.values()]

    def steps(self, sizes: Rewrite) -> Expression:
        """How many of the programs along the first absent dimension make one part."""
        assert self.parts is not None
        count = as_symbol(sizes(self.arrangement.grid[self.absent[0]]))
        # One at least: the last summand is 1 where there is no program, else 0.
        return simplify((count + (self.parts - 1)) // self.parts + as_symbol(1) // (count + 1))

    def count_of_parts(self, sizes: Rewrite) -> Expression:
        """How many parts there are."""
        grid, steps = self.arrangement.grid, as_symbol(self.steps(sizes))
        return simplify((as_symbol(sizes(grid[self.absent[0]])) + (steps - 1)) // steps)

    def shape_of_parts(self, gradient: str, sizes: Rewrite) -> tuple[Expression, ...]:
        """The shape of a gradient's parts: how many there are, then a tile's."""
        return (self.count_of_parts(sizes), *map(sizes, self.parameters[gradient].tile_shape))

    def may_be_in_parts(self, gradient: str) -> bool:
        """Whether one program would sum all of an input's gradient, in the order of its elements."""
        parameter = self.parameters[gradient]
        access = self.arrangement.accesses[parameter.name]
        sizes = parameter.tile_shape
        lanes = [lane for lane, size in zip(access.coordinates, sizes) if size != 1]
        only = {lane: 0 for lane, size in zip(access.coordinates, sizes) if size == 1}
        indices = [as_symbol(simplify(index.substitute(only))) for index in access.indices]
        whole = [size for size in sizes if size != 1]
        return (
            not parameter.middle_levels
            and indices == lanes
            and [*map(as_symbol, whole)] == [*map(as_symbol, parameter.source.shape)]
            and not any(leaf.meta for size in whole for leaf in as_symbol(size).leaves())
        )

    def taken(self, gradient: str) -> Collection[tuple[int, int]]:
        """The dimensions of a gradient's middle levels that are dimensions of the grid now."""
        return self.selected.get(gradient, {}).values()

    # Statements.

    def statements(
        self, body: list[ast.stmt], gradients: Sequence[str], fresh: Any
    ) -> list[ast.stmt]:
        """The statements, which compute sums over the programs that share the gradients' elements.

        Args:
            gradients: the names of the gradients that are stored to.
            fresh: gives names that are not taken.

        Raises:
            ExchangeError: what is stored needs what the exchange takes away.
        """
        gradients = [each for each in gradients if each not in self.beside]
        body = self._without_rounds(body, gradients)
        self.order = self._ordered(gradients[0])
        variables = {dim: fresh("i") for dim in self.absent}
        started: list[ast.stmt] = []
        ended: list[ast.stmt] = []
        inner: list[ast.stmt] = []
        _check_no_loop_stores(body)
        for statement in body:
            if isinstance(statement, nodes.Store) and statement.tile.parameter in self.beside:
                inner.append(statement)
            elif isinstance(statement, nodes.Store):
                total = fresh(f"{statement.tile.parameter}_sum")
                started.append(assignment(total, self._zeros(statement.tile.parameter)))
                target = ast.Name(id=total, ctx=ast.Store())
                inner.append(ast.AugAssign(target, ast.Add(), statement.value))
                ended.append(nodes.Store(tile=statement.tile, value=name(total)))
            else:
                inner.append(statement)
        for statement in inner:
            self._select(statement, [variables[dim] for dim in self.absent])
        started += [statement for statement in inner if self._is_fixed(statement)]
        inner = [statement for statement in inner if not self._is_fixed(statement)]
        for dim in reversed(self.absent):
            size = self.arrangement.grid[dim]
            if self.parts is not None and dim == self.absent[0]:
                size = self.steps(lambda size: size)
            count = nodes.SymbolValue(symbol=size)
            rounds = rules.template("range(n)", n=count)
            assert isinstance(rounds, ast.Call)
            rounds.func = name("range")
            inner = [ast.For(ast.Name(variables[dim], ast.Store()), rounds, inner, [])]
        return [*started, *inner, *ended]

    def _is_selected(self, tile: nodes.TileRef) -> bool:
        repeated = self.repeated.get(tile.parameter, ())
        return any(place not in repeated for place in range(len(tile.indices)))

    def _without_rounds(self, body: list[ast.stmt], gradients: Sequence[str]) -> list[ast.stmt]:
        """The statements of one round of the loop that selects the gradients' tiles."""
        loops = [
            statement
            for statement in body
            if isinstance(statement, ast.For)
            and any(isinstance(n, nodes.Store) and n.tile.indices for n in nodes.walk(statement))
        ]
        if not loops:
            if any(self._is_selected(s.tile) for s in body if isinstance(s, nodes.Store)):
                raise ExchangeError(
                    "its tiles are selected by numbers, and programs share them: select each by the round of a loop "
                    "over all of them"
                )
            return body
        if len(loops) > 1 or any(isinstance(s, nodes.Store) for s in body):
            raise ExchangeError("its tiles are read in several loops, or in and out of one")
        (loop,) = loops
        _check_no_loop_stores(loop.body)
        assert isinstance(loop.target, ast.Name)
        variable = loop.target.id
        outside = [statement for statement in body if statement is not loop]
        for statement in outside:
            if isinstance(statement, ast.For):
                raise ExchangeError(
                    "what a loop sums is needed again for every round; store it to an output that has the "
                    "element type of an input that has a gradient"
                )
        flat = [*outside, *loop.body]
        for statement in flat:
            if not isinstance(statement, ast.For):
                self._promote(statement, variable)
        counted = _counted(loop.iter, outside)
        self._count(counted, variable, gradients)
        for statement in flat:
            if variable in names_read(statement):
                raise ExchangeError(
                    "the number of a loop's round is a value, and not only an index"
                )
        return flat

    def _promote(self, statement: ast.stmt, variable: str) -> None:
        """Takes a loop's round out of the tiles' indices, and notes where it stood."""
        for node in nodes.walk(statement):
            if not isinstance(node, nodes.TileRef | nodes.ElementLoad):
                continue
            levels = self.parameters[node.parameter].middle_levels
            places = [(d, i) for d, level in enumerate(levels) for i in range(len(level))]
            known = self.selected.setdefault(node.parameter, {})
            at = [
                place
                for place, index in zip(places, node.indices)
                if isinstance(index, ast.Name) and index.id == variable
            ]
            if len(at) > 1 or (at and known.setdefault(variable, at[0]) != at[0]):
                raise ExchangeError(f"`{node.parameter}` is selected from in several ways")
            if not at and places:
                known.setdefault(variable, (-1, -1))
            if known.get(variable, (-1, -1)) != (at[0] if at else (-1, -1)):
                raise ExchangeError(f"`{node.parameter}` is selected from in several ways")
            node.indices = [index for place, index in zip(places, node.indices) if place not in at]

    def _count(self, counted: Expression | None, variable: str, gradients: Sequence[str]) -> None:
        """Notes how many rounds there are, of which each is to have a program."""
        selecting = [
            self.parameters[each].middle_levels[level][dim]
            for each, known in self.selected.items()
            for level, dim in (known.get(variable, (-1, -1)),)
            if level >= 0
        ]
        for gradient in gradients:
            level, dim = self.selected[gradient].get(variable, (-1, -1))
            if level < 0:
                raise ExchangeError("its tiles are not selected by the round of a loop")
            size = self.parameters[gradient].middle_levels[level][dim]
            # Of what another tensor has no tile the gradient is 0.
            if counted is None or not any(self._is_same(counted, each) for each in selecting):
                raise ExchangeError("not every tile is known to be read by a round of the loop")
            self.rounds.setdefault(variable, size)

    def _is_same(self, one: Expression, other: Expression) -> bool:
        pair = (as_symbol(each).substitute(self.equal) for each in (one, other))
        return difference(*pair) == 0

    def _select(self, statement: ast.stmt, variables: Sequence[str]) -> None:
        for node in nodes.walk(statement):
            if (
                isinstance(node, nodes.TileRef | nodes.ElementLoad)
                and node.parameter not in self.fixed
            ):
                node.indices = [*(name(each) for each in variables), *node.indices]

    def _is_fixed(self, statement: ast.stmt) -> bool:
        """Whether a statement loads a tile that is the same in every round."""
        value = getattr(statement, "value", None)
        return (
            isinstance(statement, ast.Assign)
            and isinstance(value, nodes.Load)
            and value.tile.parameter in self.fixed
            and not any(map(names_read, value.tile.indices))
        )

    def _zeros(self, gradient: str) -> ast.expr:
        shape = self.parameters[gradient].tile_shape
        sizes = ast.Tuple([nodes.SymbolValue(symbol=size) for size in shape], ast.Load())
        return rules.template("full(s, 0.0, dtype=t)", s=sizes, t=SumType())

    # Tensors.

    def arranged(self, tensor: Tensor, own: str, sizes: Any, is_made: bool) -> Tensor:
        """A tensor, arranged anew.

        Args:
            own: its name in the statements.
            sizes: what stands for sizes.
            is_made: whether it is a gradient that is stored to, which needs no loop.
        """
        places = self.arrangement.places[self.parameters[own].name]
        if places is None:
            raise ExchangeError("which dimensions of the grid it has is known only in a call")
        grid = self.arrangement.grid
        of_grid = {place: dim for dim, place in enumerate(places) if place is not None}
        selected = self.selected.get(own, {})
        if own in self.fixed:
            whole = [
                [(depth, dim) for dim in range(level.ndim)]
                for depth, level in enumerate(tensor.levels)
            ]
            return regrouped(tensor, [[self.count_of_parts(sizes)], *whole[1:]])
        outer: list[Any] = []
        for key in self.order:
            if isinstance(key, int):
                outer.append((0, of_grid[key]) if key in of_grid else sizes(grid[key]))
            else:
                level, dim = selected.get(key, (-1, -1))
                outer.append((level + 1, dim) if level >= 0 else sizes(self.rounds[key]))
        looped: list[Any] = []
        if not is_made:
            looped = [
                (0, of_grid[dim]) if dim in of_grid else sizes(grid[dim]) for dim in self.absent
            ]
        taken = {place for place in selected.values() if place[0] >= 0}
        rest = [
            [(depth, dim) for dim in range(level.ndim) if (depth - 1, dim) not in taken]
            for depth, level in enumerate(tensor.levels)
            if depth > 0
        ]
        middle, tile = [level for level in rest[:-1] if level], rest[-1] if rest else []
        steps = self.steps(sizes) if looped and self.parts is not None else None
        return regrouped(tensor, [outer, *([looped] if looped else []), *middle, tile], steps)


def regrouped(
    tensor: Tensor, levels: Sequence[Sequence[Any]], steps: Expression | None = None
) -> Tensor:
    """A tensor's dimensions in other levels.

    Args:
        levels: outermost first, for each dimension the level and the dimension that it is now, or a
            size that it is repeated to. Dimensions that are not among them have size 1.
        steps: of the second level's first dimension so many are taken at once; how often is one more
            dimension of the first level.
    """
    shapes = [level.ndim for level in tensor.levels]
    flat = {
        (depth, dim): sum(shapes[:depth]) + dim
        for depth, count in enumerate(shapes)
        for dim in range(count)
    }
    entries = [entry for level in levels for entry in level]
    wanted = [flat[entry] for entry in entries if isinstance(entry, tuple)]
    others = [place for place in flat.values() if place not in wanted]
    result = tensor.ravel() if len(shapes) > 1 else tensor
    result = result.permute((*wanted, *others))
    if others:
        result = result.squeeze(tuple(range(len(wanted), len(wanted) + len(others))))
    for place, entry in enumerate(entries):
        if not isinstance(entry, tuple):
            result = result.unsqueeze(place)
            result = result.expand(tuple(entry if p == place else -1 for p in range(result.ndim)))
    return _split(result, [len(level) for level in levels], steps)


def _check_no_loop_stores(body: Sequence[ast.stmt]) -> None:
    loops = (statement for statement in body if isinstance(statement, ast.For))
    if any(isinstance(node, nodes.Store) for loop in loops for node in nodes.walk(loop)):
        raise ExchangeError("its tiles are read in a loop within a loop")


def _counted(iterable: ast.expr, before: Sequence[ast.stmt]) -> Expression | None:
    """How many rounds a loop from 0 on has; None where that is no size."""
    if not isinstance(iterable, ast.Call) or len(iterable.args) != 1:
        return None
    (count,) = iterable.args
    for statement in before:
        if isinstance(statement, ast.Assign) and isinstance(count, ast.Name):
            if [getattr(each, "id", "") for each in statement.targets] == [count.id]:
                count = statement.value
    if isinstance(count, ast.Constant) and isinstance(count.value, int):
        return count.value
    return count.symbol if isinstance(count, nodes.SymbolValue) else None


def _split(tensor: Tensor, counts: Sequence[int], steps: Expression | None = None) -> Tensor:
    """One level as several, of so many dimensions each."""
    own, rest = counts[0], sum(counts[1:])
    if len(counts) == 1:
        return tensor
    first = () if steps is None else (steps,)
    result = tensor.tile((1,) * own + first + (-1,) * (rest - len(first)))
    if rest > len(first):
        result = result.squeeze(tuple(range(own + len(first), own + rest)))
    if own:
        result.dtype = result.dtype.squeeze(tuple(range(own)))
    result.dtype = _split(result.dtype, counts[1:])
    return result
