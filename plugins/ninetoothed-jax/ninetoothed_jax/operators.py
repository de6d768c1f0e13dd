"""Kernels as JAX's operators: with `jax.custom_vjp`, under `jax.vmap`, `jax.jit` and `jax.shard_map`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from ninetoothed.errors import FRAMEWORKS, ArgumentError
from ninetoothed.kernels.operator import (
    OperatorDefinition,
    completing,
    number_has_no_gradient,
    with_any_backward,
)
from ninetoothed_jax.partitioning import partitioned
from ninetoothed_jax.varying import axes_of, varying

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
    FRAMEWORKS.add("jax")
    _, forward = functions(_described)
    complete, definition = completing(definition), with_any_backward(definition)

    @functools.lru_cache(maxsize=_MOST_CONSTANTS)
    def made(constants: tuple[tuple[str, type, Any], ...]) -> Callable[..., Any]:
        return _operator(definition, forward, {name: value for name, _, value in constants})

    def call(*arguments: Any, **keywords: Any) -> Any:
        known = {
            e.name: given for e, given in zip(definition.inputs, complete(arguments, keywords))
        }
        for entry in definition.tensors:
            if not isinstance(known[entry.name], jax.Array | None):
                raise ArgumentError(
                    f"operator {definition.name!r}: `{entry.name}` is an array of JAX's, but got "
                    f"{type(known[entry.name]).__name__}. Give `jax.numpy.asarray(…)` of it"
                )
        arrays = [value for value in known.values() if isinstance(value, jax.Array)]
        # 1, 1.0 and True are equal, and not the same to a kernel.
        constants = tuple(
            (name, type(value), value)
            for name, value in known.items()
            if not isinstance(value, jax.Array)
        )
        operator, arrays = made(constants), varying(arrays, axes_of(arrays))
        try:
            return operator(*arrays)
        except NotImplementedError:
            # `jax.shard_map` outside of `jax.jit` takes no rule that is told which gradients are zero.
            return jax.jit(operator)(*arrays)

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

    def primal(*arrays: Any) -> Any:
        # Neither of the transformations below says along which axes of a mesh its results differ.
        results = run(*arrays)
        found = varying(results if len(made) > 1 else (results,), axes_of(arrays))
        return found if len(made) > 1 else found[0]

    operator = jax.custom_vjp(primal)

    def forward(*primals: Any) -> Any:
        for name, primal in zip(names, primals):
            if primal.perturbed and name not in tensors:
                raise number_has_no_gradient(definition, name)
        arrays = [primal.value for primal in primals]
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
        given = [_materialized(each) for each in (gradients if len(made) > 1 else (gradients,))]
        given = varying(given, axes_of([*given, *saved]))
        found = dict(zip(tensors, definition.checked_gradients(derivative(*given, *kept))))
        return tuple(found.get(name) for name in names)

    operator.defvjp(forward, backward, symbolic_zeros=True)
    return operator


def _materialized(gradient: Any) -> Any:
    """A gradient as an array, where JAX only says that it is zero."""
    is_zero = isinstance(gradient, jax.custom_derivatives.SymbolicZero)
    return jax.numpy.zeros(gradient.shape, gradient.dtype) if is_zero else gradient


def vmap(function: Callable[..., Any], in_dims: tuple[int | None, ...]) -> Callable[..., Any]:
    """See `ninetoothed.frontends.base.Frontend.vmap`."""
    return jax.vmap(function, in_axes=in_dims)
