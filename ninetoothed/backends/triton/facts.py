"""What one configuration of a kernel moves and computes, read off its Program and its accesses."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.specialize import environment_of
from ninetoothed.costs import DeviceLimits, Facts, dot_registers
from ninetoothed.expr import Symbol, as_symbol
from ninetoothed.program import LanguageRef, Load, Store, SymbolValue, TileRef

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.kernel import Kernel
    from ninetoothed.tuning import Config

#: Of a loop whose length is only known when it runs.
_UNKNOWN_TRIPS = 8


def facts_of(kernel: Kernel, call: Call, config: Config, limits: DeviceLimits) -> Facts:
    """The facts of a configuration, for `costs.estimate`."""
    counter = _Counter(kernel, call, config)
    counter.block(kernel.optimized.body, 1)
    threads = config.num_warps * limits.warp_size
    tile_registers = counter.largest_tile * 2 / threads + 24
    registers = max(tile_registers, *(dot_registers(m, n, threads) for m, n in counter.products), 0)
    return Facts(
        limits,
        programs=counter.programs,
        bytes_moved=counter.bytes_moved,
        flops=counter.flops,
        dot_flops=counter.dot_flops,
        dot_bits=counter.dot_bits,
        distinct_bytes=counter.distinct_bytes,
        threads=threads,
        registers=registers,
        shared_bytes=counter.operand_bytes * config.num_stages,
        bytes_in_flight=counter.bytes_at_once * (config.num_stages if counter.products else 1),
    )


class _Counter:
    def __init__(self, kernel: Kernel, call: Call, config: Config) -> None:
        self._environment: dict[Symbol, int] = environment_of(kernel, call, config)
        self._call = call
        self._tiles: dict[str, tuple[int, ...]] = {}
        for parameter in kernel.tensor_parameters:
            self._tiles[parameter.name] = tuple(
                1 << max(self._value(size) - 1, 0).bit_length() for size in parameter.tile_shape
            )
        self._held: dict[str, tuple[str, ...]] = {}
        self.programs = math.prod(max(self._value(size), 0) for size in kernel.grid)
        self.bytes_moved = 0.0
        self.bytes_at_once = 0.0
        self.flops = 0.0
        self.dot_flops = 0.0
        self.dot_bits = 16
        self.operand_bytes = 0
        self.products: list[tuple[int, int]] = []
        self.largest_tile = max((math.prod(tile) for tile in self._tiles.values()), default=1)
        self.distinct_bytes = float(
            sum(math.prod(a.shape) * a.dtype.itemsize for a in call.arguments.values())
        )

    def _value(self, expression: object) -> int:
        return int(as_symbol(expression).evaluate(self._environment))

    def block(self, statements: list[ast.stmt], times: float) -> None:
        for statement in statements:
            if isinstance(statement, (ast.For, ast.While)):
                self.block(statement.body, times * self._trips(statement))
            elif isinstance(statement, ast.If):
                self.block(statement.body, times)
                self.block(statement.orelse, times)
            else:
                self._statement(statement, times)

    def _trips(self, loop: ast.For | ast.While) -> int:
        if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and loop.iter.args:
            last = loop.iter.args[min(1, len(loop.iter.args) - 1)]
            if isinstance(last, SymbolValue):
                return max(self._value(last.symbol), 0)
            if isinstance(last, ast.Constant) and isinstance(last.value, int):
                return last.value
        return _UNKNOWN_TRIPS

    def _statement(self, statement: ast.stmt, times: float) -> None:
        for node in ast.walk(statement):
            if isinstance(node, (Load, Store)):
                moved = self._bytes(node.tile.parameter)
                self.bytes_moved += times * moved
                if isinstance(node, Load):
                    self.bytes_at_once = max(self.bytes_at_once, moved)
            elif isinstance(node, ast.Call) and isinstance(node.func, LanguageRef):
                if node.func.name == "dot":
                    self._product(node, times)
                else:
                    self.flops += times * self.largest_tile
            elif isinstance(node, ast.BinOp):
                self.flops += times * self.largest_tile
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            self._held[statement.targets[0].id] = self._tiles_in(statement.value)

    def _bytes(self, parameter: str) -> int:
        dtype = self._call.arguments[parameter].dtype
        return math.prod(self._tiles[parameter]) * dtype.itemsize

    def _tiles_in(self, expression: ast.expr) -> tuple[str, ...]:
        """The parameters whose tiles an expression is made of."""
        found: list[str] = []
        for node in ast.walk(expression):
            if isinstance(node, TileRef):
                found.append(node.parameter)
            elif isinstance(node, ast.Name):
                found += self._held.get(node.id, ())
        return tuple(dict.fromkeys(found))

    def _product(self, call: ast.Call, times: float) -> None:
        operands = [self._tiles_in(argument)[:1] for argument in call.args[:2]]
        shapes = [
            self._tiles[names[0]] for names in operands if names and len(self._tiles[names[0]]) > 1
        ]
        names = [name for each in operands for name in each]
        if not shapes:
            return
        left, right = shapes[0], shapes[-1]
        rows, inner = left[-2], left[-1]
        columns = (
            math.prod(right[-2:]) // inner if math.prod(right[-2:]) % inner == 0 else right[-1]
        )
        self.dot_flops += times * 2 * rows * inner * max(columns, 1)
        self.products.append((rows, max(columns, 1)))
        self.dot_bits = max(self._call.arguments[name].dtype.bits for name in names)
        self.operand_bytes += sum(self._bytes(name) for name in dict.fromkeys(names))
