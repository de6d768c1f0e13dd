"""Expressions of the language as test cases: what they are given, and how near they must come.

A case is evaluated twice: by the NumPy backend, and by Triton's own interpreter in a process of its
own (`oracle.py`), which is asked once for all cases of a module.
"""

from __future__ import annotations

import functools
import importlib.util
import pickle
import subprocess
import sys
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import ninetoothed.language as ntl
from ninetoothed.backends.numpy.values import context
from ninetoothed.backends.numpy.values.pointer import PointerTile
from ninetoothed.backends.numpy.values.tile import Tile
from ninetoothed.language import dtypes

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the interpreter needs Triton installed"
)

_BY_SIGNATURE = {dtypes.by_name(name).signature: dtypes.by_name(name) for name in dtypes.NAMES}
_BITS = {16: np.uint16, 8: np.uint8}


@dataclass(frozen=True)
class Case:
    """An expression over ``tl`` and its inputs.

    Attributes:
        expression: Python, in terms of ``tl``, ``libdevice`` and the inputs' names.
        inputs: name -> ``"fp32[4, 8]"``: random values; ``"fp32[]"`` is a run-time scalar;
            ``"fp32[4]+"`` are positive ones.
        memories: name -> the same: what a pointer of that name points to.
        rtol: the relative error allowed; 0 for equal bits.
    """

    expression: str
    inputs: dict[str, str] = field(default_factory=dict)
    memories: dict[str, str] = field(default_factory=dict)
    rtol: float = 0.0

    def __str__(self) -> str:
        given = ", ".join(f"{name}: {spec}" for name, spec in (self.inputs | self.memories).items())
        return f"{self.expression} | {given}" if given else self.expression


def case(expression: str, rtol: float = 0.0, memories: dict[str, str] | None = None, **inputs: str):
    """A `Case` with its inputs as keywords."""
    return Case(expression, inputs, memories or {}, rtol)


def for_types(expressions: Iterable[str], types: str, shape: str, rtol: float = 0.0) -> list[Case]:
    """Each expression of ``x`` and ``y`` with each of ``types``."""
    return [
        case(expression, rtol, x=f"{dtype}{shape}", y=f"{dtype}{shape}")
        for expression in expressions
        for dtype in types.split()
    ]


def random_array(spec: str, seed: str) -> tuple[np.ndarray, dtypes.DType]:
    """The array and the type that a specification such as ``"fp32[4, 8]"`` stands for."""
    name, _, rest = spec.partition("[")
    shape_text, _, note = rest.partition("]")
    shape = tuple(int(size) for size in shape_text.split(",") if size.strip())
    dtype = _BY_SIGNATURE[name]
    generator = np.random.default_rng(zlib.crc32(f"{seed} {spec}".encode()))
    if dtype.kind == "float":
        values = generator.standard_normal(shape) * 4
        values = np.abs(values) + 0.125 if note == "+" else values
        return np.asarray(values, np.float32).astype(dtype.numpy), dtype
    if dtype.kind == "bool":
        return np.asarray(generator.integers(0, 2, shape), bool), dtype
    low = 1 if note == "+" or dtype.kind == "uint" else -100
    # No zeros: they divide. Small values, and some that overflow.
    values = generator.integers(low, 101, shape)
    values = np.where(values == 0, 7, values)
    large = np.where(generator.random(shape) < 0.25, 2 ** (dtype.bits - 2), 0)
    values = values.astype(np.int64) + (0 if note else large.astype(np.int64))
    return np.asarray(values).astype(dtype.numpy), dtype


def given(asked: Case) -> tuple[dict, dict]:
    """Names to arrays and types: the inputs and the memories of a case."""
    return (
        {name: random_array(spec, name) for name, spec in asked.inputs.items()},
        {name: random_array(spec, name) for name, spec in asked.memories.items()},
    )


class FlatMemory:
    """A memory of one array, checked."""

    def __init__(self, array: np.ndarray, dtype: dtypes.DType) -> None:
        self.array = array
        self.dtype = dtype
        self.accesses: list[str] = []

    def locate(self, offsets, mask, access):
        """The offsets themselves."""
        self.accesses.append(access)
        used = offsets if mask is None else offsets[mask]
        assert np.all((used >= 0) & (used < self.array.size)), "out of bounds"
        return offsets


def evaluate(asked: Case):
    """What the NumPy backend makes of a case: values, Triton's names of types, the memories."""
    inputs, memories = given(asked)
    names = {name: Tile(array[()], dtype) for name, (array, dtype) in inputs.items()}
    owned = {name: FlatMemory(array.copy(), dtype) for name, (array, dtype) in memories.items()}
    names |= {name: PointerTile(memory) for name, memory in owned.items()}
    with context.launch((4, 3, 2)), np.errstate(all="ignore"):
        context.set_program((3, 1, 0))
        result = eval(asked.expression, {"tl": ntl, "libdevice": ntl.libdevice, **names})
    results = result if isinstance(result, (tuple, list)) else (result,)
    results = [item for item in results if item is not None]
    values = [np.asarray(r.data) if isinstance(r, Tile) else r for r in results]
    types = [r.dtype.signature if isinstance(r, Tile) else type(r).__name__ for r in results]
    return values, types, {name: memory.array for name, memory in owned.items()}


def _plain(arrays: dict) -> dict:
    """Arrays and signatures, as Triton's interpreter keeps them."""
    return {name: (_bits(array, dtype), dtype.signature) for name, (array, dtype) in arrays.items()}


def _bits(array: np.ndarray, dtype: dtypes.DType) -> np.ndarray:
    is_foreign = dtype is dtypes.bfloat16 or (dtype.kind == "float" and dtype.bits == 8)
    return array.view(_BITS[dtype.bits]) if is_foreign else array


class Table:
    """Cases, and Triton's answers to them, asked for once when the first is needed."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self.cases = list(cases)

    @functools.cached_property
    def _answers(self) -> dict[str, object]:
        """An answer a case; the interpreter's last words for each where it failed altogether."""
        questions = [(item.expression, *map(_plain, given(item))) for item in self.cases]
        completed = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("oracle.py"))],
            input=pickle.dumps(questions),
            capture_output=True,
            timeout=300,
            check=False,
        )
        if completed.returncode:
            return dict.fromkeys(map(str, self.cases), completed.stderr.decode())
        answers = pickle.loads(completed.stdout)[1]
        return dict(zip(map(str, self.cases), answers, strict=True))

    def check(self, asked: Case) -> None:
        """The NumPy backend's answer is the interpreter's: type, shape and values."""
        answer = self._answers[str(asked)]
        assert not isinstance(answer, str), f"the interpreter refused: {answer}"
        values, types, memories = evaluate(asked)
        wanted_values, wanted_types, wanted_memories = answer
        assert types == [_SIGNATURES.get(name, name) for name in wanted_types]
        for found, wanted, name in zip(values, wanted_values, types, strict=True):
            compare(found, wanted, name, asked.rtol)
        for name, array in memories.items():
            signature = given(asked)[1][name][1].signature
            compare(array, wanted_memories[name], signature, asked.rtol)


_SIGNATURES = {"int1": "i1"} | {
    dtypes.by_name(name).triton_name: dtypes.by_name(name).signature for name in dtypes.NAMES
}


def compare(found, wanted, name: str, rtol: float) -> None:
    """Two results of the type ``name`` agree."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    dtype = _BY_SIGNATURE.get(name)
    if dtype is not None and wanted.dtype != dtype.numpy:
        wanted = wanted.view(dtype.numpy) if wanted.itemsize == found.itemsize else wanted
    if rtol:
        np.testing.assert_allclose(
            found.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=rtol
        )
    else:
        np.testing.assert_array_equal(found, wanted)
