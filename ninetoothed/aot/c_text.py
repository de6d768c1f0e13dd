"""Pieces of C text, and what Python's names are called there."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterable, Iterator, Sequence

from ninetoothed.kernels.ahead import TensorMap

_WIDTH = 100

_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const
    consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct
    switch template this thread_local throw true try typedef typeid typename union unsigned using virtual
    void volatile wchar_t while xor xor_eq linux unix errno stdin stdout stderr
    main NULL alloca offsetof kill_dependency EHWPOISON
    """.split()
) | frozenset(dir(errno))

#: The generated functions' own.
_OWN = frozenset(
    "stream result own tensors numbers new_numbers is_known n tiles bytes last decided arguments scratch "
    "workspace value call_numbers ask run decide launch targets parameters the_kernel".split()
)


#: What headers define, or may: macros and types, of C's and of the runtime's.
_DEFINED = re.compile(
    r"(DL[A-Z]|kDL|NineToothed|NINETOOTHED)\w*"
    r"|(atomic|pthread|ATOMIC|PTHREAD|SCHED|CLOCKS?|TIMER|SEEK|LC|EXIT|FD|RENAME|FLT|DBL|LDBL|U?INT\d*)_\w+"
    r"|(U?INT(MAX|PTR)|SIG_ATOMIC)_\w+|[A-Z]+_(MAX|MIN|WIDTH|DIG|UTC|ENDIAN|CUR_MAX)"
    r"|(u?int(_fast|_least)?(\d+|ptr|max)|size|ssize|ptrdiff|wchar|char\d+|max_align)_t"
    r"|W(IF|EXIT|STOP|TERM|CONTINUED|UNTRACED|NO)[A-Z]*|W?EOF|FD[A-Z]*|NFDBITS|BYTE_ORDER|BUFSIZ|sched_priority"
    r"|L_ctermid|L_cuserid|L_tmpnam|P_tmpdir|(htobe|htole|be|le)\d\d(toh)?"
)


def quoted(text: str) -> str:
    """A string of C."""
    return json.dumps(text)


def or_return(call: str, indent: str = "  ") -> Iterator[str]:
    yield f"{indent}if ((result = {call})) return result;"


def statement(start: str, tests: Sequence[str]) -> Iterator[str]:
    """An assignment of a conjunction, a line for each part."""
    for place, test in enumerate(tests):
        begin = start if place == 0 else " " * 6 + "&& "
        end = ";" if place == len(tests) - 1 else ""
        yield f"{begin}{test}{end}"


def within_lines(items: Iterable[str], indent: str) -> Iterator[str]:
    line = indent
    for item in items:
        if len(line) + len(item) > _WIDTH and line.strip():
            yield line.rstrip()
            line = indent
        line += f"{item}, "
    yield line.rstrip()


def tensor_map(map_: TensorMap) -> str:
    extents = ", ".join(map(str, map_.extents))
    numbers = f"{map_.dtype}, {map_.itemsize}, {map_.swizzle}, {len(map_.extents)}"
    return f"    {{{numbers}, {{{extents}}}}},"


def byte_array(data: bytes) -> Iterator[str]:
    """An array's content: numbers, and a last zero for what is text."""
    yield "    {"
    for start in range(0, len(data), 32):
        yield "".join(f"{byte}," for byte in data[start : start + 32])
    yield "0};"


def c_names(names: Iterable[str]) -> dict[str, str]:
    """A name in C and C++ for each of some names, all different."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        if name in found:
            continue
        wanted = "".join(c if c.isascii() else f"u{ord(c):04x}" for c in name).replace(".", "_")
        is_reserved = wanted in _KEYWORDS or wanted in _OWN or _DEFINED.fullmatch(wanted)
        if is_reserved or wanted.startswith(("nt_", "NT_", "_")):
            wanted = f"{wanted.strip('_') or 'name'}_"
        while wanted in taken:
            wanted += "_"
        taken.add(wanted)
        found[name] = wanted
    return found
