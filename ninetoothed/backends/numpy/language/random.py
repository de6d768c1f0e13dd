"""Random numbers, bit for bit Triton's: Philox 4×32 and 4×64, keyed by a seed.

Source: J. K. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011; the order of
operations is that of ``triton/language/random.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ninetoothed.backends.numpy.language import math as language_math
from ninetoothed.backends.numpy.language.creation import integer
from ninetoothed.backends.numpy.values.casting import Array
from ninetoothed.backends.numpy.values.operators import multiply
from ninetoothed.backends.numpy.values.tile import Tile, as_tile, joined_validity
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import refuse

_ROUNDS = 10

Four = tuple[Tile, Tile, Tile, Tile]


class _Constants(NamedTuple):
    dtype: DType
    key_a: Any
    key_b: Any
    round_a: Any
    round_b: Any


_CONSTANTS = {
    32: _Constants(
        dtypes.uint32,
        np.uint32(0x9E3779B9),
        np.uint32(0xBB67AE85),
        np.uint32(0xD2511F53),
        np.uint32(0xCD9E8D57),
    ),
    64: _Constants(
        dtypes.uint64,
        np.uint64(0x9E3779B97F4A7C15),
        np.uint64(0xBB67AE8584CAA73B),
        np.uint64(0xD2E7470EE14C6C93),
        np.uint64(0xCA5A826395121157),
    ),
}


def philox_impl(
    c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any, n_rounds: Any = _ROUNDS
) -> Four:
    """``n_rounds`` rounds of Philox on the counter ``c0 … c3`` with the key ``k0, k1``."""
    state = [as_tile(c) for c in (c0, c1, c2, c3)]
    dtype = state[0].dtype
    if dtype not in (dtypes.uint32, dtypes.uint64):
        raise refuse(f"ntl.philox_impl takes uint32 or uint64, but got {dtype}.")
    keys = [as_tile(k).to(dtype).data for k in (k0, k1)]
    rounds = integer(n_rounds, "n_rounds")
    data = _rounds([tile.to(dtype).data for tile in state], keys, rounds, dtype.bits)
    validity = joined_validity(*state)
    a, b, c, d = (Tile(item, dtype, validity) for item in data)
    return a, b, c, d


def _rounds(counter: list[Array], keys: list[Array], rounds: int, bits: int) -> list[Array]:
    constants = _CONSTANTS[bits]
    c0, c1, c2, c3 = np.broadcast_arrays(*counter)
    # One operation does both halves of a round: c0 and c2, which are multiplied, and c1 and c3.
    multiplied, mixed = np.stack((c0, c2)), np.stack((c1, c3))
    column = (2,) + (1,) * c0.ndim
    factors = np.array((constants.round_a, constants.round_b)).reshape(column)
    steps = np.array((constants.key_a, constants.key_b)).reshape(column)
    pair = np.stack(np.broadcast_arrays(*keys))
    key = pair.reshape(2, *(1,) * (c0.ndim - pair.ndim + 1), *pair.shape[1:])
    halves = _halves_of_product_32 if bits == 32 else _halves_of_product_64
    with np.errstate(over="ignore"):
        for _ in range(rounds):
            high, low = halves(multiplied, factors)
            multiplied = high[::-1] ^ mixed ^ key
            mixed = low[::-1]
            key = key + steps
    return [multiplied[0], mixed[0], multiplied[1], mixed[1]]


def _halves_of_product_32(a: Array, b: Array) -> tuple[Array, Array]:
    product = np.multiply(a, b, dtype=np.uint64)
    return (product >> np.uint64(32)).astype(np.uint32), product.astype(np.uint32)


def _halves_of_product_64(a: Array, b: Array) -> tuple[Array, Array]:
    return language_math.HIGH_HALF[64](a, b), a * b


def _integers(value: Any, what: str) -> Tile:
    tile = as_tile(value)
    if tile.dtype.kind == "float":
        raise refuse(f"{what} is an integer, but got {tile.dtype}.")
    return tile


def philox(seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: Any = _ROUNDS) -> Four:
    """Philox on the counter ``c0 … c3``, with the key made of ``seed``; unsigned integers."""
    key = _integers(seed, "A seed")
    wide = key.to(dtypes.uint64).data
    counter = [as_tile(c) for c in (c0, c1, c2, c3)]
    bits = counter[0].dtype.bits
    if bits not in _CONSTANTS:
        raise refuse(f"A random number's offset has 32 or 64 bits, but got {counter[0].dtype}.")
    dtype = _CONSTANTS[bits].dtype
    if bits == 32:
        low = (wide & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        high = (wide >> np.uint64(32)).astype(np.uint32)
    else:
        low, high = wide, np.uint64(0)
    a, b, c, d = (item.to(dtype, bitcast=True) for item in counter)
    return philox_impl(a, b, c, d, Tile(low, dtype), Tile(high, dtype), n_rounds)


def randint4x(seed: Any, offset: Any, n_rounds: Any = _ROUNDS) -> Four:
    """Four tiles of random uint32, shaped as ``offset``; lanes are real where its lanes are."""
    counter = _integers(offset, "An offset")
    low = counter.to(dtypes.uint32)
    zero = Tile(np.zeros_like(low.data), dtypes.uint32)
    high = zero
    if counter.dtype.bits > 32:
        high = Tile((counter.data >> counter.data.dtype.type(32)).astype(np.uint32), dtypes.uint32)
    return philox(seed, low, high, zero, zero, n_rounds)


def randint(seed: Any, offset: Any, n_rounds: Any = _ROUNDS) -> Tile:
    """Random uint32, shaped as ``offset``."""
    return randint4x(seed, offset, n_rounds)[0]


def uint_to_uniform_float(x: Any) -> Tile:
    """Random integers of 32 or 64 bits, to floats uniformly distributed in [0, 1)."""
    tile = as_tile(x)
    if tile.dtype.kind not in ("int", "uint") or tile.dtype.bits < 32:
        raise refuse(f"ntl.uint_to_uniform_float takes 32 or 64 bits, but got {tile.dtype}.")
    signed = dtypes.int32 if tile.dtype.bits == 32 else dtypes.int64
    scale = 4.6566127342e-10 if tile.dtype.bits == 32 else 1.0842020432385337e-19
    data = tile.to(signed, bitcast=True).data
    return multiply(Tile(np.where(data < 0, -data - 1, data)[()], signed, tile.validity), scale)


def rand(seed: Any, offset: Any, n_rounds: Any = _ROUNDS) -> Tile:
    """Random float32 uniformly distributed in [0, 1), shaped as ``offset``."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


def rand4x(seed: Any, offsets: Any, n_rounds: Any = _ROUNDS) -> Four:
    """Four tiles of random float32 uniformly distributed in [0, 1)."""
    a, b, c, d = (uint_to_uniform_float(item) for item in randint4x(seed, offsets, n_rounds))
    return a, b, c, d


def pair_uniform_to_normal(u1: Any, u2: Any) -> tuple[Tile, Tile]:
    """Two uniformly distributed tiles, to two normally distributed ones (Box and Muller)."""
    u1 = language_math.maximum(1.0e-7, u1)
    angle = multiply(6.283185307179586, u2)
    radius = language_math.sqrt(multiply(-2.0, language_math.log(u1)))
    return multiply(radius, language_math.cos(angle)), multiply(radius, language_math.sin(angle))


def randn(seed: Any, offset: Any, n_rounds: Any = _ROUNDS) -> Tile:
    """Random float32, normally distributed, shaped as ``offset``."""
    i1, i2, _, _ = randint4x(seed, offset, n_rounds)
    return pair_uniform_to_normal(uint_to_uniform_float(i1), uint_to_uniform_float(i2))[0]


def randn4x(seed: Any, offset: Any, n_rounds: Any = _ROUNDS) -> Four:
    """Four tiles of random float32, normally distributed."""
    u1, u2, u3, u4 = rand4x(seed, offset, n_rounds)
    return (*pair_uniform_to_normal(u1, u2), *pair_uniform_to_normal(u3, u4))
