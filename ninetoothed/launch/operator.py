"""`op`: a kernel as an operator, which makes its outputs, in every framework that has operators."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ninetoothed import plugins, threads
from ninetoothed.derivatives.parts import zeroing
from ninetoothed.errors import ArgumentError, near
from ninetoothed.kernels.operator import OperatorDefinition, Output, autocast_rule, define_operator
from ninetoothed.language import dtypes
from ninetoothed.launch.batched import Batching
from ninetoothed.launch.kernel import Kernel, by_name
from ninetoothed.tensors.arrange import NO_VALUE

#: The names of a generated text that are not inputs or outputs of the operator.
_OWN_NAMES = tuple(
    f"{name}_"
    for name in "kernel empty like native default constant found wide zero one_type".split()
)


def op(
    name: str,
    kernel: Kernel,
    outputs: Mapping[str, Any],
    backward: Callable[..., Any] | str | None = None,
    saved: Sequence[str] = (),
    constants: Mapping[str, Any] | None = None,
    wrt: Sequence[str] | None = None,
    autocast: str | None = "by_program",
    atomic: bool = False,
    hidden: Sequence[str] = (),
) -> Operator:
    """An operator of a kernel: a function that takes the inputs and returns new outputs.

    Args:
        name: ``"namespace::name"``, under which frameworks register it.
        kernel: made by `make` or `jit`.
        outputs: for each tensor that is made, ``like("input")`` or ``(shape, dtype)``: sizes over the
            kernel's symbolic tensors and an element type, or the name of the input that has it. A
            tensor that the kernel stores to and that is not listed is changed in place.
        backward: given the gradients of the outputs, then the values of `saved`, gives the gradients
            of the tensors among the inputs in order, None where there is none; the gradient itself
            where there is one tensor. ``"derive"`` derives it from the kernel, and what it is made of
            has derivatives too.
        saved: names of inputs and outputs that ``backward`` needs.
        constants: values of constexpr symbols and parameters, by name, that calls then do not give.
        wrt: with ``backward="derive"``, the inputs that have gradients; by default all that an output
            depends on. One that is left out has none, as if it were detached: where it requires grad, nothing
            says so.
        autocast: what becomes of float tensors where the framework chooses element types itself
            (``torch.autocast``): ``"lower"``, its lower precision, ``"float32"``, or None, they stay.
            By default ``"lower"`` for kernels with matrix products, else None.
        atomic: with ``backward="derive"``, whether the gradient of what several programs have is added
            up by atomic operations, in any order, and not in parts and loops. Windows that overlap have
            a gradient then; there is none of the gradient.
        hidden: outputs that backward alone needs: they are made and can be `saved`; calls do not return
            them, and a ``backward`` of yours is not given their gradients.

    Returns:
        a function of the inputs, in the kernel's order or by name, then of the constexpr symbols. It
        returns the output, a tuple of several, or None where all is changed in place.

    Raises:
        ArgumentError: a name or an output is not as it must be.
        ApplicationError: the kernel has no derived backward; the error says which line is why.
    """
    if not isinstance(kernel, Kernel):
        raise ArgumentError(
            f"operator {name!r}: `op` takes a kernel, as `make` returns it, not {kernel!r}"
        )
    if not isinstance(outputs, Mapping):
        raise ArgumentError(
            f"operator {name!r}: `outputs` says of each by its name, not {outputs!r}"
        )
    fixed = kernel.specializations.fixed(constants or {})
    rule = autocast_rule(name, fixed.program, autocast)
    shown = _shown(name, outputs, hidden)
    if backward == "derive":
        from ninetoothed.launch.derived import with_backward

        if saved:
            raise ArgumentError(
                f"operator {name!r}: `saved` is for a `backward` of yours; what a derived one needs is "
                "saved for it"
            )
        plain = define_operator(name, fixed, outputs, None, (), constants)
        derived = with_backward(plain, Operator, wrt, atomic, hidden)
        return Operator(kernel, replace(derived, autocast=rule), shown)
    if not (backward is None or callable(backward)) or wrt is not None or atomic:
        raise ArgumentError(
            f'operator {name!r}: `backward` is a function, "derive" or None, not {backward!r}; `wrt` and '
            '`atomic` go with "derive"'
        )
    definition = define_operator(name, fixed, outputs, backward, saved, constants)
    if backward is not None and shown is not None:
        of_all = _of_shown(definition, backward, shown)
        definition = replace(definition, backward=of_all, ungiven=frozenset(hidden))
    return Operator(kernel, replace(definition, autocast=rule), shown)


def _shown(name: str, outputs: Mapping[str, Any], hidden: Sequence[str]) -> frozenset[str] | None:
    """The outputs that calls return; None for all.

    Raises:
        ArgumentError: what is hidden is no output, or all outputs are.
    """
    for entry in hidden:
        if entry not in outputs:
            raise ArgumentError(
                f"operator {name!r}: `hidden` has {entry!r}, which is no output.{near(entry, [*outputs])}"
            )
    if hidden and outputs.keys() <= set(hidden):
        raise ArgumentError(
            f"operator {name!r}: all outputs are `hidden`, so calls would return none"
        )
    return frozenset(outputs.keys() - set(hidden)) if hidden else None


def _of_shown(
    definition: OperatorDefinition, backward: Callable[..., Any], shown: frozenset[str]
) -> Callable[..., Any]:
    """A backward of the gradients of the outputs that calls return, as one of those of all."""
    places = [place for place, each in enumerate(definition.outputs) if each.name in shown]
    count = len(definition.outputs)

    def of_all(*values: Any) -> Any:
        return backward(*[values[place] for place in places], *values[count:])

    return of_all


class Operator:
    """A kernel as an operator; see `op`.

    Attributes:
        kernel: the kernel that runs.
        definition: what the operator is without a framework.
        shown: the outputs that calls return; None for all.
    """

    #: As of `Kernel`.
    launches_programs = True

    def __init__(
        self, kernel: Kernel, definition: OperatorDefinition, shown: frozenset[str] | None = None
    ) -> None:
        self.kernel = kernel
        self.shown = shown
        self.definition = replace(definition, batched=Batching(definition, Operator))
        self._lock = threads.reentrant_lock()
        self._functions: dict[Any, Callable[..., Any]] = {}
        self._by_type: dict[type, Callable[..., Any]] = {}
        self.__name__ = definition.name.rpartition("::")[2]
        self.__doc__ = kernel.__doc__
        # Where a framework is loaded already, its compilers may see the first call.
        for frontend in plugins.MANAGER.frontends():
            if frontend.operator is not None and sys.modules.get(frontend.name):
                self._function(frontend)

    def __copy__(self) -> Operator:
        return self

    def __deepcopy__(self, memo: Any) -> Operator:
        """The operator itself, as of a function: modules that hold operators can be copied."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """As of `Kernel`.

        Raises:
            ArgumentError: no module has a name for it.
        """
        return by_name(self, self.kernel.__module__, f"operator {self.definition.name!r}")

    def __repr__(self) -> str:
        return f"<operator {self.definition.name} of {self.kernel!r}>"

    def __call__(self, /, *arguments: Any, **keywords: Any) -> Any:
        # Compilers cannot follow what looks for a framework, nor need it, once there is one.
        for argument in (*arguments, *keywords.values()) if keywords else arguments:
            function = self._by_type.get(type(argument))
            if function is not None:
                return function(*arguments, **keywords)
        return self._found(arguments, keywords)(*arguments, **keywords)

    def _found(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Callable[..., Any]:
        """The function for the framework of the arguments."""
        for argument in (*arguments, *keywords.values()):
            frontend = plugins.find_frontend(type(argument))
            if frontend is not None:
                return self._by_type.setdefault(type(argument), self._function(frontend))
        listed = ", ".join(type(each).__name__ for each in (*arguments, *keywords.values()))
        raise ArgumentError(
            f"operator {self.definition.name!r} takes at least one tensor; it got {listed or 'nothing'}"
        )

    def _function(self, frontend: Any) -> Callable[..., Any]:
        with self._lock:
            if frontend not in self._functions:
                self._functions[frontend] = self._made(frontend)
            return self._functions[frontend]

    def _made(self, frontend: Any) -> Callable[..., Any]:
        def functions(
            empty: Callable[..., Any], like: Callable[..., Any] | None = None
        ) -> tuple[Callable[..., Any], Callable[..., Any]]:
            return _generated(self.definition, self.kernel, frontend, empty, like)

        if frontend.operator is not None:
            function, types = frontend.operator(self.definition, functions)
            function = self._showing(function)
            self._by_type |= dict.fromkeys(types, function)
            return function  # type: ignore[no-any-return]
        if self.definition.backward is not None:
            raise ArgumentError(
                f"operator {self.definition.name!r} has a `backward`, but the frontend of "
                f"{frontend.name} knows no operators with gradients; make one without"
            )

        def empty(beside: Any, shape: Any, dtype: Any) -> Any:
            device = frontend.device_of(frontend.evaluate("device", beside))
            return frontend.empty(tuple(shape), frontend.dtype_of(dtype), device)

        return self._showing(functions(empty)[1])

    def _showing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that gives all outputs as one of those that are shown."""
        if self.shown is None:
            return function
        outputs = enumerate(self.definition.outputs)
        first, *others = [place for place, each in outputs if each.name in self.shown]

        def one(*arguments: Any, **keywords: Any) -> Any:
            return function(*arguments, **keywords)[first]

        def several(*arguments: Any, **keywords: Any) -> Any:
            found = function(*arguments, **keywords)
            return tuple([found[place] for place in (first, *others)])

        return several if others else one


def _generated(
    definition: OperatorDefinition,
    kernel: Kernel,
    frontend: Any,
    empty: Callable[..., Any],
    like: Callable[..., Any] | None,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Two functions of the inputs: one that makes the outputs, one that has the kernel write them too.

    Args:
        empty: makes an uninitialised tensor beside another, of a shape and a framework's dtype.
        like: makes one of another's shape and dtype; None where `empty` does.
    """
    taken = {*definition.kernel.call_names}
    own = {
        name: name + "_" * sum(len(t) for t in taken if t.startswith(name)) for name in _OWN_NAMES
    }
    apart = frontend.apart_from(taken)
    namespace = {**apart.names, own["kernel_"]: kernel, own["empty_"]: empty}
    namespace[own["like_"]] = like
    parameters = []
    for place, entry in enumerate(definition.inputs):
        has_default = entry.default is not NO_VALUE
        default = f"{own['default_']}{place}"
        parameters.append(f"{entry.name}={default}" if has_default else entry.name)
        if has_default:
            namespace[default] = entry.default
    made = [
        f"{output.name} = {_making(definition, place, frontend, apart, own, namespace)}"
        for place, output in enumerate(definition.outputs)
    ]
    zeroed = []
    for place, output in enumerate(definition.outputs):
        if output.is_added_to:
            zero = f"{own['zero_']}{place}"
            source = definition.kernel.program.parameter(output.name).source
            namespace[zero] = Kernel(zeroing(source.ndim))
            zeroed.append(f"{zero}({output.name})")
    names = [output.name for output in definition.outputs]
    result = names[0] if len(names) == 1 else f"({', '.join(names)},)" if names else "None"
    given = list(definition.kernel.call_names)
    for place, name in enumerate(given):
        if name in definition.constants:
            given[place] = f"{own['constant_']}{place}"
            namespace[given[place]] = definition.constants[name]
    call = f"{own['kernel_']}({', '.join(given)})"
    listed = ", ".join(parameters)
    found = own["found_"]
    text = "\n    ".join([f"def allocate({listed}):", *made, f"return {result}"])
    text += "\n\n\n" + "\n    ".join(
        [
            f"def forward({listed}):",
            *made,
            *zeroed,
            f"{found} = {call}",
            f"return {result} if {found} is None else {found}",
        ]
    )
    exec(compile(f"{text}\n", f"<operator {definition.name}>", "exec"), namespace)
    namespace["forward"].__qualname__ = f"operator {definition.name!r}"  # type: ignore[attr-defined]
    return namespace["allocate"], namespace["forward"]  # type: ignore[return-value]


def _making(
    definition: OperatorDefinition,
    place: int,
    frontend: Any,
    apart: Any,
    own: Mapping[str, str],
    namespace: dict[str, Any],
) -> str:
    """The expression that makes an output; what it uses is put into the namespace."""
    output = definition.outputs[place]
    dtype = f"{own['native_']}{place}"
    if isinstance(output.dtype, str):
        dtype = apart.dtype.format(x=output.dtype)
        if output.alike:
            one_type = f"{own['one_type_']}{place}"
            namespace[one_type] = functools.partial(_one_type, definition, output, frontend)
            dtype = f"{one_type}({', '.join(output.alike)})"
    else:
        namespace[dtype] = frontend.native_dtype(output.dtype)
    if output.is_wide:
        wide, narrow = f"{own['wide_']}{place}", f"{own['native_']}{place}"
        namespace[wide] = frontend.native_dtype(dtypes.float64)
        namespace[narrow] = frontend.native_dtype(dtypes.float32)
        dtype = f"({wide} if {dtype} == {wide} else {narrow})"
    elif namespace[own["like_"]] is not None and output.shape == output.dtype:
        return f"{own['like_']}({output.shape})"
    beside = definition.tensors[0].name if definition.tensors else "None"
    return f"{own['empty_']}({beside}, {definition.shape_text(output, apart.shape)}, {dtype})"


def _one_type(definition: OperatorDefinition, output: Output, frontend: Any, *tensors: Any) -> Any:
    """The framework's dtype that all of these have; `ArgumentError` where they do not have one."""
    found = [
        (name, frontend.evaluate("dtype", tensor))
        for name, tensor in zip(output.alike, tensors)
        if tensor is not None
    ]
    dtype = found[0][1]
    if any(other != dtype for _, other in found):
        types = ", ".join(f"`{name}` {other}" for name, other in found)
        raise ArgumentError(
            f"operator {definition.name!r}: output `{output.name}` has the element type None, as the `.dtype` of each "
            f"tensor that was declared without one is, and these have several: {types}. Give the name of the one "
            f"that it has: `outputs={{{output.name!r}: (…, {output.dtype!r})}}`"
        )
    return dtype
