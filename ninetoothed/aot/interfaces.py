"""The C functions of the two interfaces: what a caller gives becomes tensors and numbers of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ninetoothed.aot import c_expressions
from ninetoothed.aot.c_text import or_return, quoted, statement
from ninetoothed.aot.signatures import CONSTANTS, NUMBERS, Signature
from ninetoothed.aot.unit import Unit
from ninetoothed.tensors.arrange import SCALES, Parameter


class Interfaces:
    """The functions of a unit that take tensors.

    Args:
        unit: it.
        signature: its parameters.
        names: what C calls them.
    """

    def __init__(self, unit: Unit, signature: Signature, names: Mapping[str, str]) -> None:
        self._unit, self._signature, self._names = unit, signature, names

    def lines(self) -> Iterator[str]:
        """Their text, and that of what says how large a workspace is."""
        yield from self._published()
        yield from self._dlpack()
        yield from self._workspace_size()

    def _published(self) -> Iterator[str]:
        yield f"{self._signature.published(self._unit.name)} {{"
        yield from self._beginning("nt_is_seen_ninetoothed({})", "&")
        yield "  if (!is_known) {"
        for place, parameter in enumerate(self._signature.tensors):
            given = f"&{self._names[parameter.name]}, &own[{place}]"
            yield from or_return(f"nt_from_ninetoothed(&the_kernel, {place}, {given})", "    ")
        yield "  }"
        for parameter in self._unit.parameters:
            if parameter.kind != "tensor":
                yield from self._number(parameter)
        yield from self._end("{}.data")

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
            text = (
                f"kernel `{self._unit.kernel.name}`: `{parameter.name}` is %.17g, which does not fit "
                f"{self._signature.dtype(parameter)}"
            )
            yield f"{indent}if ({number.misfit.format(value)})"
            yield f"{indent}  return nt_refuse(NT_ERROR_NUMBER, {quoted(text)}, (double){value});"
        if parameter.is_scale:
            low, high = SCALES
            text = (
                f"kernel `{self._unit.kernel.name}`: `{parameter.name}` is %.17g; minus infinity is "
                f"multiplied by it, so it must lie from {low} to {high}"
            )
            yield f"{indent}if (!({value} >= {low} && {value} <= {high}))"
            yield f"{indent}  return nt_refuse(NT_ERROR_NUMBER, {quoted(text)}, (double){value});"
        yield f"{indent}numbers->{self._names[parameter.name]} = {number.conversion.format(value)};"

    def _dlpack(self) -> Iterator[str]:
        yield f"{self._signature.dlpack(self._unit.name)} {{"
        yield from self._beginning("nt_is_seen_dlpack({})", "")
        yield "  if (!is_known) {"
        yield from self._from_dlpack("    ")
        yield "  }"
        for parameter in self._signature.scalars:
            yield from self._keep(parameter, self._names[parameter.name], "  ")
        yield from self._end("nt_first({})")

    def _workspace_size(self) -> Iterator[str]:
        yield f"{self._signature.workspace_size(self._unit.name)} {{"
        yield from self._tensor_variables()
        yield "  call_numbers numbers;"
        yield "  nt_decision decided;"
        yield from self._from_dlpack("  ")
        yield from or_return("ask(tensors, &numbers, &decided)")
        yield "  *bytes = decided.workspace;"
        yield "  return 0;"
        yield "}"
        yield ""

    def _from_dlpack(self, indent: str) -> Iterator[str]:
        for place, parameter in enumerate(self._signature.tensors):
            given = f"{self._names[parameter.name]}, &own[{place}]"
            yield from or_return(f"nt_from_dlpack(&the_kernel, {place}, {given})", indent)

    def _beginning(self, is_seen: str, reference: str) -> Iterator[str]:
        """Variables, and whether the call is like the thread's last one."""
        tests = ["nt_is_current(&last.decided)"]
        for seen, parameter in zip(seen_places(self._signature.tensors), self._signature.tensors):
            given = f"{reference}{self._names[parameter.name]}"
            tests.append(is_seen.format(f"{given}, &last.seen[{seen}], {parameter.source.ndim}"))
        yield from statement("  const int is_known = ", tests)
        yield from self._tensor_variables()
        yield "  call_numbers new_numbers, *const numbers = is_known ? &last.numbers : &new_numbers;"

    def _end(self, address: str) -> Iterator[str]:
        yield "  if (!is_known) return run(stream, tensors, numbers);"
        for parameter in self._signature.tensors:
            name = self._names[parameter.name]
            yield f"  numbers->{name} = {address.format(name)};"
        yield "  return launch(&last.decided, stream, numbers);"
        yield "}"
        yield ""

    def _tensor_variables(self) -> Iterator[str]:
        count = len(self._signature.tensors)
        addresses = ", ".join(f"&own[{place}]" for place in range(count))
        yield f"  nt_tensor own[{count}];"
        yield f"  const nt_tensor *const tensors[] = {{{addresses}}};"
        yield "  int result;"


def seen_places(tensors: Sequence[Parameter]) -> list[str]:
    """Where what is kept of each tensor begins."""
    ranks = [parameter.source.ndim for parameter in tensors]
    return [
        " + ".join(f"NT_SEEN({rank})" for rank in ranks[:place]) or "0"
        for place in range(len(ranks))
    ]
