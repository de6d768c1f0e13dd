"""What a launch function calls for a new key, and when anything was not as it expects.

Here a call is bound, checked and planned. It knows nothing of the launch function's text.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ninetoothed import threads
from ninetoothed.errors import ArgumentError, caller_location
from ninetoothed.launch.arguments import described, is_stored, stored_places

if TYPE_CHECKING:
    from ninetoothed.frontends.base import Frontend
    from ninetoothed.launch.kernel import Kernel

#: Past so many keys the oldest plans go.
MOST_PLANS = 4096


class _Missing:
    def __repr__(self) -> str:
        return "<missing>"


MISSING: Any = _Missing()


class SlowPath:
    """The way of a call whose plan is not known.

    Attributes:
        plans: by key, the run of each plan, the stream's function, the device's index and what is told
            of stores, and where the frontend guards plans, what guards this one.
        state: the frontend's `state` for this kernel.
        key_of: makes the key that the launch function makes.
    """

    def __init__(self, kernel: Kernel, frontend: Frontend, is_guarded: bool) -> None:
        self._kernel = kernel
        self._frontend = frontend
        # What guards a plan is put in by the launch function.
        self._unguarded = [None, None] if is_guarded else []
        self.plans: dict[Any, Any] = {}
        self._planning = threads.lock()
        self._has_warned = False
        self.state = None
        if frontend.state is not None:
            self.state = frontend.state(stored_places(kernel.definition))
        self.key_of: Callable[..., Any] = lambda *arguments: None

    def __call__(
        self,
        arguments: tuple[Any, ...],
        extra: tuple[Any, ...],
        unknown: Mapping[str, Any],
    ) -> Any:
        kernel = self._kernel
        bound = kernel.bind(*as_given(kernel.definition.call_names, arguments, extra, unknown))
        frontend = kernel.frontend_of(bound)
        if frontend is not self._frontend:
            return kernel.dispatch(**bound)
        given, values = described(kernel.definition, frontend, bound)
        self._check_constants(bound)
        bound = {**bound, **{name: values[place] for name, place in self._scalars}}
        try:
            key = self.key_of(*bound.values())
        except Exception:
            if not kernel.definition.untouched(bound):
                raise
            # Something with a shape stands where no tensor is needed.
            key = tuple(sorted((name, str(entry)) for name, entry in given.items()))
        # One thread plans a new key; the others wait for what it finds.
        with self._planning:
            entry = self.plans.get(key)
            if entry is None:
                entry = self._new_entry(given, values, bound)
                self._warn_once(bound)
                while len(self.plans) >= MOST_PLANS:
                    self.plans.pop(next(iter(self.plans)), None)
                self.plans[key] = entry
        run, stream, index, stored, *_ = entry
        if stored is not None:
            stored(self._stored(bound))
        return run(stream(index), *values)

    def _check_constants(self, bound: Mapping[str, Any]) -> None:
        """What a plan is found by must be one value for good."""
        definition = self._kernel.definition
        run_time = {p.name for p in definition.parameters if p.kind in ("tensor", "scalar")}
        for name in bound.keys() - run_time:
            if bound[name].__hash__ is None:
                raise ArgumentError(
                    f"kernel `{definition.name}`: `{name}` is a constant, and {bound[name]!r} may change: "
                    f"it is of class {type(bound[name]).__name__}, which cannot be hashed. Give a number, "
                    "a string or a tuple."
                )

    def _stored(self, bound: Mapping[str, Any]) -> list[Any]:
        """The tensors of the frontend's that are stored to."""
        definition = self._kernel.definition
        return [
            bound[p.name]
            for p in definition.tensor_parameters
            if is_stored(definition, p) and self._owns(bound[p.name])
        ]

    def _owns(self, value: Any) -> bool:
        return self._frontend.owns(type(value))

    def _warn_once(self, bound: Mapping[str, Any]) -> None:
        frontend, definition = self._frontend, self._kernel.definition
        if frontend.remark is None or self._has_warned:
            return
        for parameter in definition.tensor_parameters:
            value = bound[parameter.name]
            said = self._owns(value) and frontend.remark(value, is_stored(definition, parameter))
            if said:
                self._has_warned = True
                _warn(f"kernel `{definition.name}`: `{parameter.name}` {said}")
                return

    @threads.cached_property
    def _scalars(self) -> list[tuple[str, int]]:
        """The scalars, with their places among the values that a plan is called with."""
        found, place = [], 0
        for parameter in self._kernel.definition.call_parameters:
            if parameter.kind == "scalar":
                found.append((parameter.name, place))
            if parameter.kind in ("scalar", "tensor"):
                is_jagged = parameter.source.jagged_dim is not None
                place += 2 if is_jagged else 1
        return found

    def _new_entry(
        self, given: Mapping[str, Any], values: tuple[Any, ...], bound: Mapping[str, Any]
    ) -> Any:
        from ninetoothed.plugins import backend_for

        frontend = self._frontend
        devices = [
            frontend.device_of(entry[3])
            for entry in given.values()
            if _is_tensor(entry) and entry[3] is not None
        ]
        # A kind of device that no backend serves is said first: its framework knows no stream.
        backend_for(devices[0].kind)
        stream = _stream_zero if devices[0].kind == "cpu" else frontend.current_stream
        plan, device = self._kernel.new_plan(frontend, given, (stream(devices[0].index), *values))
        stored = None if frontend.stored is None else frontend.stored(self._stored(bound))
        return [plan.run, stream, device.index, stored, *self._unguarded]


def as_given(
    names: tuple[str, ...],
    arguments: tuple[Any, ...],
    extra: tuple[Any, ...],
    unknown: Mapping[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments, from what the launch function's parameters hold."""
    count = next((n for n, value in enumerate(arguments) if value is MISSING), len(arguments))
    keywords = {
        name: value for name, value in zip(names[count:], arguments[count:]) if value is not MISSING
    }
    return (*arguments[:count], *extra), {**keywords, **unknown}


def _is_tensor(entry: Any) -> bool:
    return isinstance(entry, tuple) and len(entry) == 5


def _stream_zero(index: int) -> int:
    return 0


def _warn(text: str) -> None:
    place = caller_location()
    if place is None:
        warnings.warn(text, UserWarning, stacklevel=2)
    else:
        warnings.warn_explicit(text, UserWarning, place.file, place.line)
