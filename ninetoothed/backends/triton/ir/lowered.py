"""What a printer prints: a kernel for a kind of call, and all that was decided about it, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from ninetoothed import threads
from ninetoothed.backends.base import Call
from ninetoothed.backends.triton.analysis.full_iterations import Holding
from ninetoothed.backends.triton.specialization.boxes import Box
from ninetoothed.backends.triton.specialization.call_facts import CallFacts
from ninetoothed.backends.triton.specialization.size_classes import facts_for
from ninetoothed.backends.triton.specialization.tiles import check_tiles
from ninetoothed.kernels.definition import Definition
from ninetoothed.language import dtypes
from ninetoothed.parsing.frames import RESERVED
from ninetoothed.passes import float64_numbers, python_operators
from ninetoothed.program.names import unused
from ninetoothed.program.program import Program
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol

#: So many neighbours the threads of a warp follow where a tile is folded.
NEIGHBOURS = 32

#: So many positions of the other dimension one thread has in succession: as many elements of 16 bits
#: are written to shared memory at once.
RUN = 8

#: What is known where nothing is.
UNKNOWN = CallFacts()


class Rewrite(Protocol):
    """A step from a program to another: equal where it does the same, and hashable."""

    def __call__(self, program: Program, lowered: Lowered) -> Program:
        """The program after the step."""
        ...


@dataclass(frozen=True)
class FullTiles:
    """A body without masks, for programs within which no tensor ends, beside the one with them.

    Attributes:
        tests: what is negative where a program is such.
        holding: what holds then.
    """

    tests: tuple[Symbol, ...]
    holding: Holding


@dataclass(frozen=True)
class Pipeline:
    """A program in Gluon that loads a loop's tiles to rings of buffers itself.

    Attributes:
        num_buffers: of each ring.
        is_one_loop: whether a split loop is written as one.
    """

    num_buffers: int
    is_one_loop: bool = False


@dataclass(frozen=True)
class Lowered:
    """A kernel for a kind of call, and what was decided about it.

    Attributes:
        kernel: it.
        facts: what is known of the calls.
        rewrites: the steps from the kernel's program to the one that is printed.
        boxes: the tensors that are moved by descriptor, and how.
        folds: those whose gathered tiles are loaded in four dimensions, each with the dimension of the
            neighbours.
        evict_last: those whose loads ask the second-level cache to keep them.
        group_size: rows of tiles in a group of programs; row-major order where it is 1.
        by_inverses: whether positions in the grid are found by multiplication.
        parts: programs that share the reduction of one element of the grid.
        is_persistent: whether programs stay and handle one element after another.
        waits: whether a program first waits for the kernel before.
        prefetched: the tensors whose tiles a loop loads one round ahead.
        full_tiles: what has a body without masks; None where there is one body.
        tma_pipeline: buffers of the loop's tiles, in Gluon; None in Triton.
    """

    kernel: Definition
    facts: CallFacts = UNKNOWN
    rewrites: tuple[Rewrite, ...] = ()
    boxes: frozenset[tuple[str, Box]] = frozenset()
    folds: frozenset[tuple[str, int]] = frozenset()
    evict_last: frozenset[str] = frozenset()
    group_size: int = 1
    by_inverses: bool = False
    parts: int = 1
    is_persistent: bool = False
    waits: bool = False
    prefetched: frozenset[str] = frozenset()
    full_tiles: FullTiles | None = None
    tma_pipeline: Pipeline | None = None

    @classmethod
    def of(cls, kernel: Definition, call: Call, environment: Mapping[Symbol, int]) -> Lowered:
        """The plain translation for a call.

        Raises:
            ArrangementError: the sizes do not fit the arrangement.
            ArgumentError: a tile is too large for any device.
        """
        check_tiles(kernel, environment)
        grid = kernel.verified_grid(environment)
        facts = facts_for(kernel, environment, grid, call.is_general)
        tensors = {name: argument.dtype for name, argument in call.arguments.items()}
        facts = facts.with_types(tensors, call.scalars)
        return cls(kernel, replace(facts, booleans=call.of_dtype(dtypes.bool)))

    @threads.cached_property
    def program(self) -> Program:
        """The program that is printed."""
        program = self.kernel.optimized
        booleans, has_unsigned = self.facts.booleans, self.facts.has_unsigned
        if booleans or has_unsigned:
            program = python_operators.run(program, booleans, has_unsigned)
        if self.facts.beside_float64:
            program = float64_numbers.run(program, dict(self.facts.beside_float64))
        for rewrite in self.rewrites:
            program = rewrite(program, self)
        return program

    def box(self, parameter: str) -> Box | None:
        """How a tensor is moved by descriptor; None where it is not."""
        return next((box for name, box in self.boxes if name == parameter), None)


class Names:
    """Names that neither a program nor the kernel has yet."""

    def __init__(self, program: Program, kernel: Definition) -> None:
        self.taken = {*program.names, *kernel.names.values(), *RESERVED}
        self.taken |= {parameter.name for parameter in kernel.parameters}

    def fresh(self, wanted: str) -> str:
        """A name that nothing has."""
        name = unused(wanted, self.taken)
        self.taken.add(name)
        return name
