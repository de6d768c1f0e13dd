"""The tensors of a program: laid out in buffers with room around them, and what is in them.

The room, and every gap that a layout leaves, holds NaN, or a number that nothing computes: what is
read from there shows in the results, and what is written there is seen.
"""

from __future__ import annotations

import math
import os
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.hunt.description import Parameter, Program, gathered
from tests.hunt.values import INTEGERS, Ambiguous, Value, is_float, storage_of, wrapped

#: How many elements there are before and behind a tensor; none where a sanitizer looks at the ends.
ROOM = int(os.environ.get("HUNT_ROOM", "64"))

#: No program is taken that has more elements in a value.
MOST_ELEMENTS = 1 << 16

LAYOUTS = ("contiguous", "transposed", "spread", "apart", "shifted", "far", "repeated", "sliding")

#: Those in which elements lie over each other.
OVERLAID = ("repeated", "sliding")

#: How far from what is nowhere the next one along a dimension of one element would be.
FAR = (1 << 33) + 1


def poison_of(dtype: str) -> Any:
    """What no program computes, in a type."""
    if dtype == "bool":
        return False
    if is_float(dtype):
        return math.nan
    bits, signed = INTEGERS[dtype]
    return (1 << (bits - (2 if signed else 1))) + 29 % (1 << bits - 3)


def places(parameter: Parameter) -> tuple[np.ndarray, int, tuple[int, ...], int]:
    """Where in a buffer the elements are, in order; its size, the strides, the first element's place."""
    shape, layout = parameter.shape, parameter.layout
    order = list(range(len(shape)))
    if layout == "transposed":
        order = order[1:] + order[:1]
    strides, size = [0] * len(shape), 2 if layout == "spread" else 1
    for count, dim in enumerate(reversed(order)):
        strides[dim] = size
        size *= max(shape[dim], 1)
        if layout == "apart" and count == 0:
            size += 3
    if layout == "far":
        strides = [FAR if count == 1 else stride for count, stride in zip(shape, strides)]
    if layout in OVERLAID and shape:
        strides[0] = 0 if layout == "repeated" else strides[-1]
    first = ROOM + (1 if layout == "shifted" else 0)
    grids = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), int)
    index = first + sum((g * s for g, s in zip(grids, strides)), np.zeros(grids.shape[1], int))
    return index.astype(int), size + first + ROOM, tuple(strides), first


def content(program: Program, parameter: Parameter) -> np.ndarray:
    """A buffer as it is before the program runs."""
    index, size, _, _ = places(parameter)
    # A type that NumPy has not is held in one that has all its values.
    buffer = np.full(size, poison_of(parameter.dtype), storage_of(parameter.dtype))
    if not parameter.is_output:
        seed = zlib.crc32(f"{program.seed} {parameter.name}".encode())
        buffer[index] = drawn(np.random.default_rng(seed), len(index), parameter)
    return buffer


def drawn(choose: np.random.Generator, count: int, parameter: Parameter) -> np.ndarray:
    """Elements of which none is 0: quarters up to 4, or integers, small or now and then the largest."""
    if parameter.dtype == "bool":
        return choose.integers(0, 2, count).astype(bool)
    is_real = is_float(parameter.dtype)
    size = choose.integers(1, 17 if is_real else 10, count) / (4.0 if is_real else 1)
    sign = {"negative": -1, "positive": 1}.get(parameter.sign, choose.choice((-1, 1), count))
    if parameter.dtype.startswith("u"):
        sign = 1
    if parameter.dtype in _LARGEST and choose.random() < 0.15:
        size = _LARGEST[parameter.dtype] - size + (sign < 0) + 1
    return (size * sign).astype(storage_of(parameter.dtype))


@dataclass
class Buffer:
    """What is in a buffer, by how much it may be off, and which programs, and threads, had to do with it."""

    data: np.ndarray
    error: np.ndarray
    written: np.ndarray
    writer: np.ndarray
    reader: np.ndarray
    stored_by: np.ndarray
    loaded_by: np.ndarray

    def copy(self) -> Buffer:
        return Buffer(*(part.copy() for part in vars(self).values()))


#: The largest integers of the types of which a float holds all.
_LARGEST = {
    dtype: (1 << bits - signed) - 1 for dtype, (bits, signed) in INTEGERS.items() if bits <= 32
}

#: Nobody, and several.
NOBODY, SEVERAL = -1, -2

_FUNCTIONS = {
    **{"add": "add", "max": "maximum", "min": "minimum"},
    **{"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"},
}
#: Who wrote what one atomic operation of several programs did.
ATOMICS = {name: -3 - place for place, name in enumerate(_FUNCTIONS)}


#: Of what says who has an element, what is behind the tensor's number; all of it is several lanes.
_ANY_LANE = (1 << 40) - 1


def _are_others(known: np.ndarray, own: np.ndarray) -> bool:
    """Whether an element may be another thread's through another tensor, for which none waits."""
    differ = known // (_ANY_LANE + 1) != own // (_ANY_LANE + 1)
    return bool(((known != NOBODY) & differ & ((known ^ own) & _ANY_LANE != 0)).any())


class Memory:
    """The buffers of all parameters."""

    def __init__(
        self, buffers: dict[str, Buffer], owners: dict[str, str], where: dict[str, np.ndarray]
    ):
        self.buffers = buffers
        self._owners = owners
        self._where = where

    @classmethod
    def of(cls, program: Program) -> Memory:
        buffers, owners, where = {}, {}, {}
        for parameter in program.parameters:
            owners[parameter.name] = owner = parameter.same_as or parameter.name
            where[parameter.name] = places(program.parameter(owner))[0]
            if owner == parameter.name:
                data = content(program, parameter)
                nobody = np.full(data.shape, NOBODY)
                there = np.full(data.shape, not parameter.is_output)
                of_each = (nobody.copy() for _ in range(4))
                buffers[owner] = Buffer(data, np.zeros(data.shape), there, *of_each)
        return cls(buffers, owners, where)

    def copy(self) -> Memory:
        buffers = {name: buffer.copy() for name, buffer in self.buffers.items()}
        return Memory(buffers, self._owners, self._where)

    def _at(self, parameter: str, index: np.ndarray, there: np.ndarray) -> tuple[Buffer, Any, Any]:
        buffer = self.buffers[self._owners[parameter]]
        where = self._where[parameter]
        places = where[index[there]] if len(where) else np.zeros(0, int)
        program = np.broadcast_to(
            np.arange(len(index)).reshape(-1, *(1,) * (index.ndim - 1)), index.shape
        )[there]
        return buffer, places, program

    def _threads(self, parameter: str, index: np.ndarray, there: np.ndarray) -> np.ndarray:
        """By which tensor, and which element of a tile of which shape, each is had."""
        shape = index.shape[1:]
        first = (zlib.crc32(repr(shape).encode()) % (_ANY_LANE >> 17)) << 17
        lanes = first + np.arange(math.prod(shape)).reshape(shape)
        tensor = list(self._owners).index(parameter) * (_ANY_LANE + 1)
        return np.broadcast_to(tensor + lanes, index.shape)[there]

    def load(
        self, parameter: str, index: np.ndarray, there: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        buffer, places, program = self._at(parameter, index, there)
        if not buffer.written[places].all():
            raise Ambiguous("what was never written is read")
        writer = buffer.writer[places]
        if ((writer != NOBODY) & (writer != program)).any():
            raise Ambiguous("one program reads what another wrote")
        lowest = np.full(buffer.reader.shape, np.iinfo(int).max)
        highest = np.full(buffer.reader.shape, -1)
        np.minimum.at(lowest, places, program)
        np.maximum.at(highest, places, program)
        read = highest >= 0
        several = read & (
            (lowest != highest) | ((buffer.reader != NOBODY) & (buffer.reader != highest))
        )
        buffer.reader[read] = highest[read]
        buffer.reader[several] = SEVERAL
        own = self._threads(parameter, index, there)
        if _are_others(buffer.stored_by[places], own):
            raise Ambiguous("one thread reads what another wrote through another tensor")
        before = buffer.loaded_by[places]
        by_several = np.where((before | _ANY_LANE) == (own | _ANY_LANE), own | _ANY_LANE, SEVERAL)
        buffer.loaded_by[places] = np.where((before != NOBODY) & (before != own), by_several, own)
        data, error = np.zeros(index.shape, buffer.data.dtype), np.zeros(index.shape)
        data[there], error[there] = buffer.data[places], buffer.error[places]
        return data, error

    def store(
        self,
        parameter: str,
        index: np.ndarray,
        there: np.ndarray,
        data: np.ndarray,
        error: np.ndarray,
    ) -> None:
        buffer, places, program = self._at(parameter, index, there)
        if len(np.unique(places)) != len(places):
            raise Ambiguous("two lanes store to one element")
        writer, reader = buffer.writer[places], buffer.reader[places]
        if ((writer != NOBODY) & (writer != program)).any():
            raise Ambiguous("two programs store to one element")
        if ((reader != NOBODY) & (reader != program)).any():
            raise Ambiguous("one program stores what another reads")
        own = self._threads(parameter, index, there)
        if any(_are_others(known[places], own) for known in (buffer.stored_by, buffer.loaded_by)):
            raise Ambiguous("one thread stores what another has through another tensor")
        buffer.stored_by[places] = own
        buffer.data[places] = data[there]
        buffer.error[places] = error[there]
        buffer.written[places] = True
        buffer.writer[places] = program

    def update(
        self, name: str, parameter: str, index: np.ndarray, there: np.ndarray, value: Value
    ) -> None:
        """Put together what is there and a value, in any order: an atomic operation."""
        buffer, places, program = self._at(parameter, index, there)
        if not buffer.written[places].all() or buffer.error[places].any() or not value.is_exact:
            raise Ambiguous("what was never written, or is inexact, is changed")
        writer, reader, code = buffer.writer[places], buffer.reader[places], ATOMICS[name]
        if ((writer != NOBODY) & (writer != program) & (writer != code)).any():
            raise Ambiguous("one program changes what another stored")
        if ((reader != NOBODY) & (reader != program)).any():
            raise Ambiguous("one program changes what another reads")
        function = getattr(np, _FUNCTIONS[name])
        function.at(buffer.data, places, value.data[there])
        if value.dtype in INTEGERS:
            buffer.data[places] = wrapped(buffer.data[places], value.dtype)
        # What several programs change none of them reads.
        first = np.full(buffer.writer.shape, NOBODY)
        first[places] = program
        alone = (first[places] == program).all() and (writer != code).all()
        buffer.writer[places] = program if alone else code


# Where the elements of tiles are.


def padded(index: np.ndarray, rank: int) -> np.ndarray:
    """With the last dimensions of a power of two's size; nothing is in what is added."""
    more = [(0, 0)] * (index.ndim - rank)
    more += [
        (0, (1 << max(size - 1, 0).bit_length()) - size)
        for size in index.shape[index.ndim - rank :]
    ]
    return np.pad(index, more, constant_values=-1) if more else index


@dataclass
class Arranged:
    """Where the elements of a parameter's tiles are.

    Attributes:
        index: (programs, selections…, lanes…), in the tensor, -1 where there is none.
        tile: the tile's own shape, before it is padded.
    """

    index: np.ndarray
    selections: tuple[int, ...]
    tile: tuple[int, ...]
    grid: tuple[int, ...]


def arranged(parameter: Parameter) -> Arranged:
    found = gathered(parameter)
    outer, *middle, tile = found.ranks if len(found.ranks) > 1 else (*found.ranks, 0)
    shape = found.data.shape
    grid, lanes = shape[:outer], shape[len(shape) - tile :]
    selections = shape[outer : len(shape) - tile]
    index = padded(found.data, tile)
    index = index.reshape(int(np.prod(grid)), *selections, *index.shape[index.ndim - tile :])
    if 0 in lanes:
        raise Ambiguous("a tile of no element")
    if index.size > MOST_ELEMENTS:
        raise Ambiguous("too large to try")
    return Arranged(index, selections, lanes, tuple(size for size in grid if size != 1))
