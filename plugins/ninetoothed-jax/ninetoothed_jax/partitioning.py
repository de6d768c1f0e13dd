"""Operators in computations that XLA divides among devices, by the rules that their kernels' accesses give.

Without a rule the partitioner has every device gather all of a custom call's operands. With one each device
computes what it has a part of (`ninetoothed.kernels.sharding`): a dimension that a dimension of the grid goes
through stays divided, one that a loop sums over gives summands, which are added up; all else is gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

from ninetoothed.kernels.operator import OperatorDefinition
from ninetoothed.kernels.sharding import Sharding, operator_shardings


def partitioned(
    definition: OperatorDefinition, run: Callable[..., Any], names: Sequence[str]
) -> Callable[..., Any]:
    """The function ``run`` of arrays, with the operator's rules.

    Args:
        names: what the operator calls the arrays.
    """
    axes = _apart(operator_shardings(definition))
    if not axes:
        return run
    rules = _Rules(axes, run, names, [output.name for output in definition.outputs])
    function = custom_partitioning(run)
    function.def_partition(
        rules.partition,
        infer_sharding_from_operands=lambda mesh, given, results: rules.chosen(
            mesh, given, results
        )[1],
        sharding_rule=rules.rule,
    )
    return function  # type: ignore[no-any-return]


def _apart(axes: Sequence[Sharding]) -> list[Sharding]:
    """Those axes that go through no dimension that an earlier one goes through."""
    taken: set[tuple[str, int]] = set()
    found = []
    for axis in axes:
        if taken.isdisjoint(axis.dims.items()):
            taken |= {*axis.dims.items()}
            found.append(axis)
    return found


class _Rules:
    """What the partitioner asks.

    Args:
        axes: along which tensors may be divided.
        names, made: what arrays and results are called.
    """

    def __init__(
        self, axes: Sequence[Sharding], run: Any, names: Sequence[str], made: Sequence[str]
    ) -> None:
        self._axes, self._run, self._names, self._made = axes, run, names, made

    def rule(self, mesh: Any, given: Any, results: Any) -> str:
        """The dimensions by name, those of one axis by the same, in the notation of `jax.custom_partitioning`."""

        def factors(name: str, rank: int) -> str:
            return " ".join(self._factor(name, dim) for dim in range(rank))

        ranks = [len(each.shape) for each in jax.tree.leaves(given)]
        operands = ", ".join(map(factors, self._names, ranks))
        made = [len(each.shape) for each in jax.tree.leaves(results)]
        return f"{operands} -> {', '.join(map(factors, self._made, made))}"

    def _factor(self, name: str, dim: int) -> str:
        for place, axis in enumerate(self._axes):
            if axis.dims.get(name) == dim:
                return f"along{place}"
        return f"whole_{name}_{dim}"

    def partition(self, mesh: Any, given: Any, results: Any) -> tuple[Any, ...]:
        """What a device computes, and how what it takes and gives is divided."""
        arguments, outputs, sums = self.chosen(mesh, given, results)

        def of_part(*arrays: Any) -> Any:
            found = self._run(*arrays)
            parts = found if isinstance(found, tuple) else (found,)
            added = [jax.lax.psum(part, axes) if axes else part for part, axes in zip(parts, sums)]
            return tuple(added) if isinstance(found, tuple) else added[0]

        return mesh, of_part, outputs, arguments

    def chosen(self, mesh: Any, given: Any, results: Any) -> tuple[Any, Any, list[tuple[Any, ...]]]:
        """How arrays and results are divided, and by which of the mesh's axes results are summed."""
        named = [
            *zip(self._names, jax.tree.leaves(given)),
            *zip(self._made, jax.tree.leaves(results)),
        ]
        taken: set[Any] = set()
        by: list[tuple[Any, ...]] = []
        for axis in self._axes:
            found: tuple[Any, ...] = ()
            for name, each in named:
                if name in axis.dims and not found:
                    found = _mesh_axes(each.sharding, axis.dims[name])
            if not taken.isdisjoint(found):
                found = ()
            taken |= {*found}
            by.append(found)

        def sharding(name: str, each: Any) -> NamedSharding:
            entries: list[Any] = [None] * len(each.shape)
            for axes, axis in zip(by, self._axes):
                if axes and name in axis.dims:
                    entries[axis.dims[name]] = axes
            return NamedSharding(mesh, PartitionSpec(*entries))

        divided = [sharding(name, each) for name, each in named]
        sums = [
            tuple(a for axes, axis in zip(by, self._axes) if name in axis.sums for a in axes)
            for name in self._made
        ]
        count = len(self._names)
        outputs = jax.tree.unflatten(jax.tree.structure(results), divided[count:])
        return tuple(divided[:count]), outputs, sums


def _mesh_axes(sharding: Any, dim: int) -> tuple[Any, ...]:
    """The mesh's axes that a dimension is divided by."""
    spec = getattr(sharding, "spec", ())
    entry = spec[dim] if dim < len(spec) else None
    return () if entry is None else entry if isinstance(entry, tuple) else (entry,)
