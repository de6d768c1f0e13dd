"""What a launch function calls for a new key, and when anything was not as it expects.

Here a call is bound, checked and planned. It knows nothing of the launch function's text.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ninetoothed import threads
from ninetoothed.errors import caller_location
from ninetoothed.launch.arguments import described, is_stored, stored_places

if TYPE_CHECKING:
    from ninetoothed.frontends.base import Frontend
    from ninetoothed.kernels.definition import Definition
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
        plans: by key, the run of each plan, the stream's function and the device's index, and where
            the frontend guards plans, what guards this one.
        stored: by key, the places among the tensors of those that are stored to.
        state: the frontend's `state` for this kernel.
        key_of: makes the key that the launch function makes.
    """

    def __init__(self, kernel: Kernel, frontend: Frontend, is_guarded: bool) -> None:
        self._kernel = kernel
        self._frontend = frontend
        # What guards a plan is put in by the launch function.
        self._unguarded = [None, None] if is_guarded else []
        self.plans: dict[Any, Any] = {}
        self.stored: dict[Any, tuple[int, ...]] = {}
        self._planning = threads.lock()
        self._has_warned = False
        self.state = None if frontend.state is None else frontend.state()
        self.key_of: Callable[..., Any] = lambda *arguments: None

    def __call__(
        self,
        arguments: tuple[Any, ...],
        extra: tuple[Any, ...],
        unknown: Mapping[str, Any],
    ) -> Any:
        kernel = self._kernel
        bound = kernel.bind(*as_given(kernel.declaration.call_names, arguments, extra, unknown))
        frontend = kernel.frontend_of(bound)
        if frontend is not self._frontend:
            return kernel.dispatch(**bound)
        definition = kernel.definition_of(bound, frontend)
        given, values = described(definition, frontend, bound)
        bound = {**bound, **{name: values[place] for name, place in self._scalars}}
        try:
            key = self.key_of(*bound.values())
        except Exception:
            if not definition.untouched:
                raise
            # Something with a shape stands where no tensor is needed.
            key = tuple(sorted((name, str(entry)) for name, entry in given.items()))
        # One thread plans a new key; the others wait for what it finds.
        with self._planning:
            entry = self.plans.get(key)
            if entry is None:
                entry = self._new_entry(definition, given, values)
                self._warn_once(definition, bound)
                while len(self.plans) >= MOST_PLANS:
                    oldest = next(iter(self.plans))
                    self.plans.pop(oldest, None)
                    self.stored.pop(oldest, None)
                self.stored[key] = stored_places(definition)
                self.plans[key] = entry
        self._tell_of_stores(definition, bound)
        run, stream, index, *_ = entry
        return run(stream(index), *values)

    def _tell_of_stores(self, definition: Definition, bound: Mapping[str, Any]) -> None:
        """What the launch function tells the frontend of a call that has a plan."""
        frontend = self._frontend
        if self.state is None or frontend.stored is None:
            return
        owned = [p for p in definition.tensor_parameters if self._owns(bound[p.name])]
        # Of a tensor of nobody's, which may stand where it is not touched, no state is asked.
        are_all = len(owned) == len(definition.tensor_parameters)
        if not are_all or self.state(*[bound[parameter.name] for parameter in owned]):
            frontend.stored([bound[p.name] for p in owned if is_stored(definition, p)])

    def _owns(self, value: Any) -> bool:
        return self._frontend.owns(type(value))

    def _warn_once(self, definition: Definition, bound: Mapping[str, Any]) -> None:
        frontend = self._frontend
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
        for parameter in self._kernel.declaration.call_parameters:
            if parameter.kind == "scalar":
                found.append((parameter.name, place))
            if parameter.kind in ("scalar", "tensor"):
                is_jagged = parameter.source.jagged_dim is not None
                place += 2 if is_jagged else 1
        return found

    def _new_entry(
        self, definition: Definition, given: Mapping[str, Any], values: tuple[Any, ...]
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
        values = (stream(devices[0].index), *values)
        plan, device = self._kernel.new_plan(definition, frontend, given, values)
        return [plan.run, stream, device.index, *self._unguarded]


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
