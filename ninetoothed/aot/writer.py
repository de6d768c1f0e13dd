"""The C source of a unit: what was declared, its binaries, a function for each edition, the two interfaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ninetoothed.aot import c_expressions
from ninetoothed.aot.c_text import c_names, or_return, quoted, statement, within_lines
from ninetoothed.aot.interfaces import Interfaces, seen_places
from ninetoothed.aot.packaging import filled
from ninetoothed.aot.signatures import NUMBERS, Signature
from ninetoothed.aot.tables import Tables
from ninetoothed.aot.unit import Unit
from ninetoothed.kernels.ahead import Edition, LaunchArgument, Variant, Within
from ninetoothed.kernels.assertions import assertions
from ninetoothed.kernels.meetings.requirements import meeting_requirements
from ninetoothed.program.names import unused
from ninetoothed.symbols.expr import Symbol, as_symbol, maximum
from ninetoothed.symbols.simplify import product, simplify
from ninetoothed.tensors.requirements import Requirement, requirements

#: The C type of a kernel's integer argument.
_INTEGERS = {"i32": "int32_t", "i64": "int64_t"}


class Source:
    """The text of a unit's C source.

    Args:
        unit: it.
        is_portable: whether the binaries are arrays of the text instead of files beside it.
        version: the generator's.
    """

    def __init__(self, unit: Unit, is_portable: bool, version: str) -> None:
        self._unit, self._version = unit, version
        self._tables = Tables(unit, is_portable)
        self._signature = Signature(unit)
        self._tensors = self._signature.tensors
        kernel = unit.kernel
        self._sizes = self._numbers_of_tensors()
        names = c_names(
            [*(p.name for p in unit.parameters), *(kernel.names[s] for s in self._sizes)]
        )
        self._names = names
        self._name_of = {s: f"n->{names[kernel.names[s]]}" for s in self._sizes}.__getitem__

    def text(self) -> str:
        """All of it."""
        unit = self._unit
        count = self._most_descriptors()
        editions = (self._edition(place, edition) for place, edition in enumerate(unit.editions))
        values = {
            "name": unit.name,
            "version": self._version,
            "tables": "\n".join([*self._tables.binaries(), *self._tables.declared()]),
            "numbers": "\n".join(self._numbers()),
            "places": " + ".join(f"NT_SEEN({p.source.ndim})" for p in self._tensors),
            "descriptors": f"  nt_descriptor descriptors[{count}];\n" if count else "",
            "editions": "\n".join(line for lines in editions for line in lines),
            "decided": "\n".join(self._decided()),
            "launched": "\n".join(self._launched()),
            "read": "\n".join(self._read()),
            "seen": "\n".join(self._seen()),
            "forgotten": "  memset(last.descriptors, 0, sizeof last.descriptors);\n"
            if count
            else "",
            "interfaces": "\n".join(Interfaces(unit, self._signature, self._names).lines()),
        }
        return filled("unit.c", values)

    def _numbers_of_tensors(self) -> dict[Symbol, tuple[int, str, int]]:
        """Sizes and strides, and where each is: the tensor's place, ``shape`` or ``strides``, dimension."""
        found: dict[Symbol, tuple[int, str, int]] = {}
        for place, parameter in enumerate(self._tensors):
            source = parameter.source
            for what, numbers in (("shape", source.shape), ("strides", source.strides)):
                for dim, number in enumerate(numbers):
                    symbol = as_symbol(number)
                    if symbol.op == "leaf" and symbol not in self._unit.kernel.symbols:
                        found.setdefault(symbol, (place, what, dim))
        return found

    def _numbers(self) -> Iterator[str]:
        for parameter in self._tensors:
            yield f"  const void *{self._names[parameter.name]};"
        for parameter in self._signature.scalars:
            type_ = NUMBERS[self._signature.dtype(parameter).name].kept
            yield f"  {type_} {self._names[parameter.name]};"
        for symbol in self._sizes:
            yield f"  int64_t {self._names[self._unit.kernel.names[symbol]]};"

    def _most_descriptors(self) -> int:
        """That a launch takes."""
        variants = [variant for edition in self._unit.editions for variant in edition.variants]
        return max(sum(a.described is not None for a in each.arguments) for each in variants)

    def _edition(self, place: int, edition: Edition) -> Iterator[str]:
        kernel = self._unit.kernel
        chosen = [f"{kernel.names[s]}={v}" for s, v in edition.known.items() if s.meta]
        if chosen:
            yield f"/* With {', '.join(chosen)}. */"
        yield f"static int decide_{place}(const call_numbers *n, nt_decision *decided, int first) {{"
        yield f"  decided->edition = {place};"
        arranged = requirements(kernel.arrangement, self._unit.fixed.dtypes)
        yield from self._asked(arranged, edition, "NT_ERROR_ARRANGEMENT")
        count = product(tuple(maximum(size, 0) for size in kernel.grid))
        yield f"  const int64_t tiles = {self._value(count, edition)};"
        yield "  if (tiles <= 0) return 0;"
        meeting = meeting_requirements(kernel, edition.known)
        yield from self._asked(meeting, edition, "NT_ERROR_SIZE")
        asserted = (assertion.requirement for assertion in assertions(kernel))
        yield from self._asked(asserted, edition, "NT_ERROR_SIZE")
        yield from self._guards(edition)
        for number, variant in enumerate(edition.variants):
            is_last = number == len(edition.variants) - 1
            programs, workspace = "tiles", "0"
            if variant.programs is not None:
                programs = self._value(variant.programs, edition)
            if variant.workspace is not None:
                workspace = self._value(variant.workspace.size, edition)
            when = "" if is_last else f"if (is_{variant.name}) "
            yield f"  {when}return nt_decide(decided, first, {number}, {programs}, {workspace});"
        yield "}"
        yield ""
        yield f"static int launch_{place}(const nt_decision *decided, void *stream, const call_numbers *n) {{"
        yield "  switch (decided->variant) {"
        for number, variant in enumerate(edition.variants):
            is_last = number == len(edition.variants) - 1
            yield "    default: {" if is_last else f"    case {number}: {{"
            yield from self._launch(variant)
            yield "    }"
        yield "  }"
        yield "}"
        yield ""

    def _decided(self) -> Iterator[str]:
        """By the device's target and a call's sizes."""
        plans = self._tables.plans()
        for number, plan in enumerate(plans):
            is_last = number == len(plans) - 1
            indent = "  " if is_last else "    "
            if not is_last:
                yield f"  if (decided->plan == {number}) {{"
            first = 0
            for sizes, place in plan:
                asked = [c_expressions.condition(c, self._name_of, str, {}) for c in sizes]
                when = f"if ({' && '.join(asked)}) " if asked else ""
                yield f"{indent}{when}return decide_{place}(n, decided, {first});"
                first += len(self._unit.editions[place].variants)
            if not is_last:
                yield "  }"

    def _launched(self) -> Iterator[str]:
        last = len(self._unit.editions) - 1
        for place in range(last):
            yield f"  if (decided->edition == {place}) return launch_{place}(decided, stream, n);"
        yield f"  return launch_{last}(decided, stream, n);"

    def _asked(
        self, requirements: Iterable[Requirement], edition: Edition, code: str
    ) -> Iterator[str]:
        """What sizes must fulfil, each once."""
        seen: set[tuple[Symbol, int]] = set()
        for asked in requirements:
            needed = asked.given(edition.known)
            if needed is None or (needed.expression, needed.low) in seen:
                continue
            seen.add((needed.expression, needed.low))
            value = c_expressions.number(needed.expression, self._name_of)
            # Nothing has an upper bound alone, or two that differ.
            of = f"`{needed.parameter}`: " if needed.parameter else ""
            operator = "!=" if needed.low == needed.high else "<"
            text = f"kernel `{self._unit.kernel.name}`: {of}{needed.text}"
            yield f"  if ({value} {operator} {c_expressions.literal(needed.low)})"
            yield f'    return nt_refuse({code}, "%s", {quoted(text)});'

    def _guards(self, edition: Edition) -> Iterator[str]:
        """What a call is, from what little asks for to what much does."""
        weaker = ""
        ranges: dict[str, str] = {}
        for variant in reversed(edition.variants[:-1]):
            tests = []
            for asked in variant.added:
                known: dict[Symbol, str] = {}
                for position in asked.positions if isinstance(asked, Within) else ():
                    text = c_expressions.range_of_position(position, self._name_of)
                    if text not in ranges:
                        ranges[text] = unused(f"all_{position[0].leaf.name}", [*ranges.values()])
                        yield f"  const nt_range {ranges[text]} = {text};"
                    known[position[0]] = ranges[text]
                tests.append(c_expressions.condition(asked, self._name_of, self._address_of, known))
            tests = list(dict.fromkeys(tests))
            name = f"is_{variant.name}"
            if weaker:
                tests.insert(0, weaker)
            yield from statement(f"  const int {name} = ", tests or ["1"])
            weaker = name

    def _launch(self, variant: Variant) -> Iterator[str]:
        indent = " " * 6
        pointers: list[str] = []
        described = 0
        if variant.workspace or any(a.described is not None for a in variant.arguments):
            yield f"{indent}int result;"
        if variant.workspace is not None:
            yield f"{indent}nt_workspace workspace;"
            zeros = variant.workspace.zeros
            yield from or_return(f"nt_borrow(decided, stream, {zeros}, &workspace)", indent)
        for place, argument in enumerate(variant.arguments):
            if argument.described is not None:
                yield from self._descriptor(described, argument)
                pointers.append(f"last.descriptors[{described}].map")
                described += 1
                continue
            if argument.in_workspace is not None:
                address = f"(char *)workspace.address + {argument.in_workspace}"
                yield f"{indent}void *argument_{place} = {address};"
                pointers.append(f"&argument_{place}")
                continue
            if argument.parameter is not None:
                pointers.append(f"(void *)&n->{self._names[argument.parameter]}")
                continue
            assert argument.expression is not None
            if argument.type == "i64" and argument.expression.op == "leaf":
                pointers.append(f"(void *)&{self._name_of(argument.expression)}")
                continue
            yield f"{indent}{self._computed(place, argument)}"
            pointers.append(f"&argument_{place}")
        count = self._unit.binaries[0].images[0].num_scratch_arguments
        if count:
            yield f"{indent}void *scratch = NULL;"
            pointers += ["&scratch"] * count
        yield f"{indent}void *arguments[] = {{"
        yield from within_lines(pointers, indent + "    ")
        yield f"{indent}}};"
        launched = "nt_run(decided, stream, arguments)"
        if variant.workspace is not None:
            yield f"{indent}result = {launched};"
            launched = "nt_give_back(decided, stream, &workspace, result)"
        yield f"{indent}return {launched};"

    def _descriptor(self, number: int, argument: LaunchArgument) -> Iterator[str]:
        """Makes a descriptor of sizes and strides, where there is none of this address."""
        assert argument.described is not None and argument.parameter is not None
        for what, values in (
            ("shape", argument.described.shape),
            ("strides", argument.described.strides),
        ):
            numbers = ", ".join(map(self._value_of, values))
            yield f"      const int64_t {what}_{number}[] = {{{numbers}}};"
        given = f"{self._address_of(argument.parameter)}, shape_{number}, strides_{number}"
        yield from or_return(
            f"nt_describe(decided, {number}, {given}, &last.descriptors[{number}])", " " * 6
        )

    def _computed(self, place: int, argument: LaunchArgument) -> str:
        type_ = _INTEGERS[argument.type]
        assert argument.expression is not None
        value = c_expressions.number(argument.expression, self._name_of)
        cast = "" if type_ == "int64_t" else f"({type_})"
        return f"{type_} argument_{place} = {cast}{value};"

    def _read(self) -> Iterator[str]:
        """The numbers of tensors, and that what is shared is the same."""
        for place, parameter in enumerate(self._tensors):
            yield f"  n->{self._names[parameter.name]} = tensors[{place}]->data;"
        for symbol, (place, what, dim) in self._sizes.items():
            name = self._names[self._unit.kernel.names[symbol]]
            yield f"  n->{name} = tensors[{place}]->{what}[{dim}];"
        yield from self._shared()

    def _seen(self) -> Iterator[str]:
        for place, seen in enumerate(seen_places(self._tensors)):
            rank = self._tensors[place].source.ndim
            yield f"  nt_see(tensors[{place}], &last.seen[{seen}], {rank});"

    def _shared(self) -> Iterator[str]:
        """That what several dimensions were declared with is the same."""
        known = {s: as_symbol(v) for s, v in self._constants().items()}
        for place, parameter in enumerate(self._tensors):
            source = parameter.source
            if source.jagged_dim is not None and source.jagged_dim > 1:
                # Which would be those of as many elements as the longest sequences have.
                yield f"  if (tensors[{place}]->strides == tensors[{place}]->own_strides)"
                yield (
                    '    return nt_refuse(NT_ERROR_NULL, "kernel `%s`: `%s` has no strides, and is jagged", '
                    f"{quoted(self._unit.kernel.name)}, {quoted(parameter.name)});"
                )
            for what, numbers in (("shape", source.shape), ("strides", source.strides)):
                for dim, number in enumerate(numbers):
                    symbol = as_symbol(number)
                    if self._sizes.get(symbol) == (place, what, dim) or symbol in known:
                        continue
                    if symbol.op == "const" and what == "shape":
                        # Which is asked with the other sizes that were declared.
                        continue
                    value = self._value_of(as_symbol(simplify(symbol.substitute(known))))
                    yield from self._same(place, what, dim, symbol, value)

    def _same(self, place: int, what: str, dim: int, wanted: Symbol, value: str) -> Iterator[str]:
        """That a size or a stride is what it was declared with."""
        found, noun = f"tensors[{place}]->{what}[{dim}]", "size" if what == "shape" else "stride"
        given = f"{quoted(self._unit.kernel.name)}, {quoted(self._tensors[place].name)}"
        why, numbers = "it must be contiguous", f"(long long){found}"
        if wanted.op != "const":
            why = "`%s` is %lld in this call"
            numbers += f", {quoted(str(wanted))}, (long long){value}"
        yield f"  if ({found} != {value})"
        yield (
            f'    return nt_refuse(NT_ERROR_SIZE, "kernel `%s`: `%s` has {noun} %lld in '
            f'dimension {dim}; {why}", {given}, {numbers});'
        )

    def _constants(self) -> dict[Symbol, int]:
        kernel = self._unit.kernel
        return {s: self._unit.fixed.constants[kernel.names[s]] for s in kernel.symbols}

    def _value(self, expression: object, edition: Edition) -> str:
        return self._value_of(as_symbol(simplify(as_symbol(expression).substitute(edition.known))))

    def _value_of(self, expression: Symbol) -> str:
        return c_expressions.number(expression, self._name_of)

    def _address_of(self, parameter: str) -> str:
        return f"n->{self._names[parameter]}"
