"""Tiles at positions of their own: random arrangements beside indices that NumPy moves about.

A call is refused just where the same lane of the same program holds an element of one and none of the other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import pytest

pytest.importorskip("torch", reason="needs PyTorch")

import torch  # noqa: E402

import ninetoothed  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from ninetoothed.errors import ArgumentError  # noqa: E402

PROGRAMS = 120

BLOCKS, LANES = "blocks", "lanes"


@dataclass(frozen=True)
class Arranged:
    """A tensor in tiles, and what is done to the blocks and to the lanes of each."""

    shape: tuple[int, ...]
    tile: tuple[int, ...]
    moves: tuple[tuple[Any, ...], ...]

    def arrange(self, tensor: Any) -> Any:
        tensor = tensor.tile(self.tile)
        for move in self.moves:
            match move:
                case ["swapped", where] if where is BLOCKS:
                    tensor = tensor.permute((1, 0))
                case ["swapped", _]:
                    tensor.dtype = tensor.dtype.permute((1, 0))
                case ["reversed", where, dim]:
                    parts = (slice(None),) * dim + (slice(None, None, -1),)
                    if where is BLOCKS:
                        tensor = tensor[parts]
                    else:
                        tensor.dtype = tensor.dtype[parts]
                case ["expanded", dim, count]:
                    tensor = tensor.unsqueeze(dim)
                    sizes = [-1] * len(tensor.shape)
                    sizes[dim] = count
                    tensor = tensor.expand(tuple(sizes))
        return tensor

    def indices(self) -> numpy.ndarray[Any, Any]:
        """Of each lane of each block the element's number, -1 where there is none."""
        rank = len(self.shape)
        found = numpy.arange(int(numpy.prod(self.shape))).reshape(self.shape)
        beyond = [(0, -size % tile) for size, tile in zip(self.shape, self.tile)]
        found = numpy.pad(found, beyond, constant_values=-1)
        parts = [part for n, tile in zip(found.shape, self.tile) for part in (n // tile, tile)]
        found = found.reshape(parts).transpose([*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)])
        for move in self.moves:
            blocks = found.ndim - rank
            match move:
                case ["swapped", where]:
                    first = 0 if where is BLOCKS else blocks
                    found = found.swapaxes(first, first + 1)
                case ["reversed", where, dim]:
                    found = numpy.flip(found, dim if where is BLOCKS else blocks + dim)
                case ["expanded", dim, count]:
                    found = numpy.repeat(numpy.expand_dims(found, dim), count, dim)
        return found


def some_moves(chance: random.Random, rank: int) -> tuple[tuple[Any, ...], ...]:
    swapped = [("swapped", where) for where in (BLOCKS, LANES) if rank == 2]
    reversed = [("reversed", where, chance.randrange(rank)) for where in (BLOCKS, LANES)]
    return tuple(move for move in (*swapped, *reversed) if chance.random() < 0.35)


def copied(x: Any, y: Any) -> None:
    y = x  # noqa: F841


def multiplied(x: Any, z: Any, y: Any) -> None:
    y = x * z  # noqa: F841


def as_columns(x: Any, y: Any) -> None:
    y = x[None, :]  # noqa: F841


def as_rows(x: Any, y: Any) -> None:
    y = x[:, None]  # noqa: F841


Case = tuple[Callable[..., None], list[Arranged]]


def alike(chance: random.Random, application: Callable[..., None], count: int) -> Case:
    """Tensors of nearly one shape, in tiles of one."""
    rank = chance.choice([1, 2])
    tile = tuple(chance.choice([2, 4]) for _ in range(rank))
    shape = tuple(chance.randrange(1, 10) for _ in range(rank))
    shapes = [
        tuple(max(1, n + chance.choice([-1, 0, 0, 0, 1])) for n in shape) for _ in range(count)
    ]
    return application, [Arranged(each, tile, some_moves(chance, rank)) for each in shapes]


def spread(chance: random.Random) -> Case:
    """A vector beside the rows or the columns of a matrix."""
    block = chance.choice([2, 4])
    shape = (size := chance.randrange(1, 10)), chance.choice([size, chance.randrange(1, 10)])
    matrix = Arranged(shape, (block, block), some_moves(chance, 2))
    dim = chance.choice([0, 1])
    moves = (*some_moves(chance, 1), ("expanded", dim, matrix.indices().shape[dim]))
    vector = Arranged((chance.choice(shape),), (block,), moves)
    return chance.choice([as_columns, as_rows]), [vector, matrix]


def a_case(chance: random.Random) -> Case:
    kind = chance.choice(["copied", "multiplied", "spread"])
    if kind == "spread":
        return spread(chance)
    return alike(chance, *((copied, 2) if kind == "copied" else (multiplied, 3)))


def met(application: Callable[..., None], tensors: Sequence[Arranged]) -> list[Any] | None:
    """The indices of all tensors as they meet, None where there are more blocks of one than of another."""
    *given, output = [tensor.indices() for tensor in tensors]
    if application in (as_columns, as_rows):
        (vector,) = given
        dim = -2 if application is as_columns else -1
        if vector.shape[:-1] != output.shape[:2]:
            return None
        given = [numpy.broadcast_to(numpy.expand_dims(vector, dim), output.shape)]
    return [*given, output] if len({each.shape for each in (*given, output)}) == 1 else None


def test_a_call_is_refused_just_where_one_has_an_element_and_another_none() -> None:
    refused = ran = 0
    for seed in range(PROGRAMS):
        chance = random.Random(seed)
        application, tensors = a_case(chance)
        indices = met(application, tensors)
        if indices is None:
            continue
        *given, place = indices
        lacks = any(((place >= 0) & (each < 0)).any() for each in given)
        lacks |= len(given) == 2 and ((given[0] >= 0) != (given[1] >= 0)).any()
        kernel = ninetoothed.make(
            lambda *symbols, tensors=tensors: tuple(
                tensor.arrange(symbol) for tensor, symbol in zip(tensors, symbols)
            ),
            application,
            tuple(Tensor(len(tensor.shape)) for tensor in tensors),
        )
        values = [torch.rand(tensor.shape) for tensor in tensors[:-1]]
        output = torch.full(tensors[-1].shape, torch.nan)
        case = f"seed {seed}: {application.__name__} of {tensors}"
        try:
            kernel(*values, output)
        except ArgumentError as error:
            assert lacks, f"{case}\n{error}"
            refused += 1
            continue
        assert not lacks, case
        ran += 1
        expected = numpy.full(output.numel(), numpy.nan, numpy.float32)
        read = [value.cpu().numpy().ravel()[each] for value, each in zip(values, given)]
        expected[place[place >= 0]] = numpy.prod(read, 0)[place >= 0]
        assert numpy.array_equal(output.cpu().numpy().ravel(), expected, equal_nan=True), case
    assert min(ran, refused) > PROGRAMS // 8
