"""Rules of the package, each with what a mutant has in its place: see `tests.hunt.mutants`.

The backend says where a mutant's programs run: `numpy`, or the emitted source in Triton's interpreter,
`plain` or with what is known of the call.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """A change of one place in a file, which has the text ``before`` once."""

    backend: str
    file: str
    before: str
    after: str


_PASSES = "ninetoothed/passes/"
_NUMPY = "ninetoothed/backends/numpy/"
_TRITON = "ninetoothed/backends/triton/"

_REDUCTION = _NUMPY + "language/reduction.py"
_SCAN = _NUMPY + "language/scan.py"
_TILE = _NUMPY + "values/tile.py"
_ARGUMENTS = "ninetoothed/program/arguments.py"
_METAOPS = "ninetoothed/tensors/metaops.py"
_LIBRARY = _TRITON + "library.py"
_FACTS = _TRITON + "specialization/call_facts.py"
_REACH = "ninetoothed/kernels/reach.py"

#: Which elements exist: what follows it through a program, in Triton's passes.
_VALIDITY = {
    "a reduction keeps the wrong dimension": (
        "padding/calls",
        "result = reduced(value, axis, keep_dims)",
        "result = reduced(value, 0, keep_dims)",
    ),
    "padding is counted": (
        "padding/calls",
        "ops=[ast.NotEq()], comparators=[zero]",
        "ops=[ast.GtE()], comparators=[zero]",
    ),
    "what is made exists beyond the size": (
        "padding/calls",
        "validity.append(TileMask(key",
        "(TileMask(key",
    ),
    "a transposed value's padding stays": (
        "padding/calls",
        "return rearranged(value, dims)",
        "return value",
    ),
    "a flip reverses the padding too": (
        "padding/moves",
        "dim=dim, masks=masks",
        "dim=dim, masks=[]",
    ),
    "a flip is of the first dimension": (
        "padding/moves",
        "    dim %= len(value.shape)\n",
        "    dim = 0\n",
    ),
    "what moved exists everywhere": (
        "padding/moves",
        "{index: analysis.masks(with_rank(arguments.known(index)), node) for index in places}",
        "{index: [] for index in places}",
    ),
    "a round without an element counts": (
        "padding/rounds",
        "        if not new or held is None:\n            return\n",
        "        return\n",
    ),
    "a loop forgets what is wanted": (
        "padding/rounds",
        "        if new and (loop, name) not in self.needed:",
        "        if False:",
    ),
    "a loaded tile exists everywhere": (
        "padding/values",
        "        return Known(validity=(replace(mask, is_met=is_met),))",
        "        return UNKNOWN",
    ),
    "what negates is as before": (
        "padding/values",
        "return node, replace(negated, is_zero=value.is_zero, is_finite=value.is_finite)",
        "return node, UNKNOWN",
    ),
    "a comparison has no padding": (
        "padding/values",
        "        result = joined([left, right])\n        if isinstance(node.ops[0]",
        "        result = joined([left])\n        if isinstance(node.ops[0]",
    ),
    "an operator drops the right one's padding": (
        "padding/values",
        "joined([left, right], OPERATORS",
        "joined([left], OPERATORS",
    ),
    "a difference from padding is 0 there": (
        "padding/validity",
        'ast.Sub: "less"',
        'ast.Sub: "product"',
    ),
}

#: What operators mean, what memory holds: Triton's other passes.
_MEANING = {
    "a quotient rounds to 0": (
        "python_operators",
        "        return nodes.at(nodes.Rounded(left=node.left, op=node.op, right=node.right), node)",
        "        return node",
    ),
    "truth values do not count": ("python_operators", "node.left = _counted(node.left)", "pass"),
    "not is as a device has it": (
        "python_operators",
        "node.operand, ast.Eq()",
        "node.operand, ast.NotEq()",
    ),
    "what is known of memory outlives what writes to it": (
        "rewriting",
        "    if writes_memory(statement):\n        return {}\n",
        "",
    ),
    "what was loaded is known for ever": (
        "reuse_loads",
        "    return rewriting.surviving(known, statement)",
        "    return known",
    ),
    "a load leaves a loop that stores": (
        "hoist_loads",
        "isinstance(statement, ast.For | ast.While) and not writes_memory(statement)",
        "isinstance(statement, ast.For | ast.While)",
    ),
}

_OTHERS = {
    # Which arguments what does not exist is left out of, and what stands there.
    "a scan takes padding in": Mutant(
        "plain",
        _ARGUMENTS,
        'if form in ("scanned", "nothing") else []',
        'if form == "nothing" else []',
    ),
    "a reduction takes padding in": Mutant(
        "plain",
        _ARGUMENTS,
        "return [(0, identity, axis if isinstance(axis, int) else None)]",
        "return []",
    ),
    "a reduction's identity is 0": Mutant(
        "plain",
        _ARGUMENTS,
        "return [(0, identity, axis if isinstance(axis, int) else None)]",
        'return [(0, "zero", axis if isinstance(axis, int) else None)]',
    ),
    "a sort puts padding first": Mutant(
        "plain",
        _ARGUMENTS,
        '(0, "lowest" if descending else identity, None)',
        '(0, identity if descending else "lowest", None)',
    ),
    # The language in NumPy.
    "numpy: a reduction's identity is 0": Mutant(
        "numpy",
        _REDUCTION,
        "    data = without_padding(tile, identity_of(name))\n    between",
        '    data = without_padding(tile, "zero")\n    between',
    ),
    "numpy: an index reduction takes padding in": Mutant(
        "numpy",
        _REDUCTION,
        "        data = without_padding(tile, identity_of(name))\n        best",
        "        data = tile.data\n        best",
    ),
    "numpy: a scan takes padding in": Mutant(
        "numpy",
        _SCAN,
        "cast_array(without_padding(tile, identity_of(name)), tile.dtype, between)",
        "cast_array(tile.data, tile.dtype, between)",
    ),
    "numpy: a scan from the end is one from the start": Mutant(
        "numpy", _SCAN, "    if reverse:\n        data = np.flip(data, place)\n    data", "    data"
    ),
    "numpy: a sort puts padding first": Mutant(
        "numpy",
        _SCAN,
        '"lowest" if is_descending else identity_of("sort")',
        'identity_of("sort") if is_descending else "lowest"',
    ),
    "numpy: a minimum's identity is the lowest": Mutant(
        "numpy",
        _NUMPY + "language/identities.py",
        'is_highest = identity in ("highest", "last")',
        "is_highest = False",
    ),
    "numpy: a partly padded reduction exists nowhere": Mutant(
        "numpy",
        _NUMPY + "language/identities.py",
        "kept.append(np.asarray(held).any(axis=axis",
        "kept.append(np.asarray(held).all(axis=axis",
    ),
    "numpy: a flip is off by one": Mutant(
        "numpy",
        _NUMPY + "language/shape.py",
        "keepdims=True) - np.cumsum(there, axis=axis)",
        "keepdims=True) - np.cumsum(there, axis=axis) - 1",
    ),
    "numpy: a round without an element counts": Mutant(
        "numpy",
        _NUMPY + "values/rounds.py",
        "data = np.where(is_given, value.data, before.data)",
        "data = value.data",
    ),
    "numpy: a result exists where its first operand does": Mutant(
        "numpy", _TILE, "    for tile in tiles:\n", "    for tile in tiles[:1]:\n"
    ),
    "numpy: a mask drops its last condition": Mutant(
        "numpy",
        _NUMPY + "execution/tensors.py",
        "functools.reduce(operator.and_, masks) if masks",
        "functools.reduce(operator.and_, masks[:-1] or masks) if masks",
    ),
    "numpy: a size yields to what it meets": Mutant(
        "numpy",
        _NUMPY + "values/size.py",
        "        return value.tile()\n    return float(value)",
        "        return int(value)\n    return float(value)",
    ),
    "numpy: a quotient rounds to 0": Mutant(
        "numpy",
        _NUMPY + "values/operators.py",
        'quotient = elementwise(np.floor_divide, "//", x, y)\n    if',
        'quotient = elementwise(np.floor_divide, "//", x - np.fmod(x, y), y)\n    if',
    ),
    # Arrangements, for both.
    "a tile has one element more": Mutant(
        "numpy",
        _METAOPS,
        "as_symbol(position) < as_symbol(size)\n            for position, size, whole",
        "as_symbol(position) < as_symbol(size) + 1\n            for position, size, whole",
    ),
    "what lies before a padded tensor exists": Mutant(
        "numpy", _METAOPS, "            if left != 0:\n", "            if False:\n"
    ),
    "a padding shifts by the other side": Mutant(
        "numpy",
        _METAOPS,
        "(position - left)) for position, (left, _)",
        "(position - left)) for position, (_, left)",
    ),
    "the last tile is not counted": Mutant(
        "plain",
        _METAOPS,
        "rounding = 0 if self.floor_mode else stride - as_symbol(1)",
        "rounding = 0",
    ),
    "a lane beyond the tile is in it": Mutant(
        "plain",
        "ninetoothed/tensors/access.py",
        "(*is_in_tile, *(condition.substitute",
        "(*is_in_tile[1:], *(condition.substitute",
    ),
    "a condition implies one that asks for one more": Mutant(
        "plain",
        "ninetoothed/tensors/access.py",
        "difference_interval(d - c, b - a)[0] >= 0",
        "difference_interval(d - c, b - a)[0] >= -1",
    ),
    "products of what is not negative are none": Mutant(
        "plain",
        "ninetoothed/program/expression_types.py",
        "result = wrapped(result)",
        "result = result",
    ),
    "sums of truth values have no sign": Mutant(
        "plain",
        _PASSES + "python_operators.py",
        "operation.name in _SUMMING and are_truth[0]",
        "operation.name in _SUMMING and False",
    ),
    # What is printed for Triton, and what is found out about a call.
    "the lowest integer is 0": Mutant(
        "plain",
        _LIBRARY,
        "return -(1 << (dtype.primitive_bitwidth - 1)) if dtype.is_int_signed() else 0",
        "return 0",
    ),
    "the highest integer is one bit short": Mutant(
        "plain",
        _LIBRARY,
        "return (1 << (dtype.primitive_bitwidth - dtype.is_int_signed())) - 1",
        "return 1",
    ),
    "a flip is off by one": Mutant(
        "plain",
        _TRITON + "scans.py",
        "tl.where(place < count, count - 1 - place",
        "tl.where(place < count, count - place",
    ),
    "a remainder of 0 gets the divisor": Mutant(
        "plain", _TRITON + "division.py", "is_off = (remainder != 0) & (", "is_off = ("
    ),
    "and of tiles is or": Mutant(
        "plain", _LIBRARY, "return (left != 0) & (right != 0)", "return (left != 0) | (right != 0)"
    ),
    "a mask drops its last condition": Mutant(
        "plain",
        _TRITON + "printers/addresses.py",
        "return all_of(found) if found else None",
        "return all_of(found[:-1] or found) if found else None",
    ),
    "a position's mask stands along the slices": Mutant(
        "plain",
        _TRITON + "printers/element_lowering.py",
        "self._before(condition, after) if after else condition",
        "condition",
    ),
    "truth values that a call gives do not count": Mutant(
        "interpreter",
        _TRITON + "ir/lowered.py",
        "booleans=call.of_dtype(dtypes.bool)",
        "booleans=call.of_dtype(dtypes.bool) & call.arguments.keys()",
    ),
    "a bound holds one too early": Mutant(
        "interpreter", _FACTS, "return left[1] < right[0]", "return left[1] <= right[0]"
    ),
    "lanes end with the tile": Mutant(
        "interpreter", _REACH, "map(padded, parameter.tile_shape)", "parameter.tile_shape"
    ),
    "a program fewer is looked at": Mutant(
        "interpreter",
        _REACH,
        "*zip(access.programs, grid, strict=True)",
        "*((leaf, count - 1) for leaf, count in zip(access.programs, grid, strict=True))",
    ),
}

MUTANTS: dict[str, Mutant] = {
    **{
        name: Mutant("plain", f"{_PASSES}{module}.py", before, after)
        for name, (module, before, after) in {**_VALIDITY, **_MEANING}.items()
    },
    **_OTHERS,
}
