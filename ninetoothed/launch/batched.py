"""Operators over batches: for each set of inputs that have a leading dimension, an operator of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ninetoothed import plugins, threads
from ninetoothed.derivatives.batched import Batched, batched
from ninetoothed.kernels.operator import OperatorDefinition, define_operator, like
from ninetoothed.launch.kernel import Kernel
from ninetoothed.symbols.expr import as_symbol


class Batching:
    """What `OperatorDefinition.batched` is.

    Args:
        operator: of which operators over batches are made.
        making: makes an operator of a kernel.
    """

    def __init__(
        self,
        operator: OperatorDefinition,
        making: Callable[[Kernel, OperatorDefinition], Callable[..., Any]],
    ) -> None:
        self._operator, self._making = operator, making
        self._lock = threads.lock()
        self._known: dict[frozenset[str], Callable[..., Any] | None] = {}

    def __call__(self, names: frozenset[str]) -> Callable[..., Any] | None:
        """The operator over a batch of these inputs, called as the plain one; None where there is none."""
        with self._lock:
            if names not in self._known:
                self._known[names] = self._made(names)
            return self._known[names]

    def _made(self, names: frozenset[str]) -> Callable[..., Any] | None:
        operator = self._operator
        listed = [entry.name for entry in operator.inputs if entry.name in names]
        if not names <= {entry.name for entry in operator.tensors}:
            return None
        outputs = [entry.name for entry in operator.outputs]
        suffix = f"over_{'_'.join(listed)}"
        found = batched(operator.kernel, [*listed, *outputs], f"{operator.kernel.name}_{suffix}")
        if found is None:
            return None
        declaration = found.specializations.declaration
        constants = {k: v for k, v in operator.constants.items() if k in declaration.call_names}
        definition = define_operator(
            f"{operator.name}_{suffix}",
            found.specializations.fixed(constants),
            _outputs(operator, found, names),
            _backward(operator, names),
            operator.saved,
            constants,
        )
        definition = replace(
            definition,
            outputs=tuple(
                replace(new, is_wide=old.is_wide, is_added_to=old.is_added_to)
                for new, old in zip(definition.outputs, operator.outputs)
            ),
            is_selective=operator.is_selective,
            ungiven=operator.ungiven,
            autocast=operator.autocast,
        )
        places = {entry.name: place for place, entry in enumerate(operator.inputs)}
        order = [places[entry.name] for entry in definition.inputs]
        made = self._making(Kernel(found.specializations), definition)
        return lambda *arguments: made(*(arguments[place] for place in order))


def _outputs(
    operator: OperatorDefinition, found: Batched, names: frozenset[str]
) -> Mapping[str, Any]:
    """The outputs' shapes and element types."""
    made: dict[str, Any] = {}
    for output in operator.outputs:
        if isinstance(output.shape, str):
            source = found.sources[output.shape]
            if output.shape in names and output.shape == output.dtype:
                made[output.name] = like(output.shape)
                continue
            sizes = source.shape[1:] if output.shape in names else source.shape
        else:
            sizes = tuple(as_symbol(size).substitute(found.sizes) for size in output.shape)
        dtype = None if output.alike else output.dtype
        made[output.name] = ((found.count, *sizes), dtype)
    return made


def _backward(operator: OperatorDefinition, names: frozenset[str]) -> Callable[..., Any] | None:
    """The operator's backward for each element of a batch; what all share has the sum of gradients."""
    derivative = operator.backward
    if derivative is None:
        return None
    made = [entry.name for entry in operator.outputs]
    dims = [0] * len(made) + [
        0 if each in names or each in made else None for each in operator.saved
    ]
    shares = [entry.name not in names for entry in operator.tensors]

    def backward(*values: Any, needed: Sequence[bool] | None = None, is_last: bool = False) -> Any:
        keywords = {"needed": needed, "is_last": is_last} if operator.is_selective else {}
        exist: list[bool] = []

        def of_one(*values: Any) -> tuple[Any, ...]:
            found = operator.checked_gradients(derivative(*values, **keywords))
            exist[:] = [each is not None for each in found]
            return tuple(each for each in found if each is not None)

        frontend = plugins.find_frontend(type(values[0]))
        assert frontend is not None and frontend.vmap is not None
        found = iter(frontend.vmap(of_one, tuple(dims))(*values))
        return tuple(
            (next(found).sum(0) if is_shared else next(found)) if does else None
            for does, is_shared in zip(exist, shares)
        )

    return backward
