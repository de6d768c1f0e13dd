"""The C functions of the two interfaces: what a caller gives becomes tensors and numbers of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ninetoothed.aot import c_expressions
from ninetoothed.aot.c_text import or_return, quoted
from ninetoothed.aot.signatures import CONSTANTS, NUMBERS, Signature
from ninetoothed.aot.unit import Unit
from ninetoothed.tensors.arrange import Parameter


class Interfaces:
    """Both functions of a unit.

    Args:
        unit: it.
        signature: its parameters.
        names: what C calls them.
    """

    def __init__(self, unit: Unit, signature: Signature, names: Mapping[str, str]) -> None:
        self._unit, self._signature, self._names = unit, signature, names

    def lines(self) -> Iterator[str]:
        """Their text."""
        yield from self._published()
        yield from self._dlpack()

    def _published(self) -> Iterator[str]:
        yield f"{self._signature.published(self._unit.name)} {{"
        yield from self._tensor_variables()
        for place, parameter in enumerate(self._signature.tensors):
            yield from or_return(
                f"nt_from_ninetoothed(&the_kernel, {place}, &{self._names[parameter.name]}, "
                f"&own[{place}])"
            )
        for parameter in self._signature.given_by_value:
            yield from self._number(parameter)
        yield "  return run(stream, tensors, &numbers);"
        yield "}"
        yield ""

    def _number(self, parameter: Parameter) -> Iterator[str]:
        """A scalar, or a constant that is compared with the one that was compiled in."""
        name = self._names[parameter.name]
        called = quoted(parameter.name)
        if parameter.kind == "constexpr":
            value = self._unit.fixed.constants[parameter.name]
            type_ = CONSTANTS.get(type(value))
            if type_ is None:
                yield f"  (void){name};"
                return
            literal = repr(float(value)) if type_ == "double" else c_expressions.literal(value)
            yield f"  if ({name}.data) {{"
            yield f"    {type_} value;"
            yield from or_return(f"nt_number(&the_kernel, {called}, &{name}, &value)", "    ")
            yield f"    if (value != {literal})"
            yield (
                f'      return nt_refuse(NT_ERROR_CONSTANT, "%s", '
                f"{quoted(f'kernel `{self._unit.kernel.name}`: `{parameter.name}` was compiled in as {value!r}')});"
            )
            yield "  }"
            return
        number = NUMBERS[self._signature.dtype(parameter).name]
        yield "  {"
        yield f"    {number.published} value;"
        yield from or_return(f"nt_number(&the_kernel, {called}, &{name}, &value)", "    ")
        yield from self._keep(parameter, "value", "    ")
        yield "  }"

    def _keep(self, parameter: Parameter, value: str, indent: str) -> Iterator[str]:
        """A scalar as the kernel takes it."""
        number = NUMBERS[self._signature.dtype(parameter).name]
        if number.misfit:
            text = f"kernel `{self._unit.kernel.name}`: `{parameter.name}` does not fit {self._signature.dtype(parameter)}"
            yield f"{indent}if ({number.misfit.format(value)})"
            yield f'{indent}  return nt_refuse(NT_ERROR_NUMBER, "%s", {quoted(text)});'
        yield f"{indent}numbers.{self._names[parameter.name]} = {number.conversion.format(value)};"

    def _dlpack(self) -> Iterator[str]:
        yield f"{self._signature.dlpack(self._unit.name)} {{"
        yield from self._tensor_variables()
        for place, parameter in enumerate(self._signature.tensors):
            yield from or_return(
                f"nt_from_dlpack(&the_kernel, {place}, {self._names[parameter.name]}, &own[{place}])"
            )
        for parameter in self._signature.scalars:
            yield from self._keep(parameter, self._names[parameter.name], "  ")
        yield "  return run(stream, tensors, &numbers);"
        yield "}"
        yield ""

    def _tensor_variables(self) -> Iterator[str]:
        count = len(self._signature.tensors)
        addresses = ", ".join(f"&own[{place}]" for place in range(count))
        yield f"  nt_tensor own[{count}];"
        yield f"  const nt_tensor *const tensors[] = {{{addresses}}};"
        yield "  call_numbers numbers;"
        yield "  int result;"
