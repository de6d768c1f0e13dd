"""The backward of an operator, derived: operators of backward kernels, and what of the forward they need."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ninetoothed import threads
from ninetoothed.derivatives.derive import (
    Derived,
    dependent,
    derive,
    differentiable,
    grouped,
    joined,
)
from ninetoothed.derivatives.parts import MOST_PARTS, adding_up, narrowing
from ninetoothed.errors import (
    ApplicationError,
    ArgumentError,
    ArrangementError,
    Location,
    NineToothedError,
)
from ninetoothed.kernels.operator import Like, OperatorDefinition, define_operator, like
from ninetoothed.launch.kernel import Kernel
from ninetoothed.launch.limits import Limit, limits_of
from ninetoothed.parsing.source import begins_at, written_at
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Expression, Symbol

#: What sizes are the same as.
Sizes = Mapping[Symbol, Expression]

#: Makes an operator of a kernel.
Making = Callable[[Kernel, OperatorDefinition], Callable[..., Any]]


def with_backward(
    operator: OperatorDefinition,
    making: Making,
    wrt: Sequence[str] | None = None,
    atomic: bool = False,
    hidden: Sequence[str] = (),
) -> OperatorDefinition:
    """An operator with its backward, and what that needs saved.

    Args:
        making: how operators of backward kernels are made.
        wrt: the inputs that have gradients; by default all that an output depends on.
        atomic: whether what several programs have is added up by atomic operations.
        hidden: the outputs that calls do not return, so that they have no gradient.

    Raises:
        ArgumentError: there is no such input, or the operator changes one in place.
        ApplicationError: a part of the application has no derivative.
    """
    _check_outputs(operator)
    given = _equal_sizes(operator), atomic, _of_floats(operator, wrt)
    found = _Backward(operator, making, wrt, *given, hidden=hidden)
    return replace(operator, backward=found.run, saved=found.saved, is_selective=True)


def _of_floats(operator: OperatorDefinition, wrt: Sequence[str] | None) -> dict[str, str]:
    """The outputs of the element type of an input that has a gradient, or could: others may hold integers."""
    kernel, inputs = operator.kernel, {*(wrt or ())}
    try:
        inputs |= {*dependent(kernel, differentiable(kernel))}
    except ApplicationError:
        if wrt is None:
            raise
    return {name: like for name, like in _likes(operator).items() if like in inputs}


def _likes(operator: OperatorDefinition) -> dict[str, str]:
    """The outputs that have the element type of an input, by each that input."""
    return {e.name: e.dtype for e in operator.outputs if isinstance(e.dtype, str)}


def _equal_sizes(operator: OperatorDefinition) -> Sizes:
    """What the sizes of outputs are, over those of inputs."""
    sources = {p.name: p.source for p in operator.kernel.tensor_parameters}
    found: dict[Symbol, Expression] = {}
    for output in operator.outputs:
        shape = output.shape
        sizes = sources[shape].shape if isinstance(shape, str) else shape
        pairs = zip(sources[output.name].shape, sizes)
        found |= {own: size for own, size in pairs if isinstance(own, Symbol)}
    return found


def _later(
    operator: OperatorDefinition,
    making: Making,
    equal: Sizes,
    detached: frozenset[str] = frozenset(),
) -> OperatorDefinition:
    """The same, derived when it is first asked for: whoever derives once seldom derives twice."""
    saved = _names(operator)
    count = len(operator.outputs)
    lock = threads.lock()
    made: list[_Backward] = []

    def backward(*values: Any, needed: Sequence[bool] | None = None, is_last: bool = False) -> Any:
        with lock:
            if not made:
                # They are gradients, and hold floats.
                likes = _likes(operator)
                made.append(_Backward(operator, making, None, equal, False, likes, detached))
        by_name = dict(zip(saved, values[count:]))
        kept = (by_name[each] for each in made[0].saved)
        return made[0].run(*values[:count], *kept, needed=needed, is_last=is_last)

    return replace(operator, backward=backward, saved=saved, is_selective=True)


_FEWER_TILES = (
    "The forward kernel may read fewer tiles of a tensor than it has, in a loop over another's; its derived backward "
    "may not: give it as many, or leave it out of `wrt`."
)


@contextlib.contextmanager
def _located(application: Location | None) -> Iterator[None]:
    """An error of a backward kernel, whose text is generated and which autograd calls, points at what that was made of.

    Args:
        application: where the forward kernel's begins.
    """
    try:
        yield
    except ArrangementError as error:
        raise ArrangementError(f"{error.message} {_FEWER_TILES}", application) from error
    except NineToothedError as error:
        place = error.location and written_at(error.location)
        if place == error.location:
            raise
        raise type(error)(error.message, place) from error


@dataclass(frozen=True)
class _Part:
    """An operator that computes some of the gradients.

    Attributes:
        arguments: for each of its inputs the name of what the forward operator has, and whether its
            gradient is meant.
        made: the inputs of the forward operator that it gives the gradients of.
        adding: for each of these, where its gradient comes in parts, what adds them up.
        likes: for each, which of the arguments has its shape.
        limits: what the gradients are right within.
        application: where the forward kernel's begins.
    """

    operator: Callable[..., Any]
    arguments: tuple[tuple[str, bool], ...]
    made: tuple[str, ...]
    adding: Mapping[str, Callable[..., Any]]
    likes: Mapping[str, tuple[str, bool]]
    limits: tuple[Limit, ...] = ()
    application: Location | None = None

    @property
    def needed(self) -> set[str]:
        """The names of what it needs of the forward operator."""
        keys = [at.key for limit in self.limits for at in limit.sizes.values()]
        return {name for name, is_gradient in (*self.arguments, *keys) if not is_gradient}

    def passed(self, known: Mapping[tuple[str, bool], Any]) -> Limit | None:
        """The limit that sizes are not within; None where they are within all."""
        return next((each for each in self.limits if each.is_passed(known)), None)

    def run(self, known: Mapping[tuple[str, bool], Any]) -> dict[str, Any]:
        """The gradients by name, of what there is: by name, and whether its gradient is meant."""
        if self.is_of_none(known):
            # They depend on the outputs' gradients all the same.
            gradient = next(value for (_, is_gradient), value in known.items() if is_gradient)
            total = gradient.sum()
            return {name: known[like] * total for name, like in self.likes.items()}
        with _located(self.application):
            found = self.operator(*[known[argument] for argument in self.arguments])
        by_name = dict(zip(self.made, found if isinstance(found, (tuple, list)) else (found,)))
        for name, add in self.adding.items():
            by_name[name] = add(by_name[name], known[name, False])
        return by_name

    def is_of_none(self, known: Mapping[tuple[str, bool], Any]) -> bool:
        """Whether the gradients have no elements, of which no program can make a sum."""
        return all(0 in tuple(known[like].shape) for like in self.likes.values())


class _Backward:
    """The gradients of an operator's inputs.

    Attributes:
        saved: the names of what it needs of the forward operator.
    """

    def __init__(
        self,
        operator: OperatorDefinition,
        making: Making,
        wrt: Sequence[str] | None,
        equal: Sizes,
        atomic: bool,
        kept: Mapping[str, str],
        detached: frozenset[str] = frozenset(),
        hidden: Sequence[str] = (),
    ) -> None:
        self._hidden = hidden
        self._operator, self._making, self._equal = operator, making, equal
        self._is_atomic = atomic
        # Of an output that has an element type of its own, less may be left than is needed.
        self._kept = dict(sorted(kept.items()))
        kernel = operator.kernel
        if wrt is None:
            wrt = dependent(kernel, [e for e in differentiable(kernel) if e not in detached])
        else:
            detached = frozenset(entry.name for entry in operator.tensors) - {*wrt}
        #: The inputs that have no gradient, of the backward kernels either.
        self._detached = detached
        groups = [tuple(wrt)] if atomic and wrt else grouped(kernel, wrt)
        # Where one has no derivative, none is made: a framework's names are given once.
        parts = [self._part(group) for group in groups]
        joint = None if atomic else self._joined(joined(groups, kernel))
        self._parts = [made() for made in parts]
        self._joint = None if joint is None else joint()
        needed = set[str]().union(*(part.needed for part in self._parts))
        if self._joint is not None and not self._joint.needed <= needed:
            # Of several inputs it may compute again what each alone loads: more is not kept for that.
            self._joint = None
        self.saved = tuple(name for name in _names(operator) if name in needed)
        #: What `run` is given, in order.
        self._given = [(entry.name, True) for entry in operator.outputs]
        self._given += [(name, False) for name in self.saved]
        self._tensors = [entry.name for entry in operator.tensors]
        self._parts_of = functools.lru_cache(maxsize=None)(self._chosen)
        self._lock = threads.lock()
        self._fewer: dict[tuple[str, ...], _Part] = {}

    def _joined(self, wrt: tuple[str, ...] | None) -> Callable[[], _Part] | None:
        """What computes several parts' gradients at once."""
        if wrt is None:
            return None
        try:
            return self._part(wrt)
        except (ApplicationError, ArgumentError):
            return None

    def run(self, *values: Any, needed: Sequence[bool] | None = None, is_last: bool = False) -> Any:
        """The gradients, as `op` has a ``backward`` give them.

        Args:
            needed: which are asked for; None for all.
            is_last: whether they are not derived again.
        """
        known = dict(zip(self._given, values))
        found: dict[str, Any] = {}
        if self._joint is not None and is_last:
            is_last = not any(part.is_of_none(known) for part in self._parts)
        for part in self._parts_of(None if needed is None else tuple(needed), is_last):
            limit = part.passed(known)
            if limit is not None:
                part = self._of_fewer(part, needed, limit, known)
            found |= part.run(known)
        return tuple([found.get(name) for name in self._tensors])

    def _chosen(self, needed: tuple[bool, ...] | None, is_last: bool) -> list[_Part]:
        """The parts that give the gradients that are asked for."""
        names = self._tensors
        asked = set(names if needed is None else itertools.compress(names, needed))
        if self._joint is not None and is_last and asked.issuperset(self._joint.made):
            return [self._joint]
        return [part for part in self._parts if not asked.isdisjoint(part.made)]

    def _of_fewer(
        self,
        part: _Part,
        needed: Sequence[bool] | None,
        limit: Limit,
        known: Mapping[tuple[str, bool], Any],
    ) -> _Part:
        """What computes those gradients of a part alone that are asked for.

        Raises:
            ArgumentError: these are not right either.
        """
        flags = [True] * len(self._tensors) if needed is None else needed
        asked = {*itertools.compress(self._tensors, flags)}
        made = tuple(name for name in part.made if name in asked)
        if len(made) == len(part.made):
            raise limit.error(known)
        with self._lock:
            if made not in self._fewer:
                self._fewer[made] = self._part(made)()
        fewer = self._fewer[made]
        passed = fewer.passed(known) if fewer.needed <= {*self.saved} else limit
        if passed is not None:
            raise passed.error(known)
        return fewer

    def _part(self, wrt: tuple[str, ...]) -> Callable[[], _Part]:
        """What makes the part that gives these gradients.

        Raises:
            ApplicationError: there is no derivative.
            ArgumentError: a gradient would be left unwritten.
        """
        operator = self._operator
        suffix = f"backward_{'_'.join(wrt)}"
        name, kernel_name = f"{operator.name}_{suffix}", f"{operator.kernel.name}_{suffix}"
        given = self._equal, MOST_PARTS, self._kept, self._is_atomic, self._hidden
        derived = derive(operator.kernel, wrt, kernel_name, (), *given)
        beside = [
            each for each in wrt if self._shape_of(each, derived) is None or each in derived.atomic
        ]
        if beside:
            derived = derive(operator.kernel, wrt, kernel_name, beside, *given)
        for each, (why, place) in derived.unstored.items():
            raise ArgumentError(
                f"operator {operator.name!r}: the gradient of `{each}` would be left unwritten where no program reads "
                f"it: {why}. Where it needs no gradient, leave `{each}` out of `wrt`; or use `kernel.backward` on "
                "tensors of zeros, in a `backward` of yours",
                place or begins_at(operator.kernel.application),
            )
        # Parts have the type of what they become; where that is not given, that of a gradient that is.
        typed = {
            each: each if each in derived.parameters else _first_gradient(derived) for each in wrt
        }
        outputs = {
            derived.made[each]: (derived.parts[each], typed[each])
            if each in derived.parts
            else self._shape_of(each, derived)
            for each in wrt
        }
        declaration = derived.specializations.declaration
        constants = {k: v for k, v in operator.constants.items() if k in declaration.call_names}
        fixed = derived.specializations.fixed(constants)
        plain = define_operator(name, fixed, outputs, constants=constants, has_defaults=False)
        # Parts are sums: they are kept as they were computed.
        added = {derived.made[each] for each in derived.atomic}
        wide = {derived.made[each] for each in derived.parts} | added
        made_of = (
            replace(each, is_wide=each.name in wide, is_added_to=each.name in added)
            for each in plain.outputs
        )
        plain = replace(plain, outputs=tuple(made_of))
        definition = _later(plain, self._making, derived.equal, self._detached)
        of_gradients = {new: old for old, new in derived.gradients.items()}
        names = {declaration.names[s]: operator.kernel.names[s] for s in declaration.symbols}
        arguments = tuple(
            (
                of_gradients.get(entry.name, names.get(entry.name, entry.name)),
                entry.name in of_gradients,
            )
            for entry in definition.inputs
        )
        order = {derived.made[each]: each for each in wrt}
        places = tuple(order[output.name] for output in definition.outputs)
        likes = {each: (each, False) for each in wrt}
        for each in wrt:
            shape = self._shape_of(each, derived)
            if shape is not None and shape.name in of_gradients:
                likes[each] = (of_gradients[shape.name], True)

        limits = limits_of(operator, derived.widened)
        place = begins_at(operator.kernel.application)
        application = place and written_at(place)

        def made() -> _Part:
            computing = self._making(Kernel(derived.specializations), definition)
            adding = {
                each: self._adding(name, each, len(derived.parts.get(each, ())))
                for each in (*derived.parts, *derived.atomic)
            }
            return _Part(computing, arguments, places, adding, likes, limits, application)

        return made

    def _adding(self, operator: str, name: str, rank_of_parts: int) -> Callable[..., Any]:
        """The operator that adds up the parts of an input's gradient, or narrows what is one sum."""
        sources = {p.name: p.source for p in self._operator.kernel.tensor_parameters}
        rank = sources[name].ndim
        specializations = adding_up(rank_of_parts, rank) if rank_of_parts else narrowing(rank)
        outputs = {"gradient": like("input")}
        definition = define_operator(f"{operator}_{name}_sum", specializations.shown, outputs)
        later = _later(definition, self._making, _equal_sizes(definition))
        return self._making(Kernel(specializations), later)

    def _shape_of(self, name: str, derived: Derived) -> Like | None:
        """What a gradient is like: the input, or the gradient of an output that is like the input."""
        if name in derived.parameters:
            return like(name)
        for output in self._operator.outputs:
            gradient = derived.gradients.get(output.name)
            if gradient is not None and output.shape == output.dtype == name:
                return like(gradient)
        return None


def _first_gradient(derived: Derived) -> str:
    return next(iter(derived.gradients.values()))


def _names(operator: OperatorDefinition) -> tuple[str, ...]:
    inputs = (entry.name for entry in operator.inputs)
    return (*inputs, *(entry.name for entry in operator.outputs))


def _check_outputs(operator: OperatorDefinition) -> None:
    changed = [entry.name for entry in operator.inputs if entry.is_changed]
    if changed:
        raise ArgumentError(
            f"operator {operator.name!r} changes {', '.join(f'`{c}`' for c in changed)} in place, so it "
            f"can have no `backward`: make an output of it"
        )
