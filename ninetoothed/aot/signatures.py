"""The functions of both interfaces: how each parameter is given in C."""

from __future__ import annotations

from ninetoothed.aot.c_text import c_names
from ninetoothed.aot.unit import Unit
from ninetoothed.language.dtypes import DType
from ninetoothed.records import dataclass
from ninetoothed.tensors.arrange import Parameter


@dataclass(frozen=True)
class Number:
    """How a number of an element type is given, and kept.

    Attributes:
        given: its type in the second interface.
        published: what its address is of in the first.
        kept: as the kernel takes it.
        conversion: from the one to the other.
        misfit: what holds of one that does not fit; empty where all do.
    """

    given: str
    published: str
    kept: str
    conversion: str
    misfit: str = ""


def _integer(bits: int, is_signed: bool) -> Number:
    prefix = "" if is_signed else "u"
    type_ = f"{prefix}int{bits}_t"
    misfit = ""
    if bits < 64:
        least = f"INT{bits}_MIN" if is_signed else "0"
        misfit = f"{{0}} < {least} || {{0}} > {prefix.upper()}INT{bits}_MAX"
    given = "int64_t" if is_signed or bits < 64 else "uint64_t"
    return Number(given, "int64_t", type_, f"({type_}){{0}}", misfit)


def _float(kept: str, conversion: str, misfit: str = "") -> Number:
    return Number("double", "double", kept, conversion, misfit)


#: By the element type's name.
NUMBERS = {
    "bool": Number("int64_t", "int64_t", "uint8_t", "{0} != 0"),
    **{f"int{bits}": _integer(bits, True) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": _integer(bits, False) for bits in (8, 16, 32, 64)},
    "float16": _float(
        "uint16_t",
        "nt_half({0})",
        # Infinities and what is no number fit.
        "({0} > 65504.0 && {0} <= DBL_MAX) || ({0} < -65504.0 && {0} >= -DBL_MAX)",
    ),
    "bfloat16": _float("uint16_t", "nt_bfloat16({0})"),
    "float32": _float("float", "(float){0}"),
    "float64": _float("double", "{0}"),
}

#: What the first interface gives the address of for a constant, by its Python type.
CONSTANTS = {bool: "int64_t", int: "int64_t", float: "double"}


class Signature:
    """The parameters of a unit's functions.

    Args:
        unit: it.
        choices: what a dispatcher takes besides, integers by which it chooses a unit.
    """

    def __init__(self, unit: Unit, choices: tuple[str, ...] = ()) -> None:
        self._unit, self._choices = unit, choices
        #: The names that C has for parameters and choices.
        self.names = c_names([*(p.name for p in unit.parameters), *choices])

    @property
    def tensors(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self._unit.parameters if p.kind == "tensor")

    @property
    def scalars(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self._unit.parameters if p.kind == "scalar")

    def dtype(self, parameter: Parameter) -> DType:
        """A scalar's element type."""
        return self._unit.fixed.dtypes[parameter.name]

    def published(self, name: str) -> str:
        """``launch_<name>``: each parameter as a `NineToothedTensor`, then the choices."""
        parameters = [f"NineToothedTensor {self.names[p.name]}" for p in self._unit.parameters]
        return self._function(
            f"NineToothedResult launch_{name}", ["NineToothedStream stream", *parameters]
        )

    def dlpack(self, name: str) -> str:
        """``<name>_launch``: DLPack's tensors, numbers by value, then the choices."""
        parameters = ["NineToothedStream stream"]
        for parameter in self._unit.parameters:
            called = self.names[parameter.name]
            if parameter.kind == "tensor":
                parameters.append(f"const DLTensor *{called}")
            elif parameter.kind == "scalar":
                parameters.append(f"{NUMBERS[self.dtype(parameter).name].given} {called}")
        return self._function(f"int {name}_launch", parameters)

    def workspace_size(self, name: str) -> str:
        """``<name>_workspace_size``: a place for the bytes, DLPack's tensors, then the choices."""
        tensors = [f"const DLTensor *{self.names[p.name]}" for p in self.tensors]
        return self._function(f"int {name}_workspace_size", ["int64_t *bytes", *tensors])

    def forwarded(self, first: str, *kinds: str) -> str:
        """The arguments with which a dispatcher calls a unit."""
        taken = [p for p in self._unit.parameters if p.kind in kinds]
        return ", ".join([first, *(self.names[p.name] for p in taken)])

    def _function(self, start: str, parameters: list[str]) -> str:
        choices = [f"int {self.names[choice]}" for choice in self._choices]
        return f"{start}({', '.join([*parameters, *choices])})"
