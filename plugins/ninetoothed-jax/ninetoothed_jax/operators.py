"""Kernels as JAX's operators: with `jax.custom_vjp`, under `jax.vmap`, `jax.jit` and `jax.shard_map`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from ninetoothed.errors import ArgumentError
from ninetoothed.kernels.operator import OperatorDefinition
from ninetoothed.tensors.arrange import NO_VALUE
from ninetoothed_jax.partitioning import partitioned

#: For so many sets of numbers that are no arrays an operator keeps what JAX knows of it.
_MOST_CONSTANTS = 256


def registered(
    definition: OperatorDefinition, functions: Callable[..., Any]
) -> tuple[Callable[..., Any], tuple[type, ...]]:
    """The operator; see `ninetoothed.frontends.base.Frontend.operator`."""
    if any(output.is_added_to for output in definition.outputs):
        raise ArgumentError(
            f"operator {definition.name!r} adds to tensors of zeros, which JAX's arrays cannot be: have its "
            "backward derived without `atomic`"
        )
    _, forward = functions(_described)
    signature = inspect.Signature(
        inspect.Parameter(
            entry.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if entry.default is NO_VALUE else entry.default,
        )
        for entry in definition.inputs
    )

    @functools.lru_cache(maxsize=_MOST_CONSTANTS)
    def made(constants: tuple[tuple[str, type, Any], ...]) -> Callable[..., Any]:
        return _operator(definition, forward, {name: value for name, _, value in constants})

    def call(*arguments: Any, **keywords: Any) -> Any:
        bound = signature.bind(*arguments, **keywords)
        bound.apply_defaults()
        known = bound.arguments
        arrays = [value for value in known.values() if isinstance(value, jax.Array)]
        # 1, 1.0 and True are equal, and not the same to a kernel.
        constants = tuple(
            (name, type(value), value)
            for name, value in known.items()
            if not isinstance(value, jax.Array)
        )
        return made(constants)(*arrays)

    return call, ()


def _described(beside: Any, shape: Any, dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(tuple(shape), dtype)


def _operator(
    definition: OperatorDefinition, forward: Callable[..., Any], constants: Mapping[str, Any]
) -> Callable[..., Any]:
    """The operator as a function of the arrays among its inputs."""
    names = [entry.name for entry in definition.inputs if entry.name not in constants]

    def in_order(arrays: Sequence[Any]) -> list[Any]:
        known = {**constants, **dict(zip(names, arrays))}
        return [known[entry.name] for entry in definition.inputs]

    divided = partitioned(definition, lambda *arrays: forward(*in_order(arrays)), names)

    @jax.custom_batching.custom_vmap
    def run(*arrays: Any) -> Any:
        return divided(*arrays)

    @run.def_vmap  # type: ignore[untyped-decorator]
    def over_batch(size: int, are_batched: Sequence[bool], *arrays: Any) -> Any:
        batches = frozenset(name for name, is_batched in zip(names, are_batched) if is_batched)
        function = None if definition.batched is None else definition.batched(batches)
        if function is not None:
            results = function(*in_order(arrays))
        else:
            results = _one_by_one(run, are_batched, arrays)
        return results, jax.tree.map(lambda _: True, results)

    if definition.backward is None:
        return run  # type: ignore[no-any-return]
    return _differentiable(definition, run, constants, names)


def _one_by_one(run: Callable[..., Any], are_batched: Sequence[bool], arrays: Sequence[Any]) -> Any:
    batches = [array for array, is_batched in zip(arrays, are_batched) if is_batched]

    def of_one(elements: Sequence[Any]) -> Any:
        left = iter(elements)
        return run(*(next(left) if b else array for array, b in zip(arrays, are_batched)))

    return jax.lax.map(of_one, batches)


def _differentiable(
    definition: OperatorDefinition,
    run: Callable[..., Any],
    constants: Mapping[str, Any],
    names: Sequence[str],
) -> Callable[..., Any]:
    derivative = definition.backward
    assert derivative is not None
    made = [entry.name for entry in definition.outputs]
    tensors = [entry.name for entry in definition.tensors]

    operator = jax.custom_vjp(run)

    def forward(*arrays: Any) -> Any:
        # The operator itself, so that what is differentiated twice finds its backward again.
        results = operator(*arrays)
        known = dict(zip(names, arrays))
        known |= dict(zip(made, results if len(made) > 1 else (results,)))
        # A constant of Python's would come back as an array.
        saved = [known[name] for name in definition.saved if name not in constants]
        return results, saved

    def backward(saved: Sequence[Any], gradients: Any) -> Any:
        left = iter(saved)
        kept = [constants[n] if n in constants else next(left) for n in definition.saved]
        given = gradients if len(made) > 1 else (gradients,)
        found = dict(zip(tensors, definition.checked_gradients(derivative(*given, *kept))))
        return tuple(found.get(name) for name in names)

    operator.defvjp(forward, backward)
    return operator


def vmap(function: Callable[..., Any], in_dims: tuple[int | None, ...]) -> Callable[..., Any]:
    """See `ninetoothed.frontends.base.Frontend.vmap`."""
    return jax.vmap(function, in_axes=in_dims)
