"""None for a tensor that the program does not touch: some tensor of the call stands for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ninetoothed.frontends.base import Frontend
from ninetoothed.kernels.constant_keys import constant_key
from ninetoothed.kernels.definition import Declaration, Definition
from ninetoothed.launch.checks import check_no_size_used

#: Past so many kinds of call all are checked anew.
MOST_KNOWN = 4096


class Absent:
    """What was found out of calls with None, so that later ones like them need no check."""

    def __init__(self, kernel: Declaration, frontend: Frontend) -> None:
        self._frontend = frontend
        kinds = {parameter.name: parameter.kind for parameter in kernel.call_parameters}
        of_names = [kinds.get(name, "constexpr") for name in kernel.call_names]
        self._tensors = [place for place, kind in enumerate(of_names) if kind == "tensor"]
        self._constants = [place for place, kind in enumerate(of_names) if kind == "constexpr"]
        self._stand_ins: dict[Any, int] = {}

    def filled(self, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The arguments with a tensor for each None; None without any, and where that is not known."""
        if not any(arguments[place] is None for place in self._tensors):
            return None
        try:
            stand_in = self._stand_ins.get(self._key(arguments))
        except Exception:
            return None  # A constant that is not hashable will be told of by its name.
        if stand_in is None or not self._frontend.owns(type(arguments[stand_in])):
            return None
        absent = {place for place in self._tensors if arguments[place] is None}
        return tuple(arguments[stand_in if n in absent else n] for n in range(len(arguments)))

    def learn(self, kernel: Definition, bound: Mapping[str, Any]) -> bool:
        """Whether there is None among the arguments, which are as they may be.

        Raises:
            ArgumentError: a size that None does not have is used.
        """
        stand_in = _stand_in(kernel, self._frontend, bound)
        if stand_in is not None:
            if len(self._stand_ins) >= MOST_KNOWN:
                self._stand_ins.clear()
            self._stand_ins[self._key(tuple(bound.values()))] = list(bound).index(stand_in)
        return stand_in is not None

    def _key(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Which tensors are None, and the constants by which it is known that they may be."""
        absent = (place for place in self._tensors if arguments[place] is None)
        constants = [arguments[place] for place in self._constants]
        return (*absent, *((value.__class__, constant_key(value)) for value in constants))


def without_none(
    kernel: Definition, frontend: Frontend, bound: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments with a tensor of the call for each None.

    Raises:
        ArgumentError: a size that None does not have is used.
    """
    stand_in = _stand_in(kernel, frontend, bound)
    if stand_in is None:
        return dict(bound)
    absent = {p.name for p in kernel.tensor_parameters if bound[p.name] is None}
    return {name: bound[stand_in if name in absent else name] for name in bound}


def _stand_in(kernel: Definition, frontend: Frontend, bound: Mapping[str, Any]) -> str | None:
    """The name of a tensor that may stand for each None; None without any."""
    absent = [p for p in kernel.tensor_parameters if bound[p.name] is None]
    if not absent:
        return None
    for parameter in absent:
        check_no_size_used(kernel, parameter, "None")
    owned = [p.name for p in kernel.tensor_parameters if frontend.owns(type(bound[p.name]))]
    return next((name for name in owned if name not in kernel.untouched), owned[0])
