"""Records are Python's dataclasses in all that can be seen of them."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import sys
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any, ClassVar

import pytest

from ninetoothed import records, threads

KINDS = [dataclasses.dataclass, records.dataclass]


def point(dataclass: Any, **options: Any) -> Any:
    """A class with a field of each kind."""

    class Point:
        """A point."""

        x: int
        y: int = 2
        extent: list[int] = field(default_factory=lambda: [1])
        place: str = field(default="", compare=False, repr=False)
        known: dict[str, int] = field(default_factory=dict, init=False)
        name: str = field(kw_only=True, default="p")
        origin: ClassVar[int] = 0

    return dataclass(**options)(Point)


def seen(act: Any) -> tuple[Any, ...]:
    """What came of something, whichever class it was done to."""
    try:
        return ("gives", act())
    except Exception as error:
        return (type(error), str(error))


ACTS = {
    "all by place": lambda kind: repr(kind(1, 2, [3], "here")),
    "by keyword": lambda kind: repr(kind(x=1, extent=[], name="q")),
    "too few": lambda kind: kind(),
    "too many": lambda kind: kind(1, 2, [3], "", "p"),
    "a name that is none": lambda kind: kind(1, z=3),
    "what is not given": lambda kind: kind(1, known={}),
    "defaults are apart": lambda kind: kind(1).extent is kind(1).extent,
    "equal": lambda kind: kind(1, place="a") == kind(1, place="b"),
    "unequal": lambda kind: [kind(1) == kind(2), kind(1) != kind(1, name="q"), kind(1) == 1],
    "hashed": lambda kind: len({kind(1, 2, (3,)), kind(1, 2, (3,))}),
    "set": lambda kind: setattr(kind(1), "y", 3),
    "set another": lambda kind: setattr(kind(1), "z", 3),
    "deleted": lambda kind: delattr(kind(1), "y"),
    "replaced": lambda kind: repr(replace(kind(1), x=5, name="r")),
    "fields": lambda kind: [entry.name for entry in fields(kind)],
    "a copy": lambda kind: copy.copy(kind(1)) == kind(1),
    "matched": lambda kind: kind.__match_args__,
    "of the class": lambda kind: (kind.y, kind.__doc__, hasattr(kind, "x")),
}


@pytest.mark.parametrize(
    "options", [{}, {"frozen": True}, {"eq": False}, {"frozen": True, "eq": False}], ids=str
)
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_a_record_does_as_a_dataclass(act: Any, options: dict[str, Any]) -> None:
    expected, found = (seen(lambda kind=kind: act(point(kind, **options))) for kind in KINDS)
    assert found == expected


@pytest.mark.parametrize("dataclass", KINDS)
def test_what_a_class_defines_is_its_own(dataclass: Any) -> None:
    @dataclass(frozen=True)
    class Named:
        name: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named) and other.name.lower() == self.name.lower()

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "named"

        def __post_init__(self) -> None:
            if not self.name:
                raise ValueError("no name")

    assert Named("A") == Named("a") and hash(Named("A")) == 7 and repr(Named("A")) == "named"
    with pytest.raises(ValueError, match="no name"):
        Named("")


@pytest.mark.parametrize("dataclass", KINDS)
def test_fields_of_bases_come_first(dataclass: Any) -> None:
    @dataclass(frozen=True)
    class Base:
        a: int
        b: int = 1

    class Between(Base):
        pass

    @dataclass(frozen=True)
    class Derived(Between):
        b: int = 2
        c: int = 3

    assert repr(Derived(0, c=4)) == repr(Derived(c=4, a=0))
    assert repr(Derived(0)).endswith("Derived(a=0, b=2, c=3)")
    assert Between(4).b == 1 and Base(4) != Derived(4) and Between(4) == Between(4)
    with pytest.raises(FrozenInstanceError):
        Between(4).b = 2  # type: ignore[misc]


@records.dataclass(frozen=True)
class Kept:
    x: int


def test_what_is_read_from_bytes_before_any_is_made_compares() -> None:
    one, other = (Kept.__new__(Kept) for _ in range(2))
    for each in (one, other):
        object.__setattr__(each, "x", 3)
    assert pickle.loads(pickle.dumps(one)) == other and repr(one) == "Kept(x=3)"


def test_a_debugger_that_reads_variables_adds_nothing_to_a_record() -> None:
    def trace(frame: Any, event: str, argument: Any) -> Any:
        seen_variables.append(dict(frame.f_locals))
        return trace

    seen_variables: list[dict[str, Any]] = []
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        made = point(records.dataclass)(1)
    finally:
        sys.settrace(before)
    assert {"x": 1}.items() <= made.__dict__.items() and "self" not in made.__dict__
    assert any("self" in variables for variables in seen_variables)


@pytest.mark.parametrize("is_enabled", [True, False])
def test_collections_are_as_they_were_afterwards(is_enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if is_enabled else gc.disable)()
        with pytest.raises(KeyError), threads.without_collections():
            assert not gc.isenabled()
            with threads.without_collections():
                pass
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() is is_enabled
    finally:
        (gc.enable if before else gc.disable)()
