"""Configurations of `build`: what `premake` is called with, and which of it a caller in C gives as integers."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ninetoothed.errors import ArgumentError, near
from ninetoothed.language import dtypes
from ninetoothed.records import dataclass


@dataclass(frozen=True)
class Choice:
    """The integers that choose a unit: names, and values as C has them."""

    names: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Configuration:
    """One call of ``premake``.

    Attributes:
        arguments: by the names of its parameters.
        options: ``num_warps``, ``num_stages``, …
    """

    arguments: Mapping[str, Any]
    options: Mapping[str, Any]


def configurations(
    premake: Callable[..., Any], configs: Sequence[Any], tuned: Sequence[str] = ()
) -> list[Configuration]:
    """What `build` was given, each ``(arguments, keywords, options)``.

    Args:
        tuned: the parameters that are not the caller's to choose.

    Raises:
        ArgumentError: one is not of that form, or does not fit ``premake``, which has all of ``tuned``.
    """
    if not callable(premake):
        raise ArgumentError(
            f"`build` takes a function that gives what `make` takes, not {premake!r}"
        )
    signature = inspect.signature(premake)
    for name in tuned:
        if name not in signature.parameters:
            raise ArgumentError(
                f"`meta_parameters` has {name!r}, which is no parameter of premake{signature}."
                f"{near(name, list(signature.parameters))}"
            )
    if isinstance(configs, str) or not isinstance(configs, Iterable):
        raise ArgumentError(
            f"configurations are a list of (arguments, keywords, options) for premake{signature}, not {configs!r}"
        )
    found = []
    for config in configs:
        try:
            arguments, keywords, options = config
            bound = signature.bind(*arguments, **keywords)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"a configuration is (arguments, keywords, options) for premake{signature}; "
                f"{config!r} is not: {error}"
            ) from None
        found.append(Configuration(dict(bound.arguments), dict(options or {})))
    if not found:
        raise ArgumentError("`build` needs at least one configuration")
    given = {name for each in found for name in each.arguments}
    ordered = [name for name in signature.parameters if name in given]
    return [
        Configuration(
            {name: _value(each, name, signature.parameters[name].default) for name in ordered},
            each.options,
        )
        for each in found
    ]


def _value(configuration: Configuration, name: str, default: Any) -> Any:
    return configuration.arguments.get(name, default)


def choice_of(configuration: Configuration, tuned: Sequence[str]) -> Choice:
    """What chooses a configuration in C.

    Args:
        tuned: the parameters that are not the caller's to choose.
    """
    chosen = {n: v for n, v in configuration.arguments.items() if n not in tuned}
    return Choice(tuple(chosen), tuple(_in_c(name, value) for name, value in chosen.items()))


def _in_c(name: str, value: Any) -> str:
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, int):
        if not -(2**31) <= value < 2**31:
            raise ArgumentError(
                f"a configuration's `{name}` is {value}, and a caller in C gives an int of 32 bits for it. Name it in "
                "meta_parameters, or bind it in premake."
            )
        return str(int(value))
    called = getattr(value, "name", value) if not isinstance(value, str) else value
    called = str(called).rpartition(".")[2]
    if called not in dtypes.NAMES:
        # A framework's element type prints as its module's.
        called = str(value).rpartition(".")[2]
    if called in dtypes.NAMES:
        return f"NINETOOTHED_{called.upper()}"
    raise ArgumentError(
        f"a configuration's `{name}` is {value!r}; a caller in C gives an integer for it, so it must be "
        "an int, a bool or an element type. Name it in meta_parameters, or bind it in premake."
    )
