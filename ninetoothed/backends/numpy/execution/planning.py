"""From a kernel and a kind of call to a plan: sizes put in, meta symbols chosen."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from math import log2, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ninetoothed.backends.numpy.execution import checking
from ninetoothed.backends.numpy.execution.addressing import Addressing, Sequences, Shape, shown
from ninetoothed.backends.numpy.execution.execute import Launch
from ninetoothed.backends.numpy.execution.tensors import Tensor, TensorPlan
from ninetoothed.backends.numpy.values.memory import flat_view
from ninetoothed.backends.numpy.values.tile import Tile
from ninetoothed.errors import ArgumentError, ArrangementError
from ninetoothed.kernels.assertions import check_assertions
from ninetoothed.kernels.call_sizes import explained
from ninetoothed.kernels.meetings.agreement import Refusal, check_meetings
from ninetoothed.kernels.reach import Asked, far_offsets
from ninetoothed.kernels.steps import refused_steps
from ninetoothed.kernels.verified_bounds import check_tile_sizes
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.program.written import outputs
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Expression, Symbol, evaluated
from ninetoothed.symbols.operators import next_power_of_2
from ninetoothed.tuning.space import Config, fitting, values_of

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.backends.numpy.execution.comparing import Comparison, Second
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.tensors.arrange import Parameter

#: The largest value of a meta symbol where it is the only one, and where there are several.
_LARGEST_ALONE, _LARGEST_TOGETHER = 1024, 128

#: No tile may have more elements, as in Triton.
_LARGEST_TILE = 2**20

#: The most elements of a tile that a CPU is to hold: their positions alone are 2 GB.
_MOST_HELD = 2**28


@dataclass(frozen=True)
class NumpyPlan:
    """A kernel with everything known but the addresses and the scalars.

    Attributes:
        kernel, call: the kernel, and a call of this kind.
        grid: the number of programs along each dimension.
        environment: the value of each size, stride, constant and meta symbol.
        configuration: the values chosen for meta symbols, by name.
        tensors: by the name of the parameter.
        constants: the values of constant and constexpr parameters, by name.
        scalars: the element types of scalars by name.
    """

    kernel: Definition
    call: Call
    grid: Shape
    environment: Mapping[Symbol, int]
    configuration: Mapping[str, int]
    tensors: Mapping[str, TensorPlan]
    constants: Mapping[str, Any]
    scalars: Mapping[str, DType]
    refusals: Sequence[Refusal]

    def run(self, stream: int, *values: Any) -> None:
        """Runs the kernel.

        Args:
            stream: not used; the CPU has none.
            values: in the order of the parameters: a pointer for a tensor (for a jagged one that
                of its values and that of its offsets), a number for a scalar.
        """
        is_wide = bool(self.call.of_dtype(dtypes.float64))
        launch = Launch(self.kernel.name, self.kernel.frozen, self.grid, self._value_of, is_wide)
        recorder = None
        if checking.is_on():
            recorder = checking.Recorder(launch, outputs(self.kernel.program))
        rest = iter(values)
        arguments: list[Any] = []
        tensors: list[Tensor] = []
        for parameter in self.kernel.parameters:
            if parameter.kind == "tensor":
                plan = self.tensors[parameter.name]
                pointer, sequences = next(rest), _sequences(plan, rest)
                tensor = Tensor(plan, pointer, sequences, launch.running, recorder is not None)
                tensor.memory.observers.append(launch.observe)
                if recorder is not None:
                    recorder.add(tensor.memory)
                arguments.append(tensor)
                tensors.append(tensor)
            elif parameter.kind == "scalar":
                with np.errstate(over="ignore"):
                    arguments.append(Tile.of(next(rest), self.scalars[parameter.name]))
            else:
                arguments.append(self.constants[parameter.name])
        second = checking.second()
        comparison = None if second is None else self._compared(second, launch, tensors, values)
        with explained(self.kernel, self.environment):
            launch.run(arguments)
        if recorder is not None:
            recorder.finish()
        if comparison is not None:
            comparison.finish(values, [place for place, _ in self._addresses()])

    def _compared(
        self, second: Second, launch: Launch, tensors: Sequence[Tensor], values: Sequence[Any]
    ) -> Comparison:
        from ninetoothed.backends.numpy.execution.comparing import Comparison

        offsets = [(values[place], size) for place, size in self._addresses() if size]
        memories = [tensor.memory for tensor in tensors]
        comparison = Comparison(second, self.kernel, self.call, launch, memories, offsets)
        for memory in memories:
            memory.observers.append(comparison.observe)
        return comparison

    def _addresses(self) -> Iterator[tuple[int, int]]:
        """The places of addresses among the values, with the sizes in bytes of where sequences begin."""
        place = 0
        for parameter in self.kernel.parameters:
            if parameter.kind == "tensor":
                plan = self.tensors[parameter.name]
                yield place, 0
                if plan.jagged_dim is not None:
                    place += 1
                    yield place, 8 * (plan.shape[0] + 1)
            place += parameter.kind in ("tensor", "scalar")

    def _value_of(self, symbol: Symbol) -> int:
        return evaluated(symbol, self.environment)


def plan_for(kernel: Definition, call: Call) -> NumpyPlan:
    """The plan of ``kernel`` for calls like ``call``."""
    known = kernel.environment(call)
    chosen = fitting_meta(kernel, known)
    environment = known | chosen
    grid = kernel.verified_grid(environment)
    _check_rank(kernel, "the grid", len(grid), 64)
    if prod(grid) >= 1 << 31:
        raise ArgumentError(
            f"kernel `{kernel.name}` would have {prod(grid)} programs, grid {grid}; at most {(1 << 31) - 1} "
            "run. Use larger tiles."
        )
    check_tile_sizes(kernel, environment)
    check_assertions(kernel, environment, grid)
    refusals = check_meetings(kernel, call, environment, grid)
    refusals += refused_steps(kernel, environment, grid)
    far = far_offsets(kernel, environment, grid)
    tensors = {
        parameter.name: _tensor_plan(kernel, parameter, call, environment, far)
        for parameter in kernel.tensor_parameters
    }
    constants = {
        parameter.name: kernel.values.get(parameter.name, parameter.value)
        for parameter in kernel.parameters
        if parameter.kind in ("constexpr", "constant")
    }
    return NumpyPlan(
        kernel,
        call,
        grid,
        environment,
        {kernel.names[symbol]: value for symbol, value in chosen.items()},
        tensors,
        constants,
        call.scalars,
        refusals,
    )


def fitting_meta(kernel: Definition, known: Mapping[Symbol, int]) -> dict[Symbol, int]:
    """Values for meta symbols as `choose_meta` has them, or the nearest that fit the call.

    Raises:
        ArrangementError: the sizes do not fit the arrangement, whatever these are.
    """
    levels = [parameter.levels for parameter in kernel.arranged_parameters]
    wanted = choose_meta(kernel.meta_symbols, levels, known)
    if not wanted:
        return wanted
    with contextlib.suppress(ArrangementError):
        kernel.verified_grid({**known, **wanted})
        return wanted

    def values(config: Config) -> dict[Symbol, int]:
        return {symbol: config[kernel.names[symbol]] for symbol in wanted}

    def distance(config: Config) -> float:
        return sum(abs(log2(value / wanted[s])) for s, value in values(config).items())

    configs = fitting(
        values_of(kernel), lambda config: kernel.verified_grid({**known, **values(config)})
    )
    return values(min(configs, key=distance))


def _tensor_plan(
    kernel: Definition,
    parameter: Parameter,
    call: Call,
    environment: Mapping[Symbol, int],
    far: Set[Asked],
) -> TensorPlan:
    argument = call.arguments[parameter.name]
    sizes = tuple(int(size) for size in argument.shape)
    _check_tile(kernel, parameter, environment)
    return TensorPlan(
        parameter.name,
        Addressing(parameter, kernel.arrangement.accesses[parameter.name], environment),
        sizes,
        tuple(map(shown, parameter.source.shape, sizes)),
        tuple(int(stride) for stride in argument.strides),
        argument.dtype,
        parameter.source.other,
        parameter.source.jagged_dim,
        parameter.is_padded,
        parameter.name in kernel.program.viewed,
        frozenset(dim for name, dim in far if name == parameter.name),
    )


def _check_tile(
    kernel: Definition, parameter: Parameter, environment: Mapping[Symbol, int]
) -> None:
    """`ArgumentError` where no memory would hold a tile, before any is asked for, or no array of NumPy's."""
    tile = tuple(evaluated(size, environment) for size in parameter.tile_shape)
    _check_rank(kernel, f"the tile of `{parameter.name}`", len(tile), 32)
    count = prod(map(next_power_of_2, tile))
    if count > _MOST_HELD:
        raise ArgumentError(
            f"kernel `{kernel.name}`: the tile of `{parameter.name}` is {tile}, {count} elements when padded "
            f"to powers of two; on a CPU a tile has at most {_MOST_HELD}. Tile the dimension and go through "
            "it in a loop, or use a smaller block size."
        )


def _check_rank(kernel: Definition, what: str, rank: int, most: int) -> None:
    """`ArgumentError` where NumPy has no arrays of so many dimensions."""
    if rank > most:
        raise ArgumentError(
            f"kernel `{kernel.name}`: {what} has {rank} dimensions; on a CPU, with NumPy, {most} at most. "
            "Flatten some."
        )


def _sequences(plan: TensorPlan, values: Iterator[Any]) -> Sequences | None:
    if plan.jagged_dim is None:
        return None
    pointer = next(values)
    # What is not touched need have no sequences.
    return Sequences(flat_view(pointer, plan.shape[0] + 1, dtypes.int64)) if pointer else None


def choose_meta(
    symbols: Sequence[Symbol],
    levels: Iterable[tuple[tuple[Expression, ...], ...]],
    known: Mapping[Symbol, int],
) -> dict[Symbol, int]:
    """Values for meta symbols that make few programs, and no tile larger than what it covers."""
    levels = list(levels)
    largest = _LARGEST_ALONE if len(symbols) == 1 else _LARGEST_TOGETHER
    chosen = {symbol: _closest(symbol, largest) for symbol in symbols}

    def sizes(which: slice) -> list[list[int]]:
        environment = {**known, **chosen}
        return [
            [evaluated(size, environment) for level in shapes[which] for size in level]
            for shapes in levels
        ]

    for symbol in symbols:
        # A smaller tile that covers as much leaves the numbers of tiles as they are.
        counts = sizes(slice(None, -1))
        while (smaller := _closest(symbol, chosen[symbol] // 2)) < chosen[symbol]:
            before = chosen[symbol]
            chosen[symbol] = smaller
            if sizes(slice(None, -1)) != counts:
                chosen[symbol] = before
                break
    while any(prod(map(next_power_of_2, tile)) > _LARGEST_TILE for tile in sizes(slice(-1, None))):
        shrinking = [s for s in symbols if _closest(s, chosen[s] // 2) < chosen[s]]
        if not shrinking:
            break
        symbol = max(shrinking, key=lambda s: chosen[s])
        chosen[symbol] = _closest(symbol, chosen[symbol] // 2)
    return chosen


def _closest(symbol: Symbol, wanted: int) -> int:
    """The value of a meta symbol that comes nearest to ``wanted`` within its bounds."""
    low, high = symbol.lower_bound or 1, symbol.upper_bound or wanted
    value = max(low, min(wanted, high))
    if not symbol.power_of_two:
        return value
    power = next_power_of_2(value)
    return power if power <= high else power // 2
