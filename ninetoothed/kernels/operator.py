"""What an operator is without a framework: a kernel's inputs, the outputs it makes, what it changes."""

from __future__ import annotations

import ast
import inspect
import keyword
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from ninetoothed import threads
from ninetoothed.errors import ArgumentError, near
from ninetoothed.kernels.definition import Definition
from ninetoothed.language import dtypes
from ninetoothed.parsing.source import begins_at
from ninetoothed.program.effects import is_product
from ninetoothed.program.program import Program
from ninetoothed.program.written import written
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.tensors.arrange import NO_VALUE, Parameter
from ninetoothed.tensors.level import Level

#: What a constant's default, or a scalar's element type, makes its kind.
_KINDS: Mapping[type, str] = {bool: "bool", int: "int", float: "float", str: "str"}


#: The rules of `OperatorDefinition.autocast`.
AUTOCAST = ("lower", "float32")


@dataclass(frozen=True)
class Like:
    """An output of the shape and element type of an input: `like`."""

    name: str


def like(name: str) -> Like:
    """An output that has the shape and the element type of the input of this name, contiguous."""
    return Like(name)


@dataclass(frozen=True)
class Input:
    """An argument of an operator.

    Attributes:
        name: the kernel's name for it.
        kind: ``"tensor"``, ``"number"`` (an int, a float or a bool), ``"int"``, ``"float"``,
            ``"bool"`` or ``"str"``.
        default: what it is where it is left out, or `NO_VALUE`.
        is_changed: whether it is a tensor that the kernel stores to.
    """

    name: str
    kind: str
    default: Any = NO_VALUE
    is_changed: bool = False


@dataclass(frozen=True)
class Output:
    """A tensor that an operator makes.

    Attributes:
        name: the kernel's name for it.
        shape: the name of the input that has the same, or an expression for each dimension over the
            inputs' sizes and the constexpr symbols.
        dtype: the name of the input that has the same, or an element type.
        alike: the inputs whose element types have to be one, for which of them is meant was not told.
        is_wide: whether it is float64 where that input is, and otherwise float32.
        is_added_to: whether the kernel adds to it, so that it has zeros before.
    """

    name: str
    shape: str | tuple[Any, ...]
    dtype: str | dtypes.DType
    alike: tuple[str, ...] = ()
    is_wide: bool = False
    is_added_to: bool = False


@dataclass(frozen=True)
class OperatorDefinition:
    """An operator.

    Attributes:
        name: ``"namespace::name"``.
        kernel: the kernel's definition.
        inputs: the arguments, in the kernel's order.
        outputs: what it makes, in the kernel's order.
        backward: a function of the gradients of the outputs, then of what `saved` names; it gives the
            gradient of each tensor among the inputs, or None for one that has none.
        saved: names of inputs and outputs.
        constants: constexpr symbols and parameters that have the same value in every call.
        autocast: what becomes of tensors of floats where a framework chooses element types itself:
            ``"lower"`` (its lower precision), ``"float32"``, or None (they stay).
        batched: gives, for the names of tensors among the inputs that have a leading dimension, the
            operator over a batch; its outputs have that dimension too. None where it is to be run once
            for each element.
        is_selective: whether `backward` takes by keyword ``needed``, for each tensor among the inputs
            whether its gradient is asked for, and ``is_last``, whether gradients are not derived again;
            both are left out where the framework does not say.
        ungiven: outputs whose gradients `backward` is not given.
    """

    name: str
    kernel: Definition
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    backward: Callable[..., Any] | None = None
    saved: tuple[str, ...] = ()
    constants: Mapping[str, Any] = field(default_factory=dict)
    is_selective: bool = False
    ungiven: frozenset[str] = frozenset()
    autocast: str | None = None
    batched: Callable[[frozenset[str]], Callable[..., Any] | None] | None = None

    @threads.cached_property
    def tensors(self) -> tuple[Input, ...]:
        """The tensors among the inputs."""
        return tuple(entry for entry in self.inputs if entry.kind == "tensor")

    def checked_gradients(self, found: Any) -> tuple[Any, ...]:
        """What `backward` gave, one for each of the `tensors`.

        Raises:
            ArgumentError: there are more or fewer.
        """
        if found.__class__ is tuple and len(found) == len(self.tensors):
            return found
        gradients = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        if len(gradients) != len(self.tensors):
            raise ArgumentError(
                f"operator {self.name!r}: `backward` gave {len(gradients)} gradients, and there are "
                f"{len(self.tensors)} tensors among the inputs"
            )
        return gradients

    def shape_text(self, output: Output, shape: str) -> str:
        """An output's shape as Python over the inputs' names.

        Args:
            shape: an expression for the shape of a tensor, `Frontend.shape`.
        """
        if isinstance(output.shape, str):
            return shape.format(x=output.shape)
        sizes = self._sizes(shape)
        parts = [ast.unparse(as_symbol(size).ast(sizes.__getitem__)) for size in output.shape]
        return f"({''.join(f'{part}, ' for part in parts)})"

    def _symbol(self, name: str) -> ast.expr:
        if name in self.constants:
            return ast.Constant(self.constants[name])
        return ast.Name(name, ast.Load())

    def _sizes(self, shape: str) -> dict[Symbol, ast.expr]:
        """Where each size, and each symbol, is found."""
        found: dict[Symbol, ast.expr] = {
            symbol: self._symbol(self.kernel.names[symbol]) for symbol in self.kernel.symbols
        }
        tensors = {entry.name for entry in self.tensors}
        for parameter in self.kernel.tensor_parameters:
            if parameter.name not in tensors:
                continue
            for dim, size in enumerate(parameter.source.shape):
                text = f"{shape.format(x=parameter.name)}[{dim}]"
                found.setdefault(as_symbol(size), ast.parse(text, mode="eval").body)
        return found


def define_operator(
    name: str,
    kernel: Definition,
    outputs: Mapping[str, Any],
    backward: Callable[..., Any] | None = None,
    saved: Sequence[str] = (),
    constants: Mapping[str, Any] | None = None,
    has_defaults: bool = True,
) -> OperatorDefinition:
    """Pairs a kernel's parameters with what is said of its outputs; see `op`.

    Args:
        has_defaults: whether calls may leave out what has a default; a derived operator's give all.

    Raises:
        ArgumentError: a name or an output is not as it must be.
    """
    namespace, _, own = str(name).partition("::")
    if not all(each.isidentifier() and each.isascii() for each in (namespace, own)) or (
        keyword.iskeyword(namespace) or keyword.iskeyword(own)
    ):
        raise ArgumentError(
            f"an operator's name is 'namespace::name', not {name!r}: two names in ASCII, and no keywords of Python's"
        )
    constants = dict(constants or {})
    symbols = [kernel.names[symbol] for symbol in kernel.symbols]
    stored, tensors = written(kernel.program), [p.name for p in kernel.tensor_parameters]
    _check_names(name, kernel, constants, outputs)
    inputs = [
        Input(
            p.name,
            _kind(p, name),
            _default(p) if has_defaults else NO_VALUE,
            p.kind == "tensor" and p.name in stored,
        )
        for p in kernel.call_parameters
        if p.name not in outputs and p.name not in constants
    ]
    inputs += [Input(symbol, "int") for symbol in symbols if symbol not in constants]
    _check_inputs(name, inputs)
    made = [
        _output(name, kernel, entry, outputs[entry], [i.name for i in inputs if i.kind == "tensor"])
        for entry in tensors
        if entry in outputs
    ]
    known = [*(entry.name for entry in inputs), *outputs]
    for entry in saved:
        if entry not in known:
            raise ArgumentError(
                f"operator {name!r}: `saved` has {entry!r}, which is neither an input nor an output."
                f"{near(entry, known)}"
            )
    changed = [entry.name for entry in inputs if entry.is_changed]
    if backward is not None and changed:
        raise ArgumentError(
            f"operator {name!r} changes {', '.join(f'`{c}`' for c in changed)} in place, so it can "
            "have no `backward`: make an output of it"
        )
    if not made and not changed:
        raise ArgumentError(f"operator {name!r}: kernel `{kernel.name}` stores to no tensor")
    return OperatorDefinition(
        name, kernel, tuple(inputs), tuple(made), backward, tuple(saved), constants
    )


def _check_names(
    name: str, kernel: Definition, constants: Collection[str], outputs: Collection[str]
) -> None:
    """`ArgumentError` where the kernel has no such constant, or stores to no such tensor."""
    fixable = [p.name for p in kernel.call_parameters if p.kind == "constexpr"]
    fixable += [kernel.names[symbol] for symbol in kernel.symbols]
    for constant in constants:
        if constant not in fixable:
            raise ArgumentError(
                f"operator {name!r}: `constants` has {constant!r}, which is no constant of kernel "
                f"`{kernel.name}`.{near(constant, fixable)}"
            )
    tensors = [p.name for p in kernel.tensor_parameters]
    for output in outputs:
        if output not in tensors:
            raise ArgumentError(
                f"operator {name!r}: {output!r} is no tensor of kernel `{kernel.name}`."
                f"{near(output, tensors)}"
            )
        if output not in written(kernel.program):
            raise ArgumentError(
                f"operator {name!r}: kernel `{kernel.name}` does not store to `{output}`; an output "
                "is a tensor that it stores to"
            )


def autocast_rule(operator: str, program: Program, asked: str | None) -> str | None:
    """The rule of `OperatorDefinition.autocast` that is asked for, or that follows from the program.

    Raises:
        ArgumentError: there is no such rule.
    """
    if asked == "by_program":
        return "lower" if any(map(is_product, program.nodes())) else None
    if asked not in (None, *AUTOCAST):
        raise ArgumentError(
            f"operator {operator!r}: `autocast` is one of {', '.join(map(repr, AUTOCAST))} or None, not "
            f"{asked!r}"
        )
    return asked


def completing(definition: OperatorDefinition) -> Callable[..., tuple[Any, ...]]:
    """What gives all arguments of a call in order; `ArgumentError` where they are not those of the operator."""
    parameters = [
        inspect.Parameter(e.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=e.default)
        for e in definition.inputs
    ]
    signature = inspect.Signature(parameters)

    def complete(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        if not keywords and len(arguments) == len(parameters):
            return arguments
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise ArgumentError(f"operator {definition.name!r}: {error}") from None
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    return complete


def number_has_no_gradient(
    operator: OperatorDefinition, name: str, is_located: bool = True
) -> ArgumentError:
    """Why a gradient is refused that is asked of what is passed by value.

    Args:
        is_located: whether it points at the application, which takes that; else at the call.
    """
    return ArgumentError(
        f"operator {operator.name!r}: `{name}` is a number of the kernel's, passed by value, and has no gradient. "
        f"Give `{name}.item()`, or make it a tensor of one element",
        begins_at(operator.kernel.application) if is_located else None,
    )


def with_any_backward(definition: OperatorDefinition) -> OperatorDefinition:
    """The operator; with a backward that refuses where it has none, for gradients would be lost in silence."""
    if definition.backward is not None:
        return definition

    def missing(*values: Any) -> Any:
        raise ArgumentError(
            f"operator {definition.name!r} has no `backward`, and a gradient is asked of it. Give it one, have it "
            'derived (backward="derive"), or detach its inputs'
        )

    return replace(definition, backward=missing, saved=())


def _kind(parameter: Parameter, operator: str) -> str:
    if parameter.kind == "tensor":
        return "tensor"
    if parameter.kind == "scalar":
        dtype = parameter.dtype
        if not isinstance(dtype, dtypes.DType):
            return "number"
        return "bool" if dtype is dtypes.bool else "float" if dtype.is_floating() else "int"
    for type_, kind in _KINDS.items():
        if isinstance(parameter.value, type_):
            return kind
    raise ArgumentError(
        f"operator {operator!r}: what `{parameter.name}` is cannot be told; give the constant a "
        "default of its type, `Tensor(0, constexpr=True, value=...)`, a bool, an int, a float or a str, or "
        "its value in `constants`"
    )


def _default(parameter: Parameter) -> Any:
    return parameter.value if parameter.kind in ("scalar", "constexpr") else NO_VALUE


def _check_inputs(name: str, inputs: Sequence[Input]) -> None:
    has_default = False
    for entry in inputs:
        if not entry.name.isascii():
            raise ArgumentError(
                f"operator {name!r}: frameworks have an operator's inputs in ASCII; give `{entry.name}` such a name"
            )
        if has_default and entry.default is NO_VALUE:
            raise ArgumentError(
                f"operator {name!r}: `{entry.name}` has no default and follows what has one; put "
                "constants with a default last"
            )
        has_default |= entry.default is not NO_VALUE


def _output(
    operator: str, kernel: Definition, name: str, form: Any, tensors: Sequence[str]
) -> Output:
    subject = f"operator {operator!r}: output `{name}`"
    if isinstance(form, Like):
        if form.name not in tensors:
            raise ArgumentError(
                f"{subject} is like {form.name!r}, which is no tensor among the inputs."
                f"{near(form.name, tensors)}"
            )
        return Output(name, form.name, form.name)
    if not (isinstance(form, tuple) and len(form) == 2 and isinstance(form[0], (tuple, list))):
        raise ArgumentError(
            f"{subject} must be `like(name)` or `(shape, dtype)`, a tuple of sizes and an element "
            f"type or the name of an input that has it, not {form!r}"
        )
    shape, dtype = tuple(form[0]), form[1]
    known = set(kernel.symbols)
    for parameter in kernel.tensor_parameters:
        if parameter.name in tensors:
            known |= {as_symbol(size) for size in parameter.source.shape}
    for size in shape:
        missing = [str(leaf) for leaf in as_symbol(size).leaves() if leaf not in known]
        if missing:
            raise ArgumentError(
                f"{subject} has the size `{size}`, but {', '.join(missing)} is neither a size of an "
                "input nor a constexpr symbol of the kernel"
            )
    if isinstance(dtype, Level):
        dtype = next((p.name for p in kernel.tensor_parameters if p.source is dtype.source), dtype)
    alike: tuple[str, ...] = ()
    if dtype is None and tensors:
        # The element type of a symbolic tensor for which none was declared, whichever it was.
        found = [p for p in kernel.tensor_parameters if p.name in tensors]
        alike = tuple(p.name for p in found if p.source.dtype is None) or (tensors[0],)
        dtype = alike[0]
    if (isinstance(dtype, str) and dtype not in tensors) or not isinstance(
        dtype, (str, dtypes.DType)
    ):
        raise ArgumentError(
            f"{subject} has the element type {dtype!r}; it must be one of ninetoothed's or the name of "
            f"a tensor among the inputs: {', '.join(tensors)}"
        )
    return Output(name, shape, dtype, alike if len(alike) > 1 else ())
