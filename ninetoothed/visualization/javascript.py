"""Integer expressions as JavaScript, which computes what Python would.

Numbers are exact up to 2**53. The page's script has the functions that are called here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ninetoothed.symbols.expr import Expression, Symbol, as_symbol

#: How an operator is written over the texts of its operands.
_TEXTS = {
    "+": "({} + {})",
    "-": "({} - {})",
    "*": "({} * {})",
    "neg": "(-{})",
    # These round towards zero in JavaScript, or know 32 bits only.
    "//": "floordiv({}, {})",
    "%": "modulo({}, {})",
    "&": "and({}, {})",
    "|": "or({}, {})",
    "<": "({} < {})",
    "<=": "({} <= {})",
    ">": "({} > {})",
    ">=": "({} >= {})",
    "==": "({} == {})",
    "!=": "({} != {})",
    "min": "Math.min({}, {})",
    "max": "Math.max({}, {})",
    "padded": "padded({})",
}


def javascript(expression: Expression, name_of: Callable[[Symbol], str]) -> str:
    """An expression in JavaScript.

    Args:
        name_of: gives the text of a leaf.

    Raises:
        ValueError: the expression has an operator that has no meaning there.
    """
    symbol = as_symbol(expression)
    if symbol.op == "const":
        value = symbol.operands[0]
        text = str(value).lower()
        return f"({text})" if value < 0 else text
    if symbol.op == "leaf":
        return name_of(symbol)
    if symbol.op not in _TEXTS:
        raise ValueError(f"`{symbol}` cannot be computed in a browser")
    return _TEXTS[symbol.op].format(*(javascript(o, name_of) for o in symbol.operands))


def listed(expressions: Iterable[Expression], name_of: Callable[[Symbol], str]) -> str:
    """Expressions as a JavaScript array."""
    return f"[{', '.join(javascript(each, name_of) for each in expressions)}]"
