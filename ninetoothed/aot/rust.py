"""A Rust crate of a folder's kernels: it compiles the C sources with ``cc`` and needs no other crate."""

from __future__ import annotations

from collections.abc import Iterator

from ninetoothed.aot.packaging import RUNTIME_SOURCES, filled
from ninetoothed.aot.signatures import NUMBERS, Signature
from ninetoothed.aot.unit import Unit

_RUST = {"double": "f64", "int64_t": "i64", "uint64_t": "u64"}

_KEYWORDS = frozenset(
    "as async await box crate dyn final fn impl in let loop macro match mod move mut override priv pub ref "
    "self Self super trait type unsized use where yield stream".split()
)


def files(
    name: str, unit: Unit, choices: tuple[str, ...], sources: list[str], version: str
) -> dict[str, str]:
    """The crate's files by name, in a folder ``rust`` beside the C sources."""
    arguments = list(_arguments(unit, choices))
    typed = ", ".join(["stream: *mut c_void", *(f"{n}: {t}" for n, t in arguments)])
    values = {
        "name": name,
        "crate": f"{name.replace('_', '-')}-kernels",
        "version": version,
        "sources": ", ".join(f'"{source}"' for source in [*sources, *RUNTIME_SOURCES]),
        "typed": typed,
        "borrowed": typed.replace("*const DLTensor", "&DLTensor"),
        "passed": ", ".join(["stream", *(n for n, _ in arguments)]),
    }
    return {f"rust/{file}": filled(file, values) for file in ("Cargo.toml", "build.rs", "lib.rs")}


def _arguments(unit: Unit, choices: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    signature = Signature(unit, choices)
    for parameter in unit.parameters:
        name = _escaped(signature.names[parameter.name])
        if parameter.kind == "tensor":
            yield name, "*const DLTensor"
        elif parameter.kind == "scalar":
            yield name, _RUST[NUMBERS[signature.dtype(parameter).name].given]
    for choice in choices:
        yield _escaped(signature.names[choice]), "c_int"


def _escaped(name: str) -> str:
    return f"{name}_" if name in _KEYWORDS else name
