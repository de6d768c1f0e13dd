"""A program in Gluon whose loop's tiles come through rings of buffers that it fills itself.

It is made of the same lowered program that Triton is printed from (`tma_pipeline` offers it), where
`legality` says that it can be.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from ninetoothed.backends.triton.ir.lowered import Lowered, Pipeline
from ninetoothed.backends.triton.ir.nodes import DescriptorStore, MarkedLoop
from ninetoothed.backends.triton.ir.products import Needs
from ninetoothed.backends.triton.printers.emission import Emission
from ninetoothed.backends.triton.printers.function_body import FunctionBody, function_body_of
from ninetoothed.backends.triton.printers.gluon import rounds
from ninetoothed.backends.triton.printers.gluon.buffers import Buffers, allocated
from ninetoothed.backends.triton.printers.gluon.forms import (
    Form,
    NotPossibleError,
    Tile,
    form_of,
    without_unused,
)
from ninetoothed.backends.triton.printers.gluon.layouts import Layouts
from ninetoothed.backends.triton.printers.gluon.legality import Legality, Multiplication, Operand
from ninetoothed.backends.triton.printers.gluon.rounds import Step
from ninetoothed.backends.triton.printers.gluon.sizes import Sizes, Types
from ninetoothed.backends.triton.printers.gluon.trees import called, expression, statement
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.program.effects import names_assigned, names_read
from ninetoothed.program.nodes import at, clone
from ninetoothed.program.types import type_of
from ninetoothed.records import dataclass

#: What the text needs.
IMPORTS = """\
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)"""


@dataclass(frozen=True)
class Understood:
    """A program that can be written.

    Attributes:
        multiplications: what its statements multiply.
        needs: what must hold of a call.
    """

    form: Form
    sizes: Sizes
    multiplications: Mapping[ast.stmt, Multiplication]
    needs: Needs


def understood(body: FunctionBody) -> Understood:
    """A lowered program, its values typed.

    Raises:
        NotPossibleError: it cannot be written in Gluon.
    """
    emission, statements = body.emission, [*body.prologue, *body.statements]
    program = emission.lowered.program
    names = [parameter.name for parameter in emission.used.values()]
    Types(program.parameters, names).block(statements)
    form = form_of(statements, lambda name: program.parameter(name).tile_shape, emission.fresh)
    sizes = Sizes(emission.width)
    legality = Legality(form, sizes)
    return Understood(form, sizes, legality.multiplications, legality.needs())


def written(program: Understood, pipeline: Pipeline, emission: Emission) -> list[ast.stmt]:
    """The statements of a kernel, in Gluon; what they call of `gluon_library` is noted."""
    translation = Translation(program, pipeline, emission.fresh)
    statements = translation.statements()
    emission.library = {function: function for function in translation.library}
    return statements


class Translation:
    """The statements of a kernel, in Gluon.

    Args:
        program: what it does.
        pipeline: what was decided about it.
        fresh: gives a name that nothing has.

    Attributes:
        library: the functions of `gluon_library` that are called, once it is written.
    """

    def __init__(
        self, program: Understood, pipeline: Pipeline, fresh: Callable[[str], str]
    ) -> None:
        self._form, self._sizes = program.form, program.sizes
        self._multiplications = program.multiplications
        self._is_one_loop = pipeline.is_one_loop
        self._fresh = fresh
        self._layouts = Layouts(self._sizes, program.needs, fresh)
        self._buffers = Buffers(self._form, pipeline.num_buffers, self._layouts, fresh)
        #: Of what is stored by descriptor, the name of the memory that it is stored from.
        self._results: dict[str, str] = {}
        self.library = self._layouts.library
        self._start()

    def _start(self) -> None:
        self._waited: set[str] = set()
        #: Products under way, oldest first, and the tiles whose buffers are free once they are done.
        self._pending: list[tuple[str, list[Tile]]] = []
        self._stores = False

    def statements(self) -> list[ast.stmt]:
        """What the kernel does."""
        body: list[ast.stmt] = []

        def write() -> None:
            self._start()
            body[:] = self._body()

        self._layouts.settle(write)
        write()
        return [*self._layouts.constants(), *self._buffers.allocations(), *without_unused(body)]

    # What is done.

    def _body(self) -> list[ast.stmt]:
        result = self._straight(self._form.before)
        result += self._buffers.asked()
        known = {self._form.index, *names_assigned(result)}
        steps = self._rounds()
        after = self._straight(self._form.after)
        needed = {name for each in after for name in names_read(each)}
        result += [*self._loops(steps, known, needed), *after]
        if self._stores:
            result.append(statement("tma.store_wait(0)"))
        return result

    def _straight(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements outside the loop."""
        return [step.other for each in statements for step in self._statement(each, [])]

    def _loops(self, steps: Sequence[Step], known: set[str], needed: set[str]) -> list[ast.stmt]:
        """The loop; two of them where its first rounds are better written on their own."""
        end = self._layouts.value(clone(self._form.end))
        every = [step.other for step in steps]
        if all(step.is_common for step in steps):
            return [self._over([end], every)]
        loop = self._form.loop
        assert isinstance(loop, MarkedLoop)
        middle = ast.Name(loop.middle, ast.Load())
        if self._is_one_loop:
            is_other = expression("i >= middle", i=self._form.index, middle=middle)
            one = rounds.in_one(steps, is_other, known, needed)
            if one is not None:
                return [self._over([end], one)]
        first, others = rounds.in_two(steps, needed)
        return [self._over([middle], first), self._over([middle, end], others)]

    def _over(self, bounds: list[ast.expr], body: list[ast.stmt]) -> ast.stmt:
        """The loop over a range."""
        numbers = ast.Call(ast.Name("range", ast.Load()), bounds, [])
        index = ast.Name(self._form.index, ast.Store())
        return at(ast.For(index, numbers, body, []), self._form.loop)

    def _rounds(self) -> list[Step]:
        """What each round does."""
        body = self._form.body
        self._layouts.change({self._form.index, *names_assigned(body)})
        self._waited.clear()
        steps = rounds.common(self._buffers.begun())
        for number, each in enumerate(body):
            steps += self._statement(each, body[number + 1 :])
        if self._pending:
            steps += rounds.common(self._finish(len(self._pending) - 1))
        return steps

    def _statement(self, statement: ast.stmt, later: Sequence[ast.stmt]) -> list[Step]:
        touched = names_read(statement) | names_assigned([statement])
        done = [n for n, (name, _) in enumerate(self._pending) if name in touched]
        finished = self._finish(done[-1]) if done else []
        tile, multiplied = self._form.tiles.get(statement), self._multiplications.get(statement)
        if tile is not None:
            steps = rounds.common([self._view(tile)])
        elif multiplied is not None:
            steps = rounds.common(self._multiply(multiplied, later))
        elif isinstance(statement, DescriptorStore):
            steps = rounds.common(self._result(statement))
        elif isinstance(statement, ast.Expr):
            assert isinstance(statement.value, ast.Call)
            steps = rounds.common([ast.Expr(self._layouts.store(statement.value))])
        else:
            steps = self._assignment(statement)
        steps = [*rounds.common(finished), *steps]
        for step in steps:
            for each in (step.first, step.other):
                if each is not None:
                    at(each, statement)
        return steps

    def _assignment(self, statement: ast.stmt) -> list[Step]:
        first, other = (
            None if _is_nothing(each) else each for each in self._layouts.assignment(statement)
        )
        return [] if other is None else [Step(first, other)]

    # Tiles in shared memory.

    def _view(self, tile: Tile) -> ast.stmt:
        """The name of a tile, given to its buffer."""
        tree = self._buffers.buffer(tile)
        for step in tile.steps:
            method = ast.Attribute(tree, called(step), ast.Load())
            tree = ast.Call(method, [clone(step.args[1])], [])
        return ast.Assign([ast.Name(tile.name, ast.Store())], tree)

    # Products.

    def _multiply(self, multiplied: Multiplication, later: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Begins a product."""
        dot, left, product = multiplied.dot, multiplied.left, multiplied.product
        self._layouts.product(dot.target)
        operands = [each for each in (left, multiplied.right) if each is not None]
        tiles = {each.tile.buffers: each.tile for each in operands if each.tile.is_streamed}
        waited = [tile for tile in tiles.values() if tile.buffers not in self._waited]
        result = [each for tile in waited for each in self._buffers.wait(tile)]
        self._waited |= tiles.keys()
        template = "target = warpgroup_mma(left, right, start, is_async=True)"
        parts: dict[str, ast.expr | str] = {
            "left": _tree(left) if left else self._layouts.operand(dot.left, product.columns),
            "right": _tree(multiplied.right),
            "start": dot.target,
            "target": dot.target,
        }
        if not dot.is_added:
            template = "target = warpgroup_mma(left, right, start, use_acc=False, is_async=True)"
            parts["start"] = self._layouts.nothing(product.rows, product.columns)
        result.append(statement(template, **parts))
        read = {name for each in later for name in names_read(each)}
        free = [tile for tile in tiles.values() if tile.name not in read]
        self._pending.append((dot.target, free))
        return result

    def _finish(self, last: int) -> list[ast.stmt]:
        """Waits for products under way, up to one of them, and asks for what comes next."""
        done, self._pending = self._pending[: last + 1], self._pending[last + 1 :]
        names = list(dict.fromkeys(name for name, _ in done))
        values = ast.List([ast.Name(name, ast.Load()) for name in names], ast.Load())
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        waited = expression(
            "warpgroup_mma_wait(count, deps=values)", count=len(self._pending), values=values
        )
        several = ast.Tuple(targets, ast.Store()) if len(names) > 1 else targets[0]
        result: list[ast.stmt] = [ast.Assign([several], waited)]
        return [*result, *(self._buffers.fetch(tile) for _, tiles in done for tile in tiles)]

    # What is stored.

    def _result(self, stored: DescriptorStore) -> list[ast.stmt]:
        """Stores by descriptor."""
        self._stores = True
        parameter, value = stored.parameter, stored.value
        if parameter not in self._results:
            self._results[parameter] = self._fresh(f"{parameter}_buffer")
        buffer: ast.expr = ast.Name(self._results[parameter], ast.Load())
        viewed = buffer
        if called(value) == "reshape":
            value = value.args[0]  # type: ignore[attr-defined]
            shape = [*map(self._sizes.tree, type_of(value).shape or ())]
            viewed = expression("b.reshape(s)", b=buffer, s=ast.Tuple(shape, ast.Load()))
        corner = [self._layouts.value(each) for each in stored.corner.elts]
        parts = {"buffer": buffer, "descriptor": stored.descriptor}
        whole = expression("descriptor.block_type.shape", **parts)
        # Made this late it lies where the loop's tiles have been.
        return [
            allocated(self._results[parameter], stored.descriptor, whole),
            statement("viewed.store(value)", viewed=viewed, value=self._layouts.value(value)),
            statement("fence_async_shared()"),
            statement(
                "tma.async_copy_shared_to_global(descriptor, place, buffer)",
                place=ast.List(corner, ast.Load()),
                **parts,
            ),
        ]


def _tree(operand: Operand) -> ast.expr:
    tile = ast.Name(operand.tile.name, ast.Load())
    return expression("tile.permute((1, 0))", tile=tile) if operand.is_turned else tile


def _is_nothing(assignment: ast.Assign) -> bool:
    """Whether a name is given what it has."""
    value = assignment.value
    return isinstance(value, ast.Name) and value.id in names_assigned([assignment])


@analysis
def needs_of(kernel: Definition, lowered: Lowered) -> Needs | str:
    """What a call must fulfil for programs in Gluon; the reason where there can be none."""
    try:
        return understood(function_body_of(lowered)).needs
    except NotPossibleError as reason:
        return str(reason)
