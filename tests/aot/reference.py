"""What a launch is in Python: the variant, the programs and the bytes of each argument, or which error."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ninetoothed.aot.unit import Unit
from ninetoothed.backends.triton.runtime.launch_record import packed
from ninetoothed.errors import ArgumentError, ArrangementError
from ninetoothed.kernels.ahead import Aligned, Condition, Edition, TensorMap
from ninetoothed.kernels.call import Argument, Call
from ninetoothed.kernels.meetings.agreement import check_meetings
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol, as_symbol
from tests.aot.making import tensor_map


class DLDevice(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32))


class DLDataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class NineToothedTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_uint64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    )


#: DLPack's code and bits of an element type.
DLPACK = {"float16": (2, 16), "bfloat16": (4, 16), "float32": (2, 32)}
DLPACK |= {"int32": (0, 32), "int64": (0, 64)}


@dataclass
class View:
    """A tensor argument: nothing but numbers, since the recording driver runs nothing."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    address: int = 0x7000_0000
    dtype: str = "float16"
    device: tuple[int, int] = (2, 0)
    byte_offset: int = 0
    kept: list[Any] = field(default_factory=list)

    def dlpack(self) -> DLTensor:
        code, bits = DLPACK[self.dtype]
        rank = len(self.shape)
        self.kept = [(ctypes.c_int64 * rank)(*self.shape), (ctypes.c_int64 * rank)(*self.strides)]
        return DLTensor(
            self.address - self.byte_offset,
            DLDevice(*self.device),
            rank,
            DLDataType(code, bits, 1),
            *self.kept,
            self.byte_offset,
        )

    def published(self) -> NineToothedTensor:
        rank = len(self.shape)
        self.kept = [(ctypes.c_uint64 * rank)(*self.shape), (ctypes.c_int64 * rank)(*self.strides)]
        return NineToothedTensor(self.address, *self.kept)


@dataclass(frozen=True)
class Launch:
    """What the driver is given."""

    variant: str
    programs: int
    arguments: tuple[bytes, ...]


def environment(unit: Unit, edition: Edition, arguments: Mapping[str, Any]) -> dict[Symbol, int]:
    """The value of every symbol in a call."""
    values = dict(edition.known)
    for parameter in unit.kernel.tensor_parameters:
        view, source = arguments[parameter.name], parameter.source
        for symbols, numbers in ((source.shape, view.shape), (source.strides, view.strides)):
            for symbol, number in zip(symbols, numbers, strict=True):
                if as_symbol(symbol).op == "leaf":
                    values.setdefault(as_symbol(symbol), number)
    return values


def holds(asked: Condition, values: Mapping[Symbol, int], arguments: Mapping[str, Any]) -> bool:
    """A condition, by the symbols' own evaluation and bounds."""
    if isinstance(asked, Aligned):
        return arguments[asked.parameter].address % asked.bytes == 0
    ranges: dict[Symbol, Any] = {
        leaf: (values[leaf], values[leaf]) for leaf in asked.expression.leaves() if leaf in values
    }
    for leaf, low, high in asked.positions:
        ranges[leaf] = (low.evaluate(values), high.evaluate(values))
    low, high = interval(asked.expression, ranges)
    return (asked.low is None or low >= asked.low) and (asked.high is None or high <= asked.high)


def chosen(edition: Edition, values: Mapping[Symbol, int], arguments: Mapping[str, Any]) -> int:
    """The place of the first variant whose conditions, and those of all after it, hold."""
    best = len(edition.variants) - 1
    for place in reversed(range(len(edition.variants) - 1)):
        if not all(holds(asked, values, arguments) for asked in edition.variants[place].added):
            break
        best = place
    return best


def has_meeting_refused(unit: Unit, edition: Edition, arguments: Mapping[str, Any]) -> bool:
    """Whether a call from Python is refused, since where tiles meet they have not the same elements."""
    values = environment(unit, edition, arguments)
    tensors = {
        p.name: Argument(arguments[p.name].shape, arguments[p.name].strides, p.dtype)
        for p in unit.kernel.tensor_parameters
    }
    call = Call(tensors, {}, unit.fixed.constants)
    try:
        check_meetings(unit.kernel, call, values, unit.kernel.verified_grid(values))
    except ArgumentError:
        return True
    return False


def launch_of(unit: Unit, edition: Edition, arguments: Mapping[str, Any]) -> Launch | None:
    """The launch of a call; None where the sizes do not fit the arrangement."""
    values = environment(unit, edition, arguments)
    try:
        grid = unit.kernel.verified_grid(values)
    except ArrangementError:
        return None
    programs = 1
    for size in grid:
        programs *= size
    variant = edition.variants[chosen(edition, values, arguments)]
    if programs and variant.programs is not None:
        programs = variant.programs.evaluate(values)
    given: list[bytes] = []
    for argument in variant.arguments:
        if argument.in_workspace is not None:
            # The recording driver's first memory.
            given.append(packed(argument.type, (1 << 32) + argument.in_workspace))
        elif argument.described is not None:
            shape = [size.evaluate(values) for size in argument.described.shape]
            strides = [stride.evaluate(values) for stride in argument.described.strides]
            address = arguments[argument.parameter].address
            given.append(descriptor(tensor_map(argument.type), address, shape, strides))
        elif argument.expression is not None:
            given.append(packed(argument.type, argument.expression.evaluate(values)))
        elif argument.type.startswith("*"):
            given.append(packed(argument.type, arguments[argument.parameter].address))
        else:
            given.append(packed(argument.type, arguments[argument.parameter]))
    if variant.work.is_persistent:
        # Two of the recording driver's programs fit each of its hundred multiprocessors.
        programs = min(programs, 200)
    return Launch(variant.name, programs, (*given, bytes(8), bytes(8)))


def descriptor(
    wanted: TensorMap, address: int, shape: Sequence[int], strides: Sequence[int]
) -> bytes:
    """What the recording driver makes of a descriptor: the contiguous dimension is the first."""
    numbers = [*reversed(shape), *(stride * wanted.itemsize for stride in reversed(strides[:-1]))]
    extents = tuple(reversed(wanted.extents))
    start = struct.pack("<3BQ", wanted.dtype, wanted.swizzle, len(extents), address)
    packed = start + struct.pack(f"<{len(numbers)}Q{len(extents)}I", *numbers, *extents)
    return packed.ljust(128, b"\0")
