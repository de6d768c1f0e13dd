"""The type of what an operation of the language gives, by its rule in the table of operations."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ninetoothed.language import dtypes, promotion
from ninetoothed.language.dtypes import DType
from ninetoothed.language.operations import Operation
from ninetoothed.language.promotion import TOO_LARGE, float_type, integer_bounds
from ninetoothed.program import effect_types, movement_types
from ninetoothed.program.arguments import size_of
from ninetoothed.program.effects import called_name
from ninetoothed.program.nodes import NumberType, Padded
from ninetoothed.program.operands import (
    misfit,
    no_draw,
    no_value,
    refusal_of_cdiv,
    sign_lost,
    unyielding,
)
from ninetoothed.program.typed_calls import (
    Call,
    no_cast,
    no_rounding,
    shown,
    too_narrow,
    uncomputed,
    unpadded,
)
from ninetoothed.program.types import (
    COUNT,
    TRUTH,
    UNKNOWN,
    Shape,
    ValueType,
    as_counted,
    cast,
    differ,
    in_32_bits,
    in_float32,
    of_dtype,
    together,
    type_of,
    without_axis,
    wrapped,
)
from ninetoothed.symbols.operators import next_power_of_2

#: The least that a GPU's units multiply at once.
LEAST_DEPTH = 16

_COMPARING = ("maximum", "minimum", "clamp")

#: Those of which an integer is none: Triton has no place for it where the number is a literal or a size.
_OF_FLOATS = frozenset("ceil cos erf exp exp2 floor fma log log2 rsqrt sin sqrt sqrt_rn".split())

#: Those that give an operand, as it is.
_CHOOSING = ("where", "maximum", "minimum")

#: Those beside whose tiles a number takes the type of the tile.
_YIELDING = ("where", "add", "sub", "mul")


def type_of_call(call: Call, operation: Operation) -> ValueType:
    """The type of what an operation gives."""
    return _RULES[operation.shape](call, operation)


def _unknown(call: Call, operation: Operation) -> ValueType:
    if operation.name == "item":
        return replace(call.type(0), shape=(), number=None)
    return UNKNOWN


def _elementwise(call: Call, operation: Operation) -> ValueType:
    operands, name = call.operands(), operation.name.rpartition(".")[2]
    shape = call.met(operands, name)
    for node in filter(None, map(call.node_of, operation.operands, range(len(operands)))):
        if what := no_value(node):
            call.refuse(f"A tile or a number is needed here, but got {what}.")
    # Which of two is taken, and without its sign, the bits say.
    computed = operands[:1] if name == "where" else [] if name == "abs" else operands
    if reason := uncomputed(computed):
        call.refuse(reason)
    if operation.home == "random" and (reason := no_draw(name, operands)):
        call.refuse(reason)
    if operation.results > 1:
        return ValueType(items=(ValueType(shape),) * operation.results)
    if operation.home == "math" or name in _COMPARING:
        operands = unyielding(operands)
    if name in _COMPARING:
        operands = list(map(in_float32, operands))
    found = together(operands, shape)
    if operation.home == "math" and name in _OF_FLOATS and found.kind in ("int", "bool"):
        given = found.dtype or (found.kind if len(operands) == 1 else None)
        instead = "write `x * y + z`" if name == "fma" else "cast it, as in `.to(ntl.float32)`"
        if given is not None:
            call.refuse(f"`ntl.{name}` takes floats, but got {given}: {instead}.")
    if operation.home == "core" and name in _YIELDING:
        two = operands[-2:]
        if reason := misfit(*two) or misfit(*reversed(two)):
            call.refuse(reason)
    if name == "cdiv" and (reason := refusal_of_cdiv(*operands[:2])):
        call.refuse(reason)
    if (operation.home == "core" and name in _CHOOSING) and (lost := sign_lost(*operands[-2:])):
        call.refuse(f"`ntl.{name}` needs operands of one signedness, but got {lost}; cast one.")
    if name == "where" and len(operands) == 3:
        whole = [each for each in operands[1:] if each.kind in ("int", "bool")]
        is_computed = any(each.number is None for each in whole)
        if is_computed or any(each.number not in (None, 0) for each in operands[1:]):
            # No integer is made one of 8 bits, nor a number but 0.
            for reason in filter(None, map(too_narrow, operands[1:])):
                call.refuse(reason)
        return together(operands[1:], shape)
    if name == "cdiv":
        return as_counted(found)
    if name in ("add", "mul", "sub") and operation.home != "libdevice":
        return wrapped(as_counted(found))
    if name in _COMPARING:
        some = any(each.is_natural for each in operands)
        return replace(found, is_natural=some if name == "maximum" else found.is_natural)
    if name == "abs":
        # Of the least integer of a type it is that itself.
        return replace(found, is_natural=found.is_natural or found.kind == "float")
    if name.startswith("logical_"):
        for other in operands:
            if other.kind in ("int", "float"):
                word = name.removeprefix("logical_")
                call.refuse(
                    f"`ntl.{name}` takes truth values, but got {other.dtype or other.kind}: write `x {word} y`, "
                    "which takes any, or compare first."
                )
        return replace(TRUTH, shape=shape)
    if operation.home in ("math", "standard"):
        return replace(found, is_natural=False)
    return of_dtype(operation.result, shape)


def _summed(value: ValueType, wanted: DType | None) -> ValueType:
    if wanted is not None:
        made = cast(value, wanted)
        return made if wanted.kind == "float" else wrapped(made)
    if value.kind == "bool":
        return replace(value, kind="int", dtype=dtypes.int32 if value.dtype else None)
    if value.kind != "float" and value.dtype is not None and value.dtype.bits < 32:
        wide = dtypes.int32 if value.dtype.kind == "int" else dtypes.uint32
        value = replace(value, dtype=wide)
    return value if value.kind == "float" else wrapped(value)


def _first(call: Call, operation: Operation) -> ValueType:
    value = replace(call.type(0), number=None)
    if operation.kind == "hint":
        _require_hints(call, value)
    if operation.name not in ("cast", "to"):
        return value
    node = call.node_of("dtype", 1)
    own, keeps_bits = call.dtype(node, is_needed=True), call.constant("bitcast", 3)
    rounding = call.constant("fp_downcast_rounding", 2)
    if not keeps_bits and (reason := no_cast(value, own) or no_rounding(value, own, rounding)):
        call.refuse(reason)
    made = _as_number(call, value, own) if isinstance(node, NumberType) else cast(value, own)
    return replace(made, is_natural=made.kind == "bool") if keeps_bits else made


def _require_hints(call: Call, value: ValueType) -> None:
    """Refuses other than one integer for each dimension."""
    given = call.listed("values", 1)
    if not given or value.rank is None or any(isinstance(each, ast.Name) for each in given):
        return
    name, rank = called_name(call.node), max(1, value.rank)
    constants = [each.value for each in given if isinstance(each, ast.Constant)]
    if len(given) != rank or not all(isinstance(each, int) for each in constants):
        call.refuse(
            f"`ntl.{name}` needs one integer for each dimension, {rank} here, as in "
            f"`ntl.{name}(x, {4 if rank == 1 else (4,) * rank})`."
        )


def _as_number(call: Call, value: ValueType, own: DType | None) -> ValueType:
    """Python's ``float`` or ``int`` of a value."""
    if own is dtypes.int64:
        if value.dtype is dtypes.uint64:
            call.refuse(TOO_LARGE)
        return cast(value, own)
    if value.dtype is None or (call.is_wide is None and value.kind != "float"):
        return replace(value, kind="float", dtype=None)
    return cast(value, float_type(value.dtype, bool(call.is_wide)))


def _like(call: Call, operation: Operation) -> ValueType:
    return replace(call.type(0), is_natural=True, number=None)


def _reduced(call: Call, operation: Operation) -> ValueType:
    value, places = call.type(0), operation.places
    if value.items is not None:
        shapes = [_reduced_shape(call, operation, each) for each in value.items]
        return ValueType(items=tuple(map(_combined, value.items, shapes)))
    shape = _reduced_shape(call, operation, value)
    asks = operation.takes_function or operation.name == "sum" or call.gives_positions(operation)
    if asks and (reason := too_narrow(value)):
        call.refuse(reason)
    if operation.takes_function:
        return _combined(value, shape)
    if operation.gives_positions:
        return replace(COUNT, shape=shape, dtype=dtypes.int32)
    value = replace(value, shape=shape, number=None)
    if "return_indices" in places:
        if call.constant("return_indices", places["return_indices"]):
            positions = replace(COUNT, shape=shape, dtype=dtypes.int32)
            return ValueType(items=(in_float32(value), positions))
        return in_32_bits(value)
    return (
        _summed(value, call.dtype(call.keywords.get("dtype"))) if operation.name == "sum" else value
    )


def _combined(value: ValueType, shape: Shape | None) -> ValueType:
    """What a function of the user's made of two elements and two of that: it has their type."""
    return replace(value, shape=shape, is_natural=False, number=None)


def _reduced_shape(call: Call, operation: Operation, value: ValueType) -> Shape | None:
    if value.shape == ():
        call.refuse(f"`ntl.{operation.name}` takes a tile, but got one number. Use it as it is.")
        return ()
    axis = call.axis("axis", operation.places["axis"], value.rank)
    if axis is None and call.gives_positions(operation):
        call.refuse(
            f"`ntl.{operation.name}` gives positions along one dimension: name it, as in `axis=0`; of all "
            "elements `ntl.ravel` makes one dimension."
        )
    keeps = call.flag("keep_dims", operation.places["keep_dims"])
    if axis is ... or keeps is ...:
        return None
    return without_axis(value.shape, axis, bool(keeps))


def _scanned(call: Call, operation: Operation) -> ValueType:
    value = replace(call.type(0), number=None)
    if reason := too_narrow(value):
        call.refuse(reason)
    axis = "dim" if operation.name == "softmax" else "axis"
    if isinstance(given := call.node_of(axis, 1), ast.Constant) and given.value is None:
        call.refuse(f"`ntl.{operation.name}` goes along one dimension: name it, as in `{axis}=0`.")
    call.axis(axis, 1, value.rank, None if operation.takes_function else 0)
    if operation.takes_function:
        items = value.items and tuple(_combined(each, each.shape) for each in value.items)
        return replace(_combined(value, value.shape), items=items)
    if operation.name == "cumsum":
        return _summed(in_float32(value), call.dtype(call.keywords.get("dtype")))
    return in_float32(value)


def _sorted(call: Call, operation: Operation) -> ValueType:
    value = replace(call.type(0), number=None)
    if reason := too_narrow(value):
        call.refuse(reason)
    call.axis("dim", 2 if operation.name == "topk" else 1, value.rank, -1)
    if operation.name != "topk" or not value.shape:
        return value
    count, size = call.constant("k", 1), value.shape[-1]
    if not isinstance(count, int):
        return replace(in_32_bits(value), dtype=None, shape=(*value.shape[:-1], None))
    most = next_power_of_2(size) if isinstance(size, int) else None
    if count < 1 or count & (count - 1) or (most is not None and count > most):
        upto = f" from 1 to {most}" if most is not None else ""
        call.refuse(f"`ntl.topk` needs a power of two{upto} of elements, but got {count}.")
    # Fewer than all are found by `max`, which widens.
    found = value if count == most else in_32_bits(value)
    is_either = most is None and found.dtype is not value.dtype
    return replace(
        found, dtype=None if is_either else found.dtype, shape=(*value.shape[:-1], count)
    )


def _counted(call: Call, operation: Operation) -> ValueType:
    if (value := call.type(0)).kind == "float":
        call.refuse(f"`ntl.histogram` counts integers, but got {value.dtype or 'floats'}.")
    bins = call.constant("num_bins", 1)
    size = next_power_of_2(bins) if isinstance(bins, int) and bins > 0 else None
    if size is not None and size != bins:
        call.refuse(f"`ntl.histogram` needs a power of two of bins, but got {bins}.")
    return replace(COUNT, shape=(size,), dtype=dtypes.int32)


def _product(call: Call, operation: Operation) -> ValueType:
    left, right = call.type(0), call.named("other", 1)
    acc = call.node_of("acc", 2)
    for found in (left.dtype, right.dtype):
        if found is not None and found.kind != "float" and found is not dtypes.int8:
            call.refuse(
                f"`ntl.dot` of integers needs int8, but got {found}; cast to int8 or a float."
            )
    dtype = _product_dtype(call, left.dtype or right.dtype)
    result = of_dtype(dtype, _product_shape(call, left.shape, right.shape))
    if acc is None or isinstance(acc, ast.Constant):
        return result
    own = type_of(acc)
    for what, is_other in (
        ("shape", differ(own.shape, result.shape)),
        ("type", None not in (dtype, own.dtype) and dtype is not own.dtype),
    ):
        if is_other:
            call.refuse(
                f"The accumulator of `ntl.dot` must have the {what} of the product, {result}, but it is {own}."
            )
    return of_dtype(dtype or own.dtype, result.shape)


def _product_dtype(call: Call, operand: DType | None) -> DType | None:
    named = call.node_of("out_dtype", 6)
    wanted = dtypes.float32 if named is None else call.dtype(named)
    if reason := promotion.no_product(operand, wanted):
        call.refuse(reason)
    return None if operand is None else promotion.product_dtype(operand, wanted)


def _product_shape(call: Call, left: Shape | None, right: Shape | None) -> Shape | None:
    if left is None or right is None:
        return None
    sides = f"{shown(ValueType(left))} and {shown(ValueType(right))}"
    if len(left) < 2 or len(right) < 2:
        call.refuse(f"`ntl.dot` needs tiles of two dimensions or more, but got {sides}.")
        return None
    inner = left[-1], right[-2]
    if differ((*left[:-2], inner[0]), (*right[:-2], inner[1])):
        call.refuse(f"`ntl.dot` needs shapes [..., M, K] and [..., K, N], but got {sides}.")
        return None
    depth = next((size for size in inner if isinstance(size, int)), LEAST_DEPTH)
    if depth < LEAST_DEPTH:
        call.refuse(
            f"`ntl.dot` takes tiles whose inner size is {LEAST_DEPTH} or more, as the units of a GPU do, "
            f"but got {depth}. Tile both tensors with {LEAST_DEPTH} there, or in place of -1 with a constexpr "
            f"Symbol of {LEAST_DEPTH} or more: what lies beyond them is padding."
        )
    return (*left[:-1], right[-1])


def _created(call: Call, operation: Operation) -> ValueType:
    node, sizes = call.node_of("dtype", 1 if operation.name == "zeros" else 2), call.get(0)
    if isinstance(sizes, ast.Constant | Padded) or (
        sizes is not None and size_of(sizes) is not None
    ):
        call.refuse(f"`ntl.{operation.name}` needs a shape, which is a tuple of sizes, as `(16,)`.")
    shape = call.sizes(0, 1)
    if node is None:
        call.refuse(f"`ntl.{operation.name}` needs an element type, such as ntl.float32.")
    made = of_dtype(call.dtype(node, is_needed=True), shape)
    if operation.name == "full":
        _require_filling(call, made)
    natural = operation.name == "zeros" or call.named("value", 1).is_natural
    return replace(made, is_natural=natural)


def _require_filling(call: Call, made: ValueType) -> None:
    """What a tile is filled with is one value, and may be of the tile's type."""
    value, given = call.named("value", 1), call.node_of("value", 1)
    if any(isinstance(size, int) and size > 1 for size in value.shape or ()):
        call.refuse(f"`ntl.full` takes one value, but got a tile of shape {shown(value)}.")
    if given is not None and (found := no_value(given)):
        call.refuse(f"`ntl.full` takes one value, but got {found}.")
    if value.number != 0 and too_narrow(made):
        call.refuse(f"`ntl.full` makes no {made.dtype}: make a tile of ntl.float32, and cast it.")
    if value.number is None and (reason := no_cast(value, made.dtype)):
        call.refuse(reason)
    if made.dtype is not None and value.number:
        _require_fit(call, value.number, made.dtype)


def _require_fit(call: Call, number: Any, dtype: DType) -> None:
    """A literal that a tile is filled with is one that its type holds."""
    if dtype.kind in ("float", "bool") or not isinstance(number, int | float):
        return
    least, most = integer_bounds(dtype)
    if isinstance(number, float) or not least <= number <= most:
        call.refuse(f"The number {number} does not fit a tile of {dtype}.")


def _vector(call: Call, operation: Operation) -> ValueType:
    start, node = call.constant("start", 0), call.node_of("end", 1)
    for given in (call.node_of("start", 0), node):
        found = UNKNOWN if given is None else type_of(unpadded(given))
        if found.shape or found.kind == "float":
            call.refuse("`ntl.arange` needs integers.")
    size: Any = None
    if isinstance(start, int) and node is not None:
        end = call.constant("end", 1)
        if start < 0:
            call.refuse(
                f"`ntl.arange` begins at 0 or later, but got {start}: add it, as in "
                f"`ntl.arange(0, n) - {-start}`."
            )
        if isinstance(end, int) and end <= start:
            call.refuse(f"`ntl.arange` ends after its start, but got {start} and {end}.")
        if isinstance(end, int):
            size = end - start
        elif start == 0:
            size = size_of(node)
    natural = call.named("start", 0).is_natural
    return ValueType((size,), "int", dtypes.int32, natural)


def _number(call: Call, operation: Operation) -> ValueType:
    return replace(COUNT, dtype=dtypes.int32)


def _mapped(call: Call, operation: Operation) -> ValueType:
    for reason in filter(None, map(too_narrow, call.operands()[1:])):
        call.refuse(reason)
    return UNKNOWN


_RULES: dict[str, Callable[[Call, Operation], ValueType]] = {
    "unknown": _unknown,
    "mapped": _mapped,
    "broadcast": _elementwise,
    "first": _first,
    "like": _like,
    "reduced": _reduced,
    "scanned": _scanned,
    "sorted": _sorted,
    "counted": _counted,
    "product": _product,
    "created": _created,
    "vector": _vector,
    "number": _number,
    "pointed": effect_types.pointed,
    "nothing": effect_types.checked,
    "atomic": effect_types.atomic,
    **movement_types.RULES,
}
