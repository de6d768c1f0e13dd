"""What a frontend is: how the tensors of one framework are read, in expressions and functions.

The launch function of a kernel is generated from the expressions, so that a launch costs no call
of ours. A frontend is made once, at import; only its functions may import the framework.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from types import CodeType
from typing import TYPE_CHECKING, Any

from ninetoothed import threads
from ninetoothed.errors import ArgumentError, PluginError
from ninetoothed.language.dtypes import DType

if TYPE_CHECKING:
    from ninetoothed.kernels.call import Device


#: What an expression is of; the tensor where nothing else is said.
_PLACEHOLDERS = {"stream": "index", "unguarded_now": ""}


@dataclass(frozen=True)
class JaggedExpressions:
    """How a jagged tensor, packed values with offsets, is read. ``{x}`` stands for the tensor.

    Attributes:
        test: whether the tensor is jagged.
        values: the framework's dense tensor of packed values; the sequences follow one another
            along its dimension ``ragged_dim - 1``.
        offsets: the framework's dense int64 tensor of batch + 1 offsets into that dimension.
        ragged_dim: the dimension of the whole tensor that is ragged, 1 or more; 0 is the batch.
        shape: the whole shape, a tuple of ints, the longest sequence in the ragged dimension.
        strides: in elements, the values' strides after a 0 for the batch.
    """

    test: str
    values: str
    offsets: str
    ragged_dim: str
    shape: str
    strides: str


@dataclass(frozen=True)
class Frontend:
    """How one framework's tensors are read.

    The expressions are Python; ``{x}`` stands for the tensor, ``{index}`` for a device's index.
    They may use the names that `namespace` gives.

    Attributes:
        name: the name that ``make(caller=...)`` takes.
        owns: whether a type is a tensor of the framework. It imports nothing: `owns_types`.
        dtypes: the framework's dtypes, each with the element type it is.
        owns_dtype: whether a type is that of the framework's dtypes. It imports nothing, as `owns`.
            None: they are NumPy's, NineToothed's own or names, which everybody knows.
        device_of: a device as the expression `device` gives it, in the core's terms.
        empty: makes an uninitialised contiguous tensor of (shape, element type, device).
        device_guard: a context in which the device of this index is the current one.
        synchronize: waits until the device of this index has done all work given to it.
        namespace: the names the expressions use; asked for once, when a tensor has arrived.
        shape: the sizes, a hashable sequence of ints.
        strides: the strides in elements, a hashable sequence of ints.
        pointer: the address of the first element, an int.
        dtype: the framework's dtype, hashable.
        device: the framework's device, hashable.
        item: a 0-d tensor's value as a Python number.
        read_only: whether the tensor may not be written to, or None where the framework has no
            such tensors.
        state: makes, for one launch function, of the places of the tensors that are stored to, a
            function of a call's tensors that says what else a plan depends on, hashable: whether
            gradients are recorded, whether a tensor holds its elements negated, whether the call is
            traced. None: nothing does.
        refused: says of a tensor, and whether it is stored to, why no kernel may be given it now: the
            end of a sentence that begins with its name; None where one may. Asked for each new key.
        remark: says likewise what a user is warned of, once for each kernel.
        stored: makes, of the tensors that a call stores to, a function that is told those of each call
            of the same plan, before it is launched. None: the framework keeps no account of it.
        state_tells_types: whether tensors of other classes, element types or devices have another `state`.
        stream: the current stream's handle on the device ``{index}``, an int.
        jagged: how jagged tensors are read, or None where the framework has none.
        guard: makes, of some tensors, a function of as many that says whether they have the class,
            shape, strides, dtype and device of the first, or None where the framework has no
            quicker way to compare them than the expressions. It may say no too often, and must where
            the `state` differs. Where there is a `state`, the places of the tensors that are stored to
            are given too, as ``stored``.
        unguarded: whether `guard`, and what it makes, may not be asked of the tensor; None where they may
            be of every one.
        unguarded_now: whether a call is to be taken for none before it at the moment, since tensors may have
            what `guard` does not see; None where they never have.
        guard_addresses: whether `guard`, and what it makes, are given the tensors' addresses too,
            one each, after the tensors.
        event: makes an event with ``record()`` and ``elapsed_time(end)`` (milliseconds), or None.
        launch: takes over the launches of a kernel, for a framework whose arrays cannot be written
            to: it is given the kernel, once, and gives a function of the arguments by name whose
            result the call returns. None: kernels write in place and calls return None.
        operator: registers an operator (`kernels.operator.OperatorDefinition`) with the framework;
            gives the function to call it by, and the usual types of tensors to call it with. Its second
            argument is a function that takes an ``empty(beside, shape, dtype)`` of the framework's and,
            where that is quicker for what has a tensor's shape and element type, a ``like(tensor)``; it
            gives two functions of the inputs: one makes the outputs, one makes them and runs the
            kernel. None: operators are plain functions, without gradients.
        vmap: makes, of a function of tensors that gives a tuple of tensors, and of the dimension of each
            argument that is a batch's (0, or None for what all elements share), the same function over a
            batch, whose results' dimension 0 is the batch's. For frameworks whose `operator` is told of
            batches. None: there is no such thing.
        opaque: told each launch function, so that the framework's tracers do not look into it.
    """

    name: str
    owns: Callable[[type], bool]
    dtypes: Callable[[], Mapping[Any, DType]]
    device_of: Callable[[Any], Device]
    empty: Callable[[tuple[int, ...], DType, Device], Any]
    device_guard: Callable[[int], AbstractContextManager[Any]]
    synchronize: Callable[[int], None]
    namespace: Callable[[], Mapping[str, object]] = dict
    shape: str = "{x}.shape"
    strides: str = "{x}.strides"
    pointer: str = "{x}.data_ptr()"
    dtype: str = "{x}.dtype"
    device: str = "{x}.device"
    item: str = "{x}.item()"
    owns_dtype: Callable[[type], bool] | None = None
    read_only: str | None = None
    state: Callable[[Sequence[int]], Callable[..., Any]] | None = None
    refused: Callable[[Any, bool], str | None] | None = None
    remark: Callable[[Any, bool], str | None] | None = None
    stored: Callable[[Sequence[Any]], Callable[[Sequence[Any]], object]] | None = None
    state_tells_types: bool = False
    stream: str = "0"
    jagged: JaggedExpressions | None = None
    guard: Callable[..., Callable[..., bool]] | None = None
    unguarded: str | None = None
    unguarded_now: str | None = None
    guard_addresses: bool = False
    event: Callable[[], Any] | None = None
    launch: Callable[[Any], Callable[[Mapping[str, Any]], Any]] | None = None
    operator: Callable[[Any, Callable[..., Any]], tuple[Callable[..., Any], Any]] | None = None
    vmap: Callable[[Callable[..., Any], tuple[int | None, ...]], Callable[..., Any]] | None = None
    opaque: Callable[[Callable[..., Any]], None] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise PluginError(f"A frontend's name must be an identifier, got {self.name!r}.")
        for field in fields(self):
            value = getattr(self, field.name)
            if str(field.type).startswith("Callable"):
                optional = str(field.type).endswith("None")
                if not callable(value) and not (optional and value is None):
                    raise PluginError(self._wrong(field.name, value, "a function"))
            elif field.type == "str | None":
                if value is not None:
                    self._check_expression(field.name, value)
            elif field.type == "str" and field.name != "name":
                self._check_expression(field.name, value)
        if self.jagged is None:
            return
        if not isinstance(self.jagged, JaggedExpressions):
            raise PluginError(self._wrong("jagged", self.jagged, "JaggedExpressions or None"))
        for field in fields(self.jagged):
            self._check_expression(f"jagged.{field.name}", getattr(self.jagged, field.name))

    def _wrong(self, field: str, value: object, needed: str) -> str:
        return f"Frontend {self.name!r}: `{field}` must be {needed}, got {value!r}."

    def _wrong_result(self, field: str, found: object, needed: str) -> str:
        return f"Frontend {self.name!r}: `{field}` must give {needed}; it gave {found!r}."

    def _check_expression(self, field: str, template: object) -> None:
        placeholder = _PLACEHOLDERS.get(field, "x")
        of = f" of {{{placeholder}}}" if placeholder else ""
        needed = f"a Python expression{of} as a string"
        if not isinstance(template, str):
            raise PluginError(self._wrong(field, template, needed))
        try:
            threads.parse(
                template.format(**dict.fromkeys(filter(None, [placeholder]), "x")), mode="eval"
            )
        except (SyntaxError, LookupError, ValueError) as error:
            raise PluginError(self._wrong(field, template, needed)) from error
        if placeholder == "x" and "{x" not in template:
            raise PluginError(self._wrong(field, template, needed))

    def dtype_of(self, dtype: Any) -> DType:
        """The element type of a framework's dtype; `ArgumentError` where there is none."""
        try:
            return self._dtypes[dtype]
        except KeyError:
            # Where an expression gives our own objects, they need not be said too.
            known = ", ".join(str(known) for known in self._dtypes if not isinstance(known, DType))
            raise ArgumentError(
                f"Tensors of {dtype} cannot be passed to a kernel. {self.name} has: {known}."
            ) from None

    def native_dtype(self, dtype: DType) -> Any:
        """The framework's dtype for an element type; `ArgumentError` where it has none."""
        for native, known in self._dtypes.items():
            if known is dtype:
                return native
        raise ArgumentError(f"{self.name} has no element type {dtype}.")

    def check_device(self, device: Any) -> None:
        """`PluginError` where `device_of` gives no device for a framework's."""
        from ninetoothed.kernels.call import Device

        found = self.device_of(device)
        if not isinstance(found, Device):
            raise PluginError(self._wrong_result("device_of", found, "a `Device`"))

    def evaluate(self, field: str, x: object) -> Any:
        """What the expression called ``field`` (``"shape"``, ``"jagged.values"``) says of ``x``.

        For checks and messages. Launches inline the expression instead.
        """
        return self._compiled(field)(x)

    def apart_from(self, taken: Collection[str]) -> Frontend:
        """The same frontend, in expressions that use none of these names.

        A launch function has the names of the kernel's parameters, which would hide those of
        `namespace` and Python's own.
        """
        used = _names_in([*_expressions(self).values(), *_expressions(self.jagged).values()])
        # Variables of comprehensions count too: a tensor may have the name of one.
        renamed = {name: f"{name}_" for name in sorted(used) if name in taken}
        # The namespace is asked for only where it must be: that may import the framework.
        if not renamed:
            return self
        known = {**vars(builtins), **self.names}
        while set(renamed.values()) & {*taken, *known}:
            renamed = {name: f"{other}_" for name, other in renamed.items()}
        names = {renamed.get(name, name): value for name, value in self.names.items()}
        names |= {renamed[name]: known[name] for name in renamed if name in known}
        jagged = self.jagged and replace(self.jagged, **_reworded(self.jagged, renamed))
        reworded: dict[str, Any] = _reworded(self, renamed)
        return replace(self, **reworded, jagged=jagged, namespace=lambda: names)

    @threads.cached_property
    def current_stream(self) -> Callable[[int], int]:
        """Gives the handle of the current stream on the device of an index.

        Where the expression is just a call of one of the `names`, it is that function itself: it
        is called at every launch.
        """
        for name, function in self.names.items():
            if callable(function) and self.stream == f"{name}({{index}})":
                return function
        return self._compiled("stream")

    @threads.cached_property
    def names(self) -> Mapping[str, object]:
        """What `namespace` gave; the framework may be imported by asking."""
        found = self.namespace()
        if not isinstance(found, Mapping):
            raise PluginError(self._wrong_result("namespace", found, "a dictionary of names"))
        return dict(found)

    @threads.cached_property
    def _dtypes(self) -> Mapping[Any, DType]:
        found = self.dtypes()
        if not isinstance(found, Mapping) or not all(
            isinstance(known, DType) for known in found.values()
        ):
            needed = "a dictionary of the framework's dtypes, each with one of `ninetoothed.language.dtypes`"
            raise PluginError(self._wrong_result("dtypes", found, needed))
        return dict(found)

    @threads.cached_property
    def _functions(self) -> dict[str, Callable[[Any], Any]]:
        return {}

    def _compiled(self, field: str) -> Callable[[Any], Any]:
        if field not in self._functions:
            body = attrgetter(field)(self).format(x="argument", index="argument")
            function = eval(_code(f"lambda argument: {body}", "eval"), dict(self.names))
            self._functions[field] = function
        return self._functions[field]


def _code(text: str, mode: str) -> CodeType:
    """The text in a file of a name that no error points at."""
    return compile(text, "<launch of a frontend>", mode)  # type: ignore[no-any-return]


#: What stands for a placeholder while an expression is a tree.
_PLACES = {"{x}": "place_of_x__", "{index}": "place_of_index__"}


def _expressions(holder: Frontend | JaggedExpressions | None) -> dict[str, str]:
    """The expressions of a frontend by the names of the fields."""
    named = {field.name: field.type for field in fields(holder)} if holder is not None else {}
    found = {
        name: getattr(holder, name)
        for name, type_ in named.items()
        if str(type_).startswith("str") and name != "name"
    }
    return {name: expression for name, expression in found.items() if expression is not None}


def _names_in(expressions: Iterable[str]) -> set[str]:
    trees = [_tree(expression) for expression in expressions]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def _tree(expression: str) -> ast.Expression:
    for place, name in _PLACES.items():
        expression = expression.replace(place, name)
    return threads.parse(expression, mode="eval")


def _reworded(holder: Frontend | JaggedExpressions, renamed: Mapping[str, str]) -> dict[str, str]:
    """Those expressions of a frontend that have other names, with these."""
    return {
        field: _with_names(expression, renamed)
        for field, expression in _expressions(holder).items()
        if _names_in([expression]) & set(renamed)
    }


def _with_names(expression: str, renamed: Mapping[str, str]) -> str:
    """An expression of ``{x}`` or ``{index}`` with other names; the placeholders stay."""
    tree = _tree(expression)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = renamed.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = renamed.get(node.arg, node.arg)
    text = ast.unparse(tree)
    for place, name in _PLACES.items():
        text = text.replace(name, place)
    return text


def guard_by(
    namespace: Callable[[], Mapping[str, object]], *expressions: str
) -> Callable[..., Callable[..., bool]]:
    """A `Frontend.guard` that compares what these expressions of ``{x}`` say of each tensor.

    They may give what cannot be hashed, and need not be what a kernel is told: strides in bytes
    will do. What they give for two tensors is compared by identity, then by ``==``.

    Args:
        namespace: the names that the expressions use.
    """

    @functools.cache
    def guard_of(count: int) -> Callable[..., Callable[..., bool]]:
        names = [f"tensor_{place}" for place in range(count)]
        facts = "".join(
            f"{expression.format(x=name)}, "
            for name in names
            for expression in ("{x}.__class__", *expressions)
        )
        listed = ", ".join(names)
        text = (
            f"def guard({listed}):\n"
            f"    facts = ({facts})\n"
            f"    return lambda {listed}: ({facts}) == facts\n"
        )
        made: dict[str, Any] = dict(namespace())
        exec(_code(text, "exec"), made)
        return made["guard"]  # type: ignore[no-any-return]

    return lambda *tensors: guard_of(len(tensors))(*tensors)


def owns_types(*names: tuple[str, str]) -> Callable[[type], bool]:
    """An ``owns`` for the classes of these (module, name), and for what derives from them."""
    wanted = frozenset(names)

    def owns(type_: type) -> bool:
        return any((base.__module__, base.__qualname__) in wanted for base in type_.__mro__)

    return owns
