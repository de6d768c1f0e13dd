"""A program about variables: the text of an application, and what it is called with.

Every tensor is a vector in blocks, `w` aside, of which each program has the whole. So what a program has of
each is the same elements, and an application means what Python means by it (`oracle`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.hunt.spelling.respelled import respelled

#: The tensors in the order of the application's parameters; those that the text does not name are left out.
TENSORS = ("x", "z", "u", "w", "y", "v")

HEADER = """\
import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

"""


@dataclass(frozen=True)
class Program:
    """What is drawn, run and made smaller.

    Attributes:
        text: helpers and the application, without what `module` puts around them.
        types: the element type of each tensor.
        numbers: the arguments that are no tensors, by name.
        constants: those of them that are known when the kernel is compiled.
        pads: what `pad` adds to a tensor before and behind, which has so much less then.
        others: what a tensor reads as where it has no element.
        spelling: how its text is written, as `spelling.respelled` has it.
    """

    seed: int
    text: str
    types: dict[str, str]
    size: int
    tile: int
    width: int
    numbers: dict[str, Any] = field(default_factory=dict)
    constants: frozenset[str] = frozenset()
    pads: dict[str, tuple[int, int]] = field(default_factory=dict)
    others: dict[str, float] = field(default_factory=dict)
    family: str = "variables"
    spelling: tuple[tuple[str, int], ...] = ()

    @property
    def names(self) -> list[str]:
        return [*self.types, *self.numbers]

    @property
    def has_padding(self) -> bool:
        """Whether elements that do not exist are asked for; else a tile has those alone that do."""
        return bool(self.pads or self.others)

    @property
    def called(self) -> str:
        """What it is called with, in words."""
        texts = [f"{name}: {dtype}" for name, dtype in self.types.items()]
        texts += [f"{n}={v}{' constexpr' * (n in self.constants)}" for n, v in self.numbers.items()]
        texts += [f"{name} padded {pad}" for name, pad in self.pads.items()]
        texts += [f"{name} else {value}" for name, value in self.others.items()]
        return "; ".join([*texts, f"{self.size} elements in blocks of {self.tile}"])

    @property
    def written(self) -> str:
        """The text as it is written."""
        numbers = [name for name in self.numbers if name not in self.constants]
        ranks = dict.fromkeys(self.types, 1)
        return respelled(self.text, self.spelling, ranks, numbers, sorted(self.constants))

    def content(self) -> dict[str, np.ndarray]:
        """What is in the tensors before: numbers that every type of them holds, or quarters."""
        choose = np.random.default_rng(self.seed)
        held = {}
        for name in TENSORS:
            size = self.width if name == "w" else self.size
            whole = choose.integers(1, 6, size) * choose.choice((-1, 1), size)
            if name in self.types:
                dtype = self.types[name]
                if name in self.pads:
                    whole = whole[: size - sum(self.pads[name])]
                held[name] = (whole if dtype == "int32" else whole * 0.5).astype(dtype)
        return held

    def module(self) -> str:
        """The text whose ``kernel`` is called with the tensors and the numbers in order."""
        first = next(name for name in self.types if name != "w")
        lines = ["", "", f"def arrangement({', '.join(self.names)}):"]
        arranged = {}
        for name in self.types:
            padded = f"{name}.pad(({self.pads[name]},))" if name in self.pads else name
            arranged[name] = f"{padded}.tile(({self.tile},))"
        lines.append(f"    blocks = {arranged[first]}")
        arranged["w"] = "w.tile((-1,)).expand((blocks.shape[0],))"
        lines.append(
            f"    return {', '.join(arranged.get(n, n) for n in self.types | self.numbers)},"
        )
        others = {name: f", other={value}" for name, value in self.others.items()}
        tensors = [f"Tensor(1{others.get(name, '')})" for name in self.types]
        for name in self.numbers:
            tensors.append(f"Tensor(0{', constexpr=True' * (name in self.constants)})")
        lines += ["", "", f"tensors = ({', '.join(tensors)},)"]
        lines.append("kernel = ninetoothed.make(arrangement, application, tensors)")
        parameters = f"def application({', '.join(self.names)}):"
        return (
            HEADER
            + self.written.replace("def application():", parameters)
            + "\n".join(lines)
            + "\n"
        )
