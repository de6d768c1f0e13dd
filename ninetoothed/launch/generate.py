"""Launch functions: generated Python that takes a call to its plan.

The function reads the tensors through the frontend's own expressions, inlined, makes one exact key
of what a plan may depend on and calls the plan found under it. Where the frontend can compare whole
tensors with those of an earlier call (`Frontend.guard`), a call like the last one needs no key. What
is not found, and what goes wrong, goes the slow way (`slow_path`), where everything is checked.
"""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ninetoothed.kernels.constant_keys import PLAIN, constant_key
from ninetoothed.launch.absent_tensors import without_none
from ninetoothed.launch.arguments import ALIGNMENT, may_be_stored
from ninetoothed.launch.scalars import key_parts, past_32_bits, scale_part
from ninetoothed.launch.slow_path import MISSING, SlowPath, as_given
from ninetoothed.records import dataclass

if TYPE_CHECKING:
    from ninetoothed.frontends.base import Frontend
    from ninetoothed.launch.kernel import Kernel
    from ninetoothed.tensors.arrange import Parameter

#: What a launch function calls things that are not its parameters: globals, then variables.
_OWN_NAMES = (
    "plans_",
    "slow_path_",
    "of_family_",
    "last_",
    "guard_",
    "plain_",
    "exact_",
    "past_32_bits_",
    "state_",
    "int",
    "float",
    "isinstance",
    "Exception",
    "KeyError",
    *("extra", "unknown", "key", "plan", "run", "stream", "index", "stored"),
    *("last", "alike", "others"),
)


def generate(kernel: Kernel, frontend: Frontend) -> Callable[..., Any]:
    """The launch function of a kernel for the tensors of a frontend.

    Its text is in ``launch.__source__``, unless the frontend takes over the launch.
    """
    if frontend.launch is not None:
        return _taken_over(kernel, frontend, frontend.launch(kernel))
    reading = _reading_of(kernel, _apart_from_variables(frontend, kernel))
    is_guarded = _is_guarded(kernel, frontend)
    # What no call is like: an address's alignment is among what is compared.
    unguarded = [None, (None,) * len(reading.others)] if is_guarded else []
    slow = SlowPath(kernel, frontend, unguarded)
    text = _text(kernel, frontend, reading)
    own = _own_names(kernel)
    namespace = {
        **_apart_from_variables(frontend, kernel).names,
        **_globals(kernel),
        own["plans_"]: slow.plans,
        own["slow_path_"]: slow,
        own["of_family_"]: slow.of_family,
        own["last_"]: [[None] * 4 + unguarded],
        own["guard_"]: _guard(kernel, frontend),
        own["plain_"]: PLAIN,
        own["exact_"]: constant_key,
        own["past_32_bits_"]: past_32_bits,
        own["state_"]: slow.state,
        own["int"]: int,
        own["float"]: float,
        own["isinstance"]: isinstance,
        own["Exception"]: Exception,
        own["KeyError"]: KeyError,
    }
    _compiled(text, kernel, frontend, namespace)
    launch = namespace["launch"]
    slow.key_of, slow.launch = namespace["key_of"], launch  # type: ignore[assignment]
    slow.number_places, slow.key_length = reading.number_places, len(reading.key)
    launch.__source__ = text  # type: ignore[attr-defined]
    if frontend.opaque is not None:
        frontend.opaque(launch)
    return launch  # type: ignore[return-value]


def _guard(kernel: Kernel, frontend: Frontend) -> Any:
    """The frontend's guard, which knows what is stored to where that makes a difference."""
    if frontend.guard is None or frontend.state is None:
        return frontend.guard
    return functools.partial(frontend.guard, stored=may_be_stored(kernel))


def _taken_over(
    kernel: Kernel, frontend: Frontend, run: Callable[[Mapping[str, Any]], Any]
) -> Callable[..., Any]:
    """A launch function that binds the arguments and leaves the rest to the frontend."""
    tensors = [parameter.name for parameter in kernel.declaration.tensor_parameters]
    known: set[tuple[type, ...]] = set()

    def slow_path(
        arguments: tuple[Any, ...], extra: tuple[Any, ...], unknown: Mapping[str, Any]
    ) -> Any:
        bound = kernel.bind(*as_given(kernel.declaration.call_names, arguments, extra, unknown))
        if kernel.frontend_of(bound) is not frontend:
            return kernel.dispatch(**bound)
        if any(bound[name] is None for name in tensors):
            bound = without_none(kernel.definition_of(bound, frontend), frontend, bound)
        # A tensor of nobody's may stand where it is not touched; that is asked each time.
        if all(frontend.owns(type(bound[name])) for name in tensors):
            known.add(tuple(value.__class__ for value in bound.values()))
        return run(bound)

    own = _own_names(kernel)
    listed = "".join(f"{name}, " for name in kernel.declaration.call_names)
    classes = "".join(f"{name}.__class__, " for name in kernel.declaration.call_names)
    bound = ", ".join(f"{name!r}: {name}" for name in kernel.declaration.call_names)
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
    defaults = {f"default_of_{name}": value for name, value in kernel.declaration.defaults.items()}
    return {"__name__": __name__, **defaults, "missing_": MISSING}


def _head(kernel: Kernel, own: Mapping[str, str]) -> str:
    """The parameters of a launch function."""
    defaults = kernel.declaration.defaults
    defaulted = [
        f"{name}={f'default_of_{name}' if name in defaults else 'missing_'}"
        for name in kernel.declaration.call_names
    ]
    return f"{', '.join(defaulted)}, *{own['extra']}, **{own['unknown']}"


def _compiled(
    text: str, kernel: Kernel, frontend: Frontend, namespace: dict[str, Any]
) -> dict[str, Any]:
    """The namespace with what the text defines; tracebacks show the text."""
    file = f"<launch of {kernel.name} for {frontend.name}>"
    exec(compile(text, file, "exec"), namespace)
    # What Python itself refuses, an argument that is given twice, it tells of by this name.
    namespace["launch"].__qualname__ = kernel.name
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
        tensors: what holds the elements of each tensor.
        stored: the tensors that may be stored to.
        number_places: where in the key each tensor's shape is, its strides next; nothing where some
            tensor's are not there as they are.
    """

    lines: list[str] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    tensors: list[str] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    number_places: list[int] = field(default_factory=list)

    def depends_on(self, *expressions: str, guarded: bool = False) -> None:
        """A plan may depend on these."""
        self.key += expressions
        self.others += () if guarded else expressions


def source_of(kernel: Kernel, frontend: Frontend) -> str:
    """The text of the launch function, and of ``key_of``, which makes the same key."""
    return _text(kernel, frontend, _reading_of(kernel, _apart_from_variables(frontend, kernel)))


def _reading_of(kernel: Kernel, frontend: Frontend) -> _Reading:
    """How the arguments of a call are read."""
    names, own = kernel.declaration.call_names, _own_names(kernel)
    reading = _Reading()
    tensors = kernel.declaration.tensor_parameters
    reading.stored += [tensors[place].name for place in may_be_stored(kernel)]
    for parameter in kernel.declaration.call_parameters:
        _read(parameter, frontend, names, own, reading)
        if parameter.kind == "scalar" and kernel.specializations.may_have_scales:
            reading.depends_on(scale_part(parameter, own))
        if frontend.read_only is not None and parameter.name in reading.stored:
            reading.depends_on(frontend.read_only.format(x=parameter.name))
    reading.depends_on(*(kernel.declaration.names[symbol] for symbol in kernel.declaration.symbols))
    if frontend.state is not None:
        reading.depends_on(f"{own['state_']}({', '.join(reading.tensors)})", guarded=True)
    if any(p.source.jagged_dim is not None for p in tensors):
        reading.number_places.clear()
    return reading


def _text(kernel: Kernel, frontend: Frontend, reading: _Reading) -> str:
    names, own = kernel.declaration.call_names, _own_names(kernel)
    frontend = _apart_from_variables(frontend, kernel)
    listed = "".join(f"{name}, " for name in names)
    lines = "".join(f"        {line}\n" for line in reading.lines)
    arguments = "".join(f", {value}" for value in reading.values)
    slow = own["slow_path_"]
    return (
        f"def launch({_head(kernel, own)}):\n"
        "    try:\n"
        f"{lines}"
        f"{_finding(kernel, frontend, reading, own)}"
        f"{_telling(frontend, reading, own)}"
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
    plan = f"{own['run']}, {own['stream']}, {own['index']}, {own['stored']}"
    if not _is_guarded(kernel, frontend):
        return f"{_looking_up(kernel, reading, own, 8)}        {plan} = {own['plan']}\n"
    plan = f"{plan}, {own['alike']}, {own['others']}"
    compared = [p.name for p in kernel.declaration.call_parameters if p.kind == "tensor"]
    unguarded = "" if frontend.unguarded_now is None else f"{frontend.unguarded_now} or "
    if frontend.unguarded is not None:
        unguarded += "".join(f"{frontend.unguarded.format(x=name)} or " for name in compared)
    if frontend.guard_addresses:
        compared += [_pointer_of(name, kernel.declaration.call_names) for name in compared]
    tensors = ", ".join(compared)
    others = "".join(f"{part}, " for part in reading.others)
    # One by one: a tuple to compare with would be made at each call.
    differs = "".join(
        f"{own['others']}[{place}] {'is not' if part.endswith('.__class__') else '!='} ({part}) or "
        for place, part in enumerate(reading.others)
    )
    # What guards a plan is made when it serves two calls in turn.
    return (
        f"        {own['last']} = {own['last_']}[0]\n"
        f"        {plan} = {own['last']}\n"
        f"        if {differs}{unguarded}not {own['alike']}({tensors}):\n"
        f"{_looking_up(kernel, reading, own, 12)}"
        f"            if {own['plan']} is {own['last']}:\n"
        f"                {own['plan']}[4:] = {own['guard_']}({tensors}), ({others})\n"
        f"            {own['last_']}[0] = {own['plan']}\n"
        f"            {plan} = {own['plan']}\n"
    )


def _looking_up(kernel: Kernel, reading: _Reading, own: Mapping[str, str], indent: int) -> str:
    """The plan that is known under the key, or is made of one that differs in sizes and strides alone."""
    space, listed = " " * indent, "".join(f"{name}, " for name in kernel.declaration.call_names)
    return (
        f"{space}{own['key']} = {_tuple(reading.key, indent)}\n"
        f"{space}try:\n"
        f"{space}    {own['plan']} = {own['plans_']}[{own['key']}]\n"
        f"{space}except {own['KeyError']}:\n"
        f"{space}    {own['plan']} = {own['of_family_']}({own['key']}, ({listed}))\n"
    )


def _telling(frontend: Frontend, reading: _Reading, own: Mapping[str, str]) -> str:
    """Tells the frontend what is stored to."""
    if frontend.stored is None or not reading.stored:
        return ""
    return f"        {own['stored']}(({''.join(f'{name}, ' for name in reading.stored)}))\n"


def _is_guarded(kernel: Kernel, frontend: Frontend) -> bool:
    """Whether the frontend compares the kernel's tensors with those of an earlier call."""
    tensors = [p for p in kernel.declaration.call_parameters if p.kind == "tensor"]
    is_jagged = any(p.source.jagged_dim is not None for p in tensors)
    return frontend.guard is not None and bool(tensors) and not is_jagged


def _tuple(parts: list[str], indent: int) -> str:
    space = " " * indent
    return "(\n" + "".join(f"{space}    {part},\n" for part in parts) + f"{space})"


def _own_names(kernel: Kernel) -> dict[str, str]:
    """What each of `_OWN_NAMES` is called where parameters may have the name already."""
    own: dict[str, str] = {}
    for name in _OWN_NAMES:
        own[name] = _apart(name, {*kernel.declaration.call_names, *own.values()})
    return own


def _apart_from_variables(frontend: Frontend, kernel: Kernel) -> Frontend:
    """The frontend, in expressions that use no name that the launch function has a variable of."""
    variables = {*kernel.declaration.call_names, *_own_names(kernel).values()}
    for name in kernel.declaration.call_names:
        variables |= {
            _apart(f"{name}_{what}", kernel.declaration.call_names)
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
        reading.depends_on(*key_parts(parameter, own))
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
    if not frontend.state_tells_types or source != name:
        reading.depends_on(f"{name}.__class__", guarded=True)
    reading.number_places.append(len(reading.key))
    reading.depends_on(shape.format(x=name), strides.format(x=name), guarded=True)
    if not frontend.state_tells_types:
        reading.depends_on(
            frontend.dtype.format(x=source), frontend.device.format(x=source), guarded=True
        )
    # A remainder of one digit costs less than a mask, which has as many digits as the address.
    reading.depends_on(f"{pointer} % {ALIGNMENT} if {pointer} else -1")
    reading.values.append(pointer)
    reading.tensors.append(source)
    if source != name:
        reading.values.append(frontend.pointer.format(x=offsets))
