"""What Python's names are called in C and C++: the same, but for keywords and letters that C has not."""

from __future__ import annotations

from collections.abc import Iterable

_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const
    consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct
    switch template this thread_local throw true try typedef typeid typename union unsigned using virtual
    void volatile wchar_t while xor xor_eq linux unix errno stdin stdout stderr
    """.split()
)

#: The generated functions' own.
_OWN = frozenset(
    "stream result own tensors numbers new_numbers is_known n tiles bytes last decided arguments scratch "
    "workspace value ask run decide launch targets parameters the_kernel".split()
)


def c_names(names: Iterable[str]) -> dict[str, str]:
    """A name in C for each of some names, all different."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        if name in found:
            continue
        wanted = "".join(c if c.isascii() else f"u{ord(c):04x}" for c in name)
        if wanted in _KEYWORDS or wanted in _OWN or wanted.startswith(("nt_", "NT_", "_")):
            wanted = f"{wanted.strip('_') or 'name'}_"
        while wanted in taken:
            wanted += "_"
        taken.add(wanted)
        found[name] = wanted
    return found
