"""What a launch function calls for a new key, and when anything was not as it expects.

Here a call is bound, checked and planned. It knows nothing of the launch function's text.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ninetoothed import threads
from ninetoothed.bounded import keep
from ninetoothed.errors import caller_location
from ninetoothed.launch.absent_tensors import Absent, without_none
from ninetoothed.launch.arguments import (
    check_tensors,
    described,
    is_stored,
    may_be_stored,
    stored_places,
)

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
        plans: by key, the run of each plan, the stream's function, the device's index and what is told
            of stores, and where the frontend guards plans, what guards this one.
        state: the frontend's `state` for this kernel.
        key_of: makes the key that the launch function makes.
        number_places: where in a key each tensor's shape is; its strides come next.
        key_length: how many parts a key has.
        launch: the launch function.
    """

    key_of: Callable[..., Any]
    launch: Callable[..., Any]

    def __init__(self, kernel: Kernel, frontend: Frontend, unguarded: list[Any]) -> None:
        self._kernel = kernel
        self._frontend = frontend
        # What guards a plan is put in its place by the launch function.
        self._unguarded = unguarded
        self.plans: dict[Any, Any] = {}
        self._planning = threads.lock()
        self._has_warned = False
        self.state = None
        if frontend.state is not None:
            self.state = frontend.state(may_be_stored(kernel))
        self._names = kernel.declaration.call_names
        self._absent = Absent(kernel.declaration, frontend)
        self.number_places: list[int] = []
        self.key_length = 0
        # By what of a key is neither shape nor strides: what runs other sizes, an entry like theirs, and
        # what the arguments are checked against.
        self._families: dict[Any, tuple[Any, Any, Definition]] = {}

    def __call__(
        self, arguments: tuple[Any, ...], extra: tuple[Any, ...], unknown: Mapping[str, Any]
    ) -> Any:
        kernel = self._kernel
        if not (extra or unknown) and (filled := self._absent.filled(arguments)) is not None:
            return self.launch(*filled)
        bound = kernel.bind(*as_given(kernel.declaration.call_names, arguments, extra, unknown))
        frontend = kernel.frontend_of(bound)
        if frontend is not self._frontend:
            return kernel.dispatch(**bound)
        definition = kernel.definition_of(bound, frontend)
        if self._absent.learn(definition, bound):
            return self.launch(**without_none(definition, frontend, bound))
        given, values = described(definition, frontend, bound)
        as_called = bound
        bound = {**bound, **{name: values[place] for name, place in self._scalars}}
        try:
            key, is_whole = self.key_of(*bound.values()), True
        except Exception:
            if not definition.untouched:
                raise
            # Something with a shape stands where no tensor is needed.
            key = tuple(sorted((name, str(entry)) for name, entry in given.items()))
            is_whole = False
        # One thread plans a new key; the others wait for what it finds.
        with self._planning:
            entry = self.plans.get(key)
            if entry is None:
                entry, family = self._new_entry(definition, given, values, bound)
                if family is not None and is_whole and self.number_places:
                    families, apart = self._families, self._apart(key)
                    families.pop(apart, None)
                    keep(families, apart, (family, entry, definition), MOST_PLANS)
                keep(self.plans, _lasting(key), entry, MOST_PLANS)
        self._warn_once(definition, as_called)
        run, stream, index, stored, *_ = entry
        if stored is not None:
            stored([bound[name] for name in self._may_be_stored])
        return run(stream(index), *values)

    def of_family(self, key: Any, arguments: tuple[Any, ...]) -> Any:
        """The entry of a call that differs in sizes and strides alone from one that is planned, made of that
        one's; `LookupError` for another.

        What else is raised the slow path, which is taken then, raises again.
        """
        family, entry, definition = self._families[self._apart(key)]
        if definition.untouched:
            raise LookupError
        numbers = tuple([(key[place], key[place + 1]) for place in self.number_places])
        check_tensors(definition, self._frontend, dict(zip(self._names, arguments)), numbers)
        with self._planning:
            if key in self.plans:
                return self.plans[key]
            run = family(numbers)
            if run is None:
                raise LookupError
            made = [run, *entry[1:4], *self._unguarded]
            return keep(self.plans, _lasting(key), made, MOST_PLANS)

    @threads.cached_property
    def _apart(self) -> Callable[[tuple[Any, ...]], Any]:
        """Gives what of a key is neither shape nor strides."""
        numbers = {place + step for place in self.number_places for step in (0, 1)}
        return operator.itemgetter(*(n for n in range(self.key_length) if n not in numbers))

    @threads.cached_property
    def _may_be_stored(self) -> list[str]:
        """The tensors that are stored to with some constants: those that the launch function names."""
        tensors = self._kernel.declaration.tensor_parameters
        return [tensors[place].name for place in may_be_stored(self._kernel)]

    def _telling(self, definition: Definition, bound: Mapping[str, Any]) -> Any:
        """What is told of `_may_be_stored` at each call with these constants: those that are stored to."""
        if self._frontend.stored is None:
            return None
        tensors = definition.tensor_parameters
        stored = [tensors[place].name for place in stored_places(definition)]
        names = [name for name in stored if self._owns(bound[name])]
        tell = self._frontend.stored([bound[name] for name in names])
        if names == self._may_be_stored:
            return tell
        places = [self._may_be_stored.index(name) for name in names]
        return lambda others: tell([others[place] for place in places])

    def _owns(self, value: Any) -> bool:
        return self._frontend.owns(type(value))

    def _warn_once(self, definition: Definition, bound: Mapping[str, Any]) -> None:
        frontend = self._frontend
        if frontend.remark is None or self._has_warned:
            return
        for parameter in definition.call_parameters:
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
        self,
        definition: Definition,
        given: Mapping[str, Any],
        values: tuple[Any, ...],
        bound: Mapping[str, Any],
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
        stream = (lambda index: 0) if devices[0].kind == "cpu" else frontend.current_stream
        values = (stream(devices[0].index), *values)
        plan, device = self._kernel.new_plan(definition, frontend, given, values)
        told = self._telling(definition, bound)
        return [plan.run, stream, device.index, told, *self._unguarded], plan.family


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


def _lasting(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key as it is kept: shapes are plain tuples and each is there once, so that the collector has
    little to follow."""
    known: dict[Any, Any] = {}
    return tuple([known.setdefault(p, tuple(p)) if isinstance(p, tuple) else p for p in key])


def _is_tensor(entry: Any) -> bool:
    return isinstance(entry, tuple) and len(entry) == 5


def _warn(text: str) -> None:
    place = caller_location()
    if place is None:
        warnings.warn(text, UserWarning, stacklevel=2)
    else:
        warnings.warn_explicit(text, UserWarning, place.file, place.line)
