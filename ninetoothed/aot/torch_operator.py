"""An operator of PyTorch that launches a kernel: C++ by the stable interface, for programs without Python."""

from __future__ import annotations

from collections.abc import Iterator

from ninetoothed.aot.packaging import filled
from ninetoothed.aot.signatures import NUMBERS, Signature
from ninetoothed.aot.unit import Unit
from ninetoothed.program.written import written

#: What a number is called in C++ and in an operator's schema, by what C takes.
_NUMBERS = {
    "double": ("double", "float"),
    "int64_t": ("int64_t", "int"),
    "uint64_t": ("int64_t", "int"),
}


def text(name: str, namespace: str, unit: Unit, choices: tuple[str, ...], version: str) -> str:
    """The C++ source of ``torch.ops.<namespace>.<name>``, which takes what ``<name>_launch`` does but the stream."""
    signature = Signature(unit, choices)
    types, called, passed, schema = zip(*_parameters(unit, signature, choices), strict=True)
    values = {
        "name": name,
        "version": version,
        "namespace": namespace,
        "first": signature.names[signature.tensors[0].name],
        "typed": ", ".join(map(" ".join, zip(types, called, strict=True))),
        "types": ", ".join(types),
        "passed": ", ".join(passed),
        "schema": ", ".join(schema),
    }
    return filled("torch_operator.cpp", values)


def _parameters(
    unit: Unit, signature: Signature, choices: tuple[str, ...]
) -> Iterator[tuple[str, str, str, str]]:
    """Of each parameter the type and the name in C++, what is passed on, and how the schema has it."""
    stored = written(unit.kernel.program)
    marks = iter("abcdefghijklmnopqrstuvwxyz")
    for parameter in unit.parameters:
        name = signature.names[parameter.name]
        if parameter.kind == "tensor":
            type_ = f"Tensor({next(marks)}!)" if parameter.name in stored else "Tensor"
            yield (
                "const torch::stable::Tensor &",
                name,
                f"nt::from_torch({name})",
                f"{type_} {name}",
            )
        elif parameter.kind == "scalar":
            given = NUMBERS[signature.dtype(parameter).name].given
            type_, called = _NUMBERS[given]
            yield type_, name, f"static_cast<{given}>({name})", f"{called} {name}"
    for choice in choices:
        name = signature.names[choice]
        yield "int64_t", name, f"static_cast<int>({name})", f"int {name}"
