"""Launch functions: generated Python that takes a call to its plan.

The function reads the tensors through the frontend's own expressions, inlined, makes one exact key
of what a plan may depend on and calls the plan found under it. Where the frontend can compare whole
tensors with those of an earlier call (`Frontend.guard`), a call like the last one needs no key. What
is not found, and what goes wrong, goes the slow way, where everything is checked.
"""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ninetoothed import threads
from ninetoothed.errors import ArgumentError, DeviceError, NineToothedError, caller_location
from ninetoothed.kernels.exact import PLAIN, exact
from ninetoothed.language import dtypes
from ninetoothed.program.written import written

if TYPE_CHECKING:
    from ninetoothed.frontends.base import Frontend
    from ninetoothed.launch.kernel import Kernel
    from ninetoothed.tensors.arrange import Parameter

#: Past so many keys the oldest plans go.
MOST_PLANS = 4096

#: Of an address, in bytes: more makes no difference.
_ALIGNMENT = 16

#: What a launch function calls things that are not its parameters: globals, then variables.
_OWN_NAMES = (
    "plans_",
    "slow_path_",
    "last_",
    "guard_",
    "plain_",
    "exact_",
    "int",
    "Exception",
    *("extra", "unknown", "key", "plan", "run", "stream", "index"),
    *("last", "alike", "others"),
)


class _Missing:
    def __repr__(self) -> str:
        return "<missing>"


MISSING: Any = _Missing()

#: What stands for the last call before there was one.
_NO_PLAN = [None] * 5


def generate(kernel: Kernel, frontend: Frontend) -> Callable[..., Any]:
    """The launch function of a kernel for the tensors of a frontend.

    Its text is in ``launch.__source__``, unless the frontend takes over the launch.
    """
    if frontend.launch is not None:
        return _taken_over(kernel, frontend, frontend.launch(kernel))
    slow = _SlowPath(kernel, frontend)
    text = source_of(kernel, frontend)
    own = _own_names(kernel)
    namespace = {
        **_apart_from_variables(frontend, kernel).names,
        **_globals(kernel),
        own["plans_"]: slow.plans,
        own["slow_path_"]: slow,
        own["last_"]: [_NO_PLAN],
        own["guard_"]: frontend.guard,
        own["plain_"]: PLAIN,
        own["exact_"]: exact,
        own["int"]: int,
        own["Exception"]: Exception,
    }
    _compiled(text, kernel, frontend, namespace)
    launch = namespace["launch"]
    slow.key_of = namespace["key_of"]
    launch.__source__ = text  # type: ignore[attr-defined]
    return launch  # type: ignore[return-value]


def _taken_over(
    kernel: Kernel, frontend: Frontend, run: Callable[[Mapping[str, Any]], Any]
) -> Callable[..., Any]:
    """A launch function that binds the arguments and leaves the rest to the frontend."""
    tensors = [parameter.name for parameter in kernel.definition.tensor_parameters]
    known: set[tuple[type, ...]] = set()

    def slow_path(
        arguments: tuple[Any, ...], extra: tuple[Any, ...], unknown: Mapping[str, Any]
    ) -> Any:
        bound = kernel.bind(*_as_given(kernel.definition.call_names, arguments, extra, unknown))
        if kernel.frontend_of(bound) is not frontend:
            return kernel.dispatch(**bound)
        # A tensor of nobody's may stand where it is not touched; that is asked each time.
        if all(frontend.owns(type(bound[name])) for name in tensors):
            known.add(tuple(value.__class__ for value in bound.values()))
        return run(bound)

    own = _own_names(kernel)
    listed = "".join(f"{name}, " for name in kernel.definition.call_names)
    classes = "".join(f"{name}.__class__, " for name in kernel.definition.call_names)
    bound = ", ".join(f"{name!r}: {name}" for name in kernel.definition.call_names)
    text = (
        f"def launch({_head(kernel, own)}):\n"
        f"    if ({classes}) not in {own['plans_']} or {own['extra']} or {own['unknown']}:\n"
        f"        return {own['slow_path_']}(({listed}), {own['extra']}, {own['unknown']})\n"
        f"    return {own['run']}({{{bound}}})\n"
    )
    namespace = {
        **_globals(kernel),
        own["plans_"]: known,
        own["slow_path_"]: slow_path,
        own["run"]: run,
    }
    return _compiled(text, kernel, frontend, namespace)["launch"]  # type: ignore[no-any-return]


def _globals(kernel: Kernel) -> dict[str, Any]:
    """What the head of any launch function refers to."""
    defaults = {f"default_of_{name}": value for name, value in kernel.definition.defaults.items()}
    return {"__name__": __name__, **defaults, "missing_": MISSING}


def _head(kernel: Kernel, own: Mapping[str, str]) -> str:
    """The parameters of a launch function."""
    defaults = kernel.definition.defaults
    defaulted = [
        f"{name}={f'default_of_{name}' if name in defaults else 'missing_'}"
        for name in kernel.definition.call_names
    ]
    return f"{', '.join(defaulted)}, *{own['extra']}, **{own['unknown']}"


def _compiled(
    text: str, kernel: Kernel, frontend: Frontend, namespace: dict[str, Any]
) -> dict[str, Any]:
    """The namespace with what the text defines; tracebacks show the text."""
    file = f"<launch of {kernel.name} for {frontend.name}>"
    exec(compile(text, file, "exec"), namespace)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return namespace


@dataclass
class _Reading:
    """How the arguments of a call are read, in lines and expressions of the launch function.

    Attributes:
        lines: what is computed first.
        key: what a plan may depend on.
        others: what of it the frontend's guard does not tell.
        values: what a plan is called with, after the stream.
    """

    lines: list[str] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)

    def depends_on(self, *expressions: str, guarded: bool = False) -> None:
        """A plan may depend on these."""
        self.key += expressions
        self.others += () if guarded else expressions


def source_of(kernel: Kernel, frontend: Frontend) -> str:
    """The text of the launch function, and of ``key_of``, which makes the same key."""
    names = kernel.definition.call_names
    frontend = _apart_from_variables(frontend, kernel)
    own = _own_names(kernel)
    reading = _Reading()
    for parameter in kernel.definition.call_parameters:
        _read(parameter, frontend, names, own, reading)
        if _must_be_writable(kernel, frontend, parameter):
            assert frontend.read_only is not None
            reading.depends_on(frontend.read_only.format(x=parameter.name))
    reading.depends_on(*(kernel.definition.names[symbol] for symbol in kernel.definition.symbols))
    listed = "".join(f"{name}, " for name in names)
    lines = "".join(f"        {line}\n" for line in reading.lines)
    arguments = "".join(f", {value}" for value in reading.values)
    slow = own["slow_path_"]
    return (
        f"def launch({_head(kernel, own)}):\n"
        "    try:\n"
        f"{lines}"
        f"{_finding(kernel, frontend, reading, own)}"
        f"    except {own['Exception']}:\n"
        # What is raised within a handler would be told together with what was handled.
        "        pass\n"
        "    else:\n"
        f"        if not ({own['extra']} or {own['unknown']}):\n"
        f"            return {own['run']}({own['stream']}({own['index']}){arguments})\n"
        f"    return {slow}(({listed}), {own['extra']}, {own['unknown']})\n"
        "\n\n"
        f"def key_of({listed}):\n"
        "    if True:\n"
        f"{lines}"
        f"        return {_tuple(reading.key, 8)}\n"
    )


def _finding(kernel: Kernel, frontend: Frontend, reading: _Reading, own: Mapping[str, str]) -> str:
    """Finds the plan: under its key, or that of the last call if all is as it was then."""
    plan = f"{own['run']}, {own['stream']}, {own['index']}"
    key = own["key"]
    if not is_guarded(kernel, frontend):
        return (
            f"        {key} = {_tuple(reading.key, 8)}\n        {plan} = {own['plans_']}[{key}]\n"
        )
    plan = f"{plan}, {own['alike']}, {own['others']}"
    compared = [p.name for p in kernel.definition.call_parameters if p.kind == "tensor"]
    if frontend.guard_addresses:
        compared += [_pointer_of(name, kernel.definition.call_names) for name in compared]
    tensors = ", ".join(compared)
    others = "".join(f"{part}, " for part in reading.others)
    # What guards a plan is made when it serves two calls in turn.
    return (
        f"        {own['last']} = {own['last_']}[0]\n"
        f"        {plan} = {own['last']}\n"
        f"        if {own['others']} != ({others}) or not {own['alike']}({tensors}):\n"
        f"            {key} = {_tuple(reading.key, 12)}\n"
        f"            {own['plan']} = {own['plans_']}[{key}]\n"
        f"            if {own['plan']} is {own['last']}:\n"
        f"                {own['plan']}[3:] = {own['guard_']}({tensors}), ({others})\n"
        f"            {own['last_']}[0] = {own['plan']}\n"
        f"            {plan} = {own['plan']}\n"
    )


def is_guarded(kernel: Kernel, frontend: Frontend) -> bool:
    """Whether the frontend compares the kernel's tensors with those of an earlier call."""
    tensors = [p for p in kernel.definition.call_parameters if p.kind == "tensor"]
    is_jagged = any(p.source.jagged_dim is not None for p in tensors)
    return frontend.guard is not None and bool(tensors) and not is_jagged


def _tuple(parts: list[str], indent: int) -> str:
    space = " " * indent
    return "(\n" + "".join(f"{space}    {part},\n" for part in parts) + f"{space})"


def _own_names(kernel: Kernel) -> dict[str, str]:
    """What each of `_OWN_NAMES` is called where parameters may have the name already."""
    own: dict[str, str] = {}
    for name in _OWN_NAMES:
        own[name] = _apart(name, {*kernel.definition.call_names, *own.values()})
    return own


def _apart_from_variables(frontend: Frontend, kernel: Kernel) -> Frontend:
    """The frontend, in expressions that use no name that the launch function has a variable of."""
    variables = {*kernel.definition.call_names, *_own_names(kernel).values()}
    for name in kernel.definition.call_names:
        variables |= {
            _apart(f"{name}_{what}", kernel.definition.call_names)
            for what in ("pointer", "values", "offsets")
        }
    return frontend.apart_from(variables)


def _apart(name: str, names: Collection[str]) -> str:
    while name in names:
        name += "_"
    return name


def _pointer_of(name: str, names: Collection[str]) -> str:
    """The variable that has a tensor's address."""
    return _apart(f"{name}_pointer", names)


def _read(
    parameter: Parameter,
    frontend: Frontend,
    names: tuple[str, ...],
    own: Mapping[str, str],
    reading: _Reading,
) -> None:
    """How one parameter is read."""
    name = parameter.name
    if parameter.kind == "constexpr":
        plain = f"{name} if {name}.__class__ in {own['plain_']} else {own['exact_']}({name})"
        reading.depends_on(f"{name}.__class__", plain)
        return
    if parameter.kind == "scalar":
        reading.depends_on(f"{name}.__class__")
        if parameter.dtype is None:
            reading.depends_on(
                f"{name}.__class__ is {own['int']} and -0x80000000 <= {name} <= 0x7FFFFFFF"
            )
        reading.values.append(name)
        return
    source, shape, strides = name, frontend.shape, frontend.strides
    if parameter.source.jagged_dim is not None and frontend.jagged is not None:
        source = _apart(f"{name}_values", names)
        offsets = _apart(f"{name}_offsets", names)
        reading.lines.append(f"{source} = {frontend.jagged.values.format(x=name)}")
        reading.lines.append(f"{offsets} = {frontend.jagged.offsets.format(x=name)}")
        shape, strides = frontend.jagged.shape, frontend.jagged.strides
    pointer = _pointer_of(name, names)
    reading.lines.append(f"{pointer} = {frontend.pointer.format(x=source)}")
    reading.depends_on(
        f"{name}.__class__",
        shape.format(x=name),
        strides.format(x=name),
        frontend.dtype.format(x=source),
        frontend.device.format(x=source),
        guarded=True,
    )
    reading.depends_on(f"{pointer} & {_ALIGNMENT - 1}")
    reading.values.append(pointer)
    if source != name:
        reading.values.append(frontend.pointer.format(x=offsets))


class _SlowPath:
    """What a launch function calls for a new key, and when anything was not as it expects."""

    def __init__(self, kernel: Kernel, frontend: Frontend) -> None:
        self._kernel = kernel
        self._frontend = frontend
        self.plans: dict[Any, Any] = {}
        self._planning = threads.lock()
        self.key_of: Callable[..., Any] = lambda *arguments: None

    def __call__(
        self,
        arguments: tuple[Any, ...],
        extra: tuple[Any, ...],
        unknown: Mapping[str, Any],
    ) -> Any:
        kernel = self._kernel
        bound = kernel.bind(*_as_given(kernel.definition.call_names, arguments, extra, unknown))
        frontend = kernel.frontend_of(bound)
        if frontend is not self._frontend:
            return kernel.dispatch(**bound)
        given, values = described(kernel, frontend, bound)
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
                entry = self._new_entry(given, values)
                while len(self.plans) >= MOST_PLANS:
                    self.plans.pop(next(iter(self.plans)), None)
                self.plans[key] = entry
        run, stream, index, *_ = entry
        return run(stream(index), *values)

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

    def _new_entry(self, given: Mapping[str, Any], values: tuple[Any, ...]) -> Any:
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
        # What guards it is put in by the launch function.
        unguarded = [None, None] if is_guarded(self._kernel, frontend) else []
        return [plan.run, stream, device.index, *unguarded]


def _check_constants(kernel: Kernel, frontend: Frontend, bound: Mapping[str, Any]) -> None:
    constants = {p.name for p in kernel.definition.call_parameters if p.kind == "constexpr"}
    constants |= {kernel.definition.names[symbol] for symbol in kernel.definition.symbols}
    for name in kernel.definition.call_names:
        # It may change while it stays the same object, and what was compiled for it would not.
        if name in constants and frontend.owns(type(bound[name])):
            raise ArgumentError(
                f"kernel `{kernel.name}`: `{name}` is a compile-time constant, got a tensor of "
                f"{frontend.name}. Give the number that it holds, as `.item()` does."
            )
    for parameter in kernel.definition.call_parameters:
        if parameter.kind != "constexpr":
            continue
        try:
            hash(bound[parameter.name])
        except TypeError:
            raise ArgumentError(
                f"kernel `{kernel.name}`: `{parameter.name}` is a compile-time constant "
                f"and must be hashable, got {bound[parameter.name]!r}"
                f"{_as_tuple(bound[parameter.name])}"
            ) from None


def _as_tuple(value: Any) -> str:
    return f". Give {tuple(value)!r}." if isinstance(value, list) else ""


def _number(kernel: Kernel, frontend: Frontend, name: str, value: Any) -> Any:
    """A scalar as a Python number: as given, or what a tensor or NumPy scalar holds."""
    if not isinstance(value, (bool, int, float)):
        if frontend.owns(type(value)):
            is_scalar = len(frontend.evaluate("shape", value)) == 0
            value = frontend.evaluate("item", value) if is_scalar else value
        elif hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
            value = value.item()
    if not isinstance(value, (bool, int, float)):
        raise ArgumentError(
            f"kernel `{kernel.name}`: `{name}` is passed by value and must be a number "
            f"or a tensor of no dimensions, got {value!r}"
        )
    dtype = next(p.dtype for p in kernel.definition.parameters if p.name == name)
    if dtype is not None and dtype.is_floating():
        return float(value)
    if dtype is not None and isinstance(value, float):
        raise ArgumentError(
            f"kernel `{kernel.name}`: `{name}` was declared as {dtype}, got {value!r}"
        )
    return value


def described(
    kernel: Kernel, frontend: Frontend, bound: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """What `Kernel.new_plan` wants to know, and what the plan is called with."""
    _check_constants(kernel, frontend, bound)
    given, values = dict(bound), []
    untouched = _only_sizes_matter(kernel, frontend, bound)
    for parameter in kernel.definition.call_parameters:
        name, value = parameter.name, bound[parameter.name]
        if parameter.kind == "scalar":
            value = _number(kernel, frontend, name, value)
            given[name] = parameter.dtype or _scalar_dtype(value)
            values.append(value)
        if parameter.kind != "tensor":
            continue
        if name in untouched and hasattr(value, "shape"):
            shape = tuple(value.shape)
            given[name] = (shape, (0,) * len(shape), None, None, _ALIGNMENT)
            values += [0] if parameter.source.jagged_dim is None else [0, 0]
            continue
        _check_jagged(kernel, frontend, parameter, value)
        _check_writable(kernel, frontend, parameter, value)
        is_jagged = parameter.source.jagged_dim is not None
        held = frontend.evaluate("jagged.values", value) if is_jagged else value
        prefix = "jagged." if is_jagged else ""
        pointer = _address(kernel, frontend, name, held)
        given[name] = (
            frontend.evaluate(f"{prefix}shape", value),
            frontend.evaluate(f"{prefix}strides", value),
            frontend.evaluate("dtype", held),
            frontend.evaluate("device", held),
            math.gcd(pointer, _ALIGNMENT),
        )
        values.append(pointer)
        if is_jagged:
            offsets = frontend.evaluate("jagged.offsets", value)
            values.append(frontend.evaluate("pointer", offsets))
    return given, tuple(values)


def _address(kernel: Kernel, frontend: Frontend, name: str, held: Any) -> int:
    """Where a tensor's elements are.

    Raises:
        ArgumentError: it has no memory: it is sparse, or a transformation's stand-in.
        DeviceError: nothing is kept on its device.
    """
    subject = f"kernel `{kernel.name}`: `{name}`"
    try:
        pointer: int = frontend.evaluate("pointer", held)
    except NineToothedError:
        raise
    except (RuntimeError, ValueError) as error:
        # PyTorch's ValueError is of a parameter that was not initialised.
        raise ArgumentError(
            f"{subject} has no memory that a kernel could reach: {error}. Give a dense tensor that "
            "holds its elements: `.to_dense()` makes one of a sparse tensor; what a transformation "
            "such as vmap hands around holds none."
        ) from error
    if pointer == 0:
        try:
            frontend.device_of(frontend.evaluate("device", held))
        except DeviceError as error:
            raise DeviceError(f"{subject}: {error.message}", caller_location()) from None
    return pointer


def _only_sizes_matter(
    kernel: Kernel, frontend: Frontend, bound: Mapping[str, Any]
) -> frozenset[str]:
    """The tensors that the program does not touch, but for one that says where it runs."""
    untouched = kernel.definition.untouched(bound)
    parameters = {parameter.name: parameter for parameter in kernel.definition.tensor_parameters}
    owned = [name for name in parameters if frontend.owns(type(bound[name]))]
    first = next((name for name in owned if name not in untouched), owned[0])
    untouched -= {first}
    if not untouched or not _is_on_cpu(frontend, parameters[first], bound[first]):
        return untouched
    # There the application itself runs, and reads what the program has no use for.
    return frozenset(
        name
        for name in untouched
        if name not in owned or not _is_as_declared(frontend, parameters[name], bound[name])
    )


def _is_on_cpu(frontend: Frontend, parameter: Parameter, value: Any) -> bool:
    if parameter.source.jagged_dim is not None:
        value = frontend.evaluate("jagged.values", value)
    try:
        return frontend.device_of(frontend.evaluate("device", value)).kind == "cpu"
    except DeviceError:
        return False


def _is_as_declared(frontend: Frontend, parameter: Parameter, value: Any) -> bool:
    """Whether a tensor could stand where the program touches it."""
    source = parameter.source
    if source.jagged_dim is not None or len(value.shape) != source.ndim:
        return False
    try:
        dtype = frontend.dtype_of(frontend.evaluate("dtype", value))
    except ArgumentError:
        return False
    sizes = zip(source.shape, value.shape)
    return (
        source.dtype in (None, dtype)
        and all(size == given for size, given in sizes if isinstance(size, int))
        and _is_on_cpu(frontend, parameter, value)
    )


def _check_jagged(kernel: Kernel, frontend: Frontend, parameter: Parameter, value: Any) -> None:
    wanted = parameter.source.jagged_dim
    subject = f"kernel `{kernel.name}`: `{parameter.name}`"
    if frontend.jagged is None:
        if wanted is not None:
            raise ArgumentError(f"{subject} is jagged, and {frontend.name} has no such tensors")
        return
    is_jagged = bool(frontend.evaluate("jagged.test", value))
    if is_jagged and wanted is None:
        raise ArgumentError(
            f"{subject} is a jagged tensor; declare it with jagged_dim, as in "
            f"Tensor({parameter.source.ndim}, jagged_dim=1)"
        )
    if wanted is not None and not is_jagged:
        raise ArgumentError(f"{subject} was declared with jagged_dim={wanted}; it is not jagged")
    if wanted is not None:
        found = frontend.evaluate("jagged.ragged_dim", value)
        if found != wanted:
            raise ArgumentError(
                f"{subject} was declared with jagged_dim={wanted}; its dimension {found} varies"
            )


def _must_be_writable(kernel: Kernel, frontend: Frontend, parameter: Parameter) -> bool:
    if frontend.read_only is None or parameter.kind != "tensor":
        return False
    return parameter.name in written(kernel.definition.program)


def _check_writable(kernel: Kernel, frontend: Frontend, parameter: Parameter, value: Any) -> None:
    if not _must_be_writable(kernel, frontend, parameter):
        return
    if frontend.evaluate("read_only", value):
        raise ArgumentError(
            f"kernel `{kernel.name}`: `{parameter.name}` is written to, and the argument is "
            "read-only. Pass a copy."
        )


def _as_given(
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


def _scalar_dtype(value: Any) -> dtypes.DType:
    """The element type of a number passed by value, as Triton chooses it."""
    if isinstance(value, bool):
        return dtypes.bool
    if isinstance(value, float):
        return dtypes.float32
    if -(2**31) <= value < 2**31:
        return dtypes.int32
    return dtypes.int64 if value < 2**63 else dtypes.uint64
