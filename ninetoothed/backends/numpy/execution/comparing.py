"""A launch run once more by a second backend, on copies of the memory, and what the two stored compared.

For `debugging.check`: of each element the store that wrote it last is known, by its line and program, so that
the first one with which the backends differ is named.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ninetoothed.backends.numpy.values.memory import Memory
from ninetoothed.errors import DifferingStoreError, Location, caller_location
from ninetoothed.kernels.call import Device
from ninetoothed.language.dtypes import DType
from ninetoothed.records import dataclass

if TYPE_CHECKING:
    from ninetoothed.backends.base import Backend, Call
    from ninetoothed.backends.numpy.execution.execute import Launch
    from ninetoothed.kernels.definition import Definition

#: How far results may be apart, relatively and absolutely, by the bits of a float.
_TOLERANCES = {64: 1e-10, 32: 1e-4, 16: 2e-2, 8: 0.13}

#: Copies begin as far from a multiple of this many bytes as what they are of does.
_ALIGNMENT = 256


@dataclass(frozen=True)
class Second:
    """The backend to compare with.

    Attributes:
        backend: the backend.
        kind: the kind of device that it is to run on.
        rtol, atol: how far floats may be apart; None for what suits their type.
    """

    backend: Backend
    kind: str
    rtol: float | None = None
    atol: float | None = None

    def is_near(self, one: Any, other: Any, dtype: DType) -> Any:
        """Which elements agree."""
        if dtype.kind != "float":
            return one == other
        usual = _TOLERANCES[8 * dtype.itemsize]
        rtol = usual if self.rtol is None else self.rtol
        atol = usual if self.atol is None else self.atol
        one, other = one.astype(np.float64), other.astype(np.float64)
        return np.isclose(other, one, rtol=rtol, atol=atol, equal_nan=True)


@dataclass(frozen=True)
class _Region:
    """Memory that tensors share, as it was before the launch."""

    start: int
    content: bytes

    @property
    def lead(self) -> int:
        return self.start % _ALIGNMENT


@dataclass(eq=False)
class Comparison:
    """One launch, to be compared.

    Args:
        kernel, call: what is launched.
        memories: the tensors' memory.
        offsets: addresses and sizes in bytes of what else is read: where sequences begin.
    """

    second: Second
    kernel: Definition
    call: Call
    launch: Launch
    memories: Sequence[Memory]
    offsets: Sequence[tuple[int, int]]

    def __post_init__(self) -> None:
        arrays = [(memory.array.ctypes.data, memory.array.nbytes) for memory in self.memories]
        self._regions = _regions([*arrays, *self.offsets])
        self._stores: list[tuple[tuple[int, ...], Location | None]] = []
        self._last: dict[Memory, np.ndarray] = {}

    def observe(self, memory: Memory, indices: Any, mask: Any, access: str) -> None:
        """Told of every access before it happens."""
        if access == "load":
            return
        written = np.asarray(indices)
        if mask is not None:
            written = written[np.broadcast_to(mask, written.shape)]
        last = self._last.setdefault(memory, np.full(memory.array.size, -1))
        last[written] = len(self._stores)
        self._stores.append((self.launch.running.program, caller_location()))

    def finish(self, values: Sequence[Any], addresses: Sequence[int]) -> None:
        """Runs the second backend, and raises where it stored something else.

        Args:
            values: what the plan was called with.
            addresses: the places of addresses among them.
        """
        backend, kind = self.second.backend, self.second.kind
        contents = [bytes(region.lead) + region.content for region in self._regions]
        with backend.lent(kind, contents) as (starts, read):
            moved = list(values)
            for place in addresses:
                moved[place] = self._moved(values[place], starts)
            plan = backend.plan(self.kernel, replace(self.call, device=Device(kind)))
            plan.run(0, *moved)
            found = read()
        # A tensor that nothing was stored to may lie in one's memory that something was.
        for memory in sorted(self.memories, key=lambda memory: memory not in self._last):
            self._compare(memory, found)

    def _moved(self, address: int, starts: Sequence[int]) -> int:
        """Where the copy of what is at an address is."""
        for region, start in zip(self._regions, starts, strict=True):
            if region.start <= address < region.start + len(region.content):
                return start + region.lead + address - region.start
        return address

    def _compare(self, memory: Memory, found: Sequence[bytes]) -> None:
        ours = memory.array
        if not ours.size:
            return
        address = ours.ctypes.data
        for region, content in zip(self._regions, found, strict=True):
            if region.start <= address < region.start + len(region.content):
                begin = region.lead + address - region.start
                theirs = np.frombuffer(content, np.uint8)[begin : begin + ours.nbytes]
                theirs = theirs.copy().view(ours.dtype)
                differs = ~self.second.is_near(ours, theirs, memory.dtype)
                if differs.any():
                    raise self._difference(memory, ours, theirs, np.flatnonzero(differs))

    def _difference(
        self, memory: Memory, ours: np.ndarray, theirs: np.ndarray, places: np.ndarray
    ) -> DifferingStoreError:
        last = self._last.get(memory)
        stores = np.full(places.size, -1) if last is None else last[places]
        written = stores >= 0
        chosen = int(np.argmin(np.where(written, stores, len(self._stores))))
        place, store = int(places[chosen]), int(stores[chosen])
        name = f"the {self.second.backend.name} backend"
        where = f"`{memory.name}` at {memory.index_of(place)}"
        if store < 0:
            return DifferingStoreError(
                f"kernel `{self.launch.name}`: {name} stores {theirs[place]} to {where}, and NumPy "
                f"nothing: there is {ours[place]}."
            )
        program, location = self._stores[store]
        both = places[stores == store]
        among = int((last == store).sum()) if last is not None else 0
        return DifferingStoreError(
            f"kernel `{self.launch.name}`: program {program} stores {ours[place]} to {where}, and {name} "
            f"has {theirs[place]} there. Of the {among} elements that this store leaves, {both.size} "
            f"differ; of all of `{memory.name}`, {places.size} do.",
            location,
        )


def _regions(ranges: Sequence[tuple[int, int]]) -> list[_Region]:
    """Copies of memory, those together that overlap."""
    merged: list[list[int]] = []
    for start, size in sorted(ranges):
        if not start or not size:
            continue
        if merged and start < merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], start + size)
        else:
            merged.append([start, start + size])
    return [_Region(start, ctypes.string_at(start, end - start)) for start, end in merged]
