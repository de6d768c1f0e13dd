"""``ntl``: the names of Triton's language, neutral.

Every public function, type and constant of Triton 3.6's language (`operations` has the table) stands here
under the same name, as a marker that a backend gives its meaning to: one prints it, another runs it as Python
(`ninetoothed.evaluation`). Element types are `ninetoothed.language.dtypes`' objects. No backend is known here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ninetoothed.errors import near as _near
from ninetoothed.evaluation import EVALUATOR as _EVALUATOR
from ninetoothed.language import dtypes as _dtypes
from ninetoothed.language import operations as _operations

_ELEMENT_TYPES = """
    bfloat16 float16 float32 float64 float8e4nv float8e5 int1 int16 int32 int64 int8 uint16 uint32
    uint64 uint8
""".split()


class LanguageFunction:
    """A name of the language, whose meaning a backend gives. Immutable; one object a name.

    Attributes:
        name: as in Triton's language, dotted where it is in a namespace: ``"exp"``,
            ``"libdevice.tanh"``, ``"PropagateNan.ALL"``.
        kind: ``"function"``, ``"type"`` (an annotation, or called to make a value) or
            ``"constant"``.
    """

    __slots__ = ("kind", "name")

    name: str
    kind: str

    def __init__(self, name: str, kind: str = "function") -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "kind", kind)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self!r} cannot be changed.")

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run it as Python, on tiles and numbers, by the backend that can.

        Raises:
            NineToothedError: that backend does not have it, or it cannot take the arguments.
        """
        return _EVALUATOR.function(self.name)(*arguments, **keywords)

    def __repr__(self) -> str:
        return f"ntl.{self.name}"

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return (_by_dotted_name, (self.name,))


class LanguageNamespace:
    """A part of the language with names of its own, such as ``ntl.libdevice``."""

    def __init__(self, name: str, members: Mapping[str, Any]) -> None:
        self.__dict__.update(members)
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return _unknown(name, self._name, [key for key in self.__dict__ if key != "_name"])

    def __repr__(self) -> str:
        return f"ntl.{self._name}"

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return (_by_dotted_name, (self._name,))


def _by_dotted_name(name: str) -> Any:
    found: Any = None
    for index, part in enumerate(name.split(".")):
        found = _lookup(part) if index == 0 else getattr(found, part)
    return found


def _lookup(name: str) -> Any:
    return _MEMBERS[name] if name in _MEMBERS else __getattr__(name)


def _markers(names: Iterable[str], kind: str = "function", prefix: str = "") -> dict[str, Any]:
    return {name: LanguageFunction(prefix + name, kind) for name in names}


def _namespace(name: str, functions: Iterable[str], **others: Any) -> LanguageNamespace:
    return LanguageNamespace(name, {**_markers(functions, prefix=f"{name}."), **others})


def _members() -> dict[str, Any]:
    homes: dict[str, list[str]] = {}
    types = []
    for path, row in _operations.TABLE.items():
        name = path.rpartition(".")[2]
        if row.kind == "type":
            types.append(name)
        else:
            homes.setdefault(row.home, []).append(name)
    top = {home: sorted(homes[home]) for home in ("core", "math", "random", "standard")}
    libdevice = _namespace("libdevice", sorted(homes["libdevice"]))
    device = LanguageNamespace("extra.cuda", {"libdevice": libdevice})
    return {
        **_markers(sorted(name for names in top.values() for name in names)),
        **_markers(types, "type"),
        **{name: _dtypes.by_name(name) for name in _ELEMENT_TYPES},
        "TRITON_MAX_TENSOR_NUMEL": 1048576,
        "PropagateNan": LanguageNamespace(
            "PropagateNan", _markers(("ALL", "NONE"), "constant", "PropagateNan.")
        ),
        "libdevice": libdevice,
        **{home: _namespace(home, names) for home, names in top.items()},
        "target_info": _namespace("target_info", homes["target_info"]),
        "extra": LanguageNamespace(
            "extra",
            {
                "libdevice": libdevice,
                "cuda": device,
                "hip": LanguageNamespace("extra.hip", {"libdevice": libdevice}),
            },
        ),
    }


def _unknown(name: str, namespace: str, known: Iterable[str]) -> Any:
    """A marker for an operation from elsewhere or a name that only the installed Triton has.

    Else an `AttributeError`.
    """
    path = f"{namespace}.{name}" if namespace else name
    if path in _operations.TABLE and _operations.TABLE[path].home:
        return LanguageFunction(path)
    # A private one was met in a function of Triton's own; nobody else should cause an import.
    is_met = name.startswith("_") and bool(namespace) and "triton.language" in sys.modules
    if is_met or not name.startswith("_"):
        kind = _kind_in_triton(path)
        if kind is not None:
            return LanguageFunction(path, kind)
    raise AttributeError(f"Triton's language has no {path!r}.{_instead(name, known)}", name=name)


#: What to write for functions of array libraries that people look for here.
_INSTEAD = {
    "absolute": "ntl.abs(x)",
    "all": "ntl.min(condition)",
    "any": "ntl.max(condition)",
    "clip": "ntl.clamp(x, low, high)",
    "concat": "ntl.cat(a, b, can_reorder=True)",
    "concatenate": "ntl.cat(a, b, can_reorder=True)",
    "empty": "ntl.zeros(shape, dtype)",
    "matmul": "ntl.dot(a, b)",
    "mean": "ntl.sum(x) / x.shape[0]",
    "ones": "ntl.full(shape, 1, dtype)",
    "ones_like": "ntl.zeros_like(x) + 1",
    "power": "ntl.libdevice.pow(x, y)",
    "prod": "ntl.reduce(x, axis, function_of_two)",
    "relu": "ntl.maximum(x, 0)",
    "silu": "x * ntl.sigmoid(x)",
    "square": "x * x",
    "stack": "ntl.join(a, b)",
    "transpose": "ntl.trans(x)",
}


def _instead(name: str, known: Iterable[str]) -> str:
    """What may have been meant by a name that there is not."""
    if name in _INSTEAD:
        return f" Write `{_INSTEAD[name]}`."
    if f"libdevice.{name}" in _operations.TABLE:
        return f" There is `ntl.libdevice.{name}`."
    return _near(name, known)


def _kind_in_triton(path: str) -> str | None:
    """What the installed Triton has under ``path``; None where it has nothing or is absent."""
    try:
        import triton.language
        from triton.language.extra import libdevice
    except ImportError:
        return None
    parts = path.split(".")
    found: Any = triton.language
    if parts[0] == "libdevice":
        found, parts = libdevice, parts[1:]
    for part in parts:
        found = getattr(found, part, None)
    if found is None or type(found).__name__ == "module":
        return None
    if isinstance(found, type):
        return "type"
    return "function" if callable(found) else "constant"


def __getattr__(name: str) -> Any:
    return _unknown(name, "", _MEMBERS)


_MEMBERS = _members()

__all__ = ["LanguageFunction", "LanguageNamespace", *_MEMBERS]  # noqa: PLE0604

# From here on `max`, `range` and others of Python's names mean the language's in this module.
globals().update(_MEMBERS)
