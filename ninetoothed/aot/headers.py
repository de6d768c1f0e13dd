"""The header of a unit, and the header and the source of a function that chooses among several units."""

from __future__ import annotations

from collections.abc import Sequence

from ninetoothed.aot.c_text import quoted
from ninetoothed.aot.configurations import Choice
from ninetoothed.aot.packaging import filled
from ninetoothed.aot.signatures import Signature
from ninetoothed.aot.unit import Unit


def header(name: str, unit: Unit, choices: tuple[str, ...], version: str) -> str:
    """The header of a unit, or of what chooses among units like it."""
    signature = Signature(unit, choices)
    values = {
        "name": name,
        "version": version,
        "guard": f"NINETOOTHED_GENERATED_{name.upper()}_H",
        "published": signature.published(name),
        "dlpack": signature.dlpack(name),
        "workspace_size": signature.workspace_size(name),
    }
    return filled("header.h", values)


def dispatcher(name: str, chosen: Sequence[tuple[Choice, Unit]], version: str) -> str:
    """The source of the functions that choose a unit by their last arguments."""
    signature = Signature(chosen[0][1], chosen[0][0].names)
    given, numbers = signature.forwarded, ("tensor", "scalar")
    functions = (
        (signature.published(name), "launch_{}", given("stream", *numbers, "constexpr")),
        (signature.dlpack(name), "{}_launch", given("stream", *numbers)),
        (signature.workspace_size(name), "{}_workspace_size", given("bytes", "tensor")),
    )
    names = [unit.name for _, unit in chosen]
    values = {
        "name": name,
        "version": version,
        "includes": "\n".join(f'#include "{each}.h"' for each in names),
        "functions": "\n\n".join(
            f"{start} {{\n{_choosing(name, f'{called}({arguments})', signature, chosen)}\n}}"
            for start, called, arguments in functions
        ),
        "prepared": "\n".join(f"  if (!result) result = {n}_prepare(device);" for n in names),
    }
    return filled("dispatcher.c", values)


def _choosing(
    name: str, call: str, signature: Signature, chosen: Sequence[tuple[Choice, Unit]]
) -> str:
    """The body of a function that calls one of the units' own."""
    lines = []
    for choice, unit in chosen:
        tests = [f"{signature.names[n]} == {v}" for n, v in zip(choice.names, choice.values)]
        condition = f"if ({' && '.join(tests)}) " if tests else ""
        lines.append(f"  {condition}return {call.format(unit.name)};")
    if names := chosen[0][0].names:
        text = quoted(f"kernel `{name}` was not built for {', '.join(f'{n}=%d' for n in names)}")
        values = ", ".join(signature.names[n] for n in names)
        lines.append(f"  return nt_refuse(NT_ERROR_CONFIG, {text}, {values});")
    return "\n".join(lines)
