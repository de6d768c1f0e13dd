"""The derivative rules of element-wise operations: a row for each, beside the table of operations.

A rule has an expression for each operand, over ``g``, the gradient of the result, ``y``, the result, and
``a``, ``b``, ``c``, the operands; it gives the gradient of that operand. An operand of None has none. An
operation whose rule has no expressions does not change where its operands do by a little. How operations
that change shapes are derived stands in ``ninetoothed.derivatives``.
"""

from __future__ import annotations

Rule = tuple[str | None, ...]

_EXTREMUM = (
    "where(y == b, where(y == a, 0.5 * g, 0.0), g)",
    "where(y == b, where(y == a, 0.5 * g, g), 0.0)",
)
_AROUND = "g * where((a == 0.0) & (b == 0.0), 0.0, {0} / (a * a + b * b))"
_LN_2 = 0.6931471805599453
_LN_10 = 2.302585092994046
_2_OVER_ROOT_PI = 1.1283791670955126
_1_OVER_ROOT_2_PI = 0.3989422804014327

_ROWS: tuple[tuple[str, Rule], ...] = (
    ("add", ("g", "g")),
    ("sub", ("g", "-g")),
    ("mul", ("g * b", "g * a")),
    ("div div_rn fdiv", ("g / b", "-g * y / b")),
    ("neg", ("-g",)),
    ("fma", ("g * b", "g * a", "g")),
    ("exp", ("g * y",)),
    ("exp2", (f"g * y * {_LN_2}",)),
    ("log", ("g / a",)),
    ("log2", (f"g / (a * {_LN_2})",)),
    ("sqrt sqrt_rn", ("0.5 * g / y",)),
    ("rsqrt", ("-0.5 * g * y / a",)),
    ("sin", ("g * cos(a)",)),
    ("cos", ("-g * sin(a)",)),
    ("erf", (f"{_2_OVER_ROOT_PI} * g * exp(-a * a)",)),
    ("sigmoid", ("g * y * (1.0 - y)",)),
    ("abs", ("where(a == 0.0, 0.0, where(a < 0.0, -g, g))",)),
    # Equal operands have half of it each; beside NaN, which equals nothing, the other one has all, and of two the first.
    ("maximum minimum", _EXTREMUM),
    ("where", (None, "where(a, g, 0.0)", "where(a, 0.0, g)")),
    # Where the bounds cross, the upper one is what comes out.
    (
        "clamp",
        (
            "where((a >= b) & (a <= c), g, 0.0)",
            "where((a < b) & (b < c), g, 0.0)",
            "where((a > c) | (b > c), g, 0.0)",
        ),
    ),
    ("max_constancy max_contiguous multiple_of", ("g", None)),
    # A base of 0 has the slopes that it has in torch: none of its exponent, and none where that is 0.
    (
        "libdevice.pow",
        (
            "g * where((a == 0.0) & (b == 0.0), 0.0, b * libdevice.pow(a, b - 1.0))",
            "g * where((a == 0.0) & (b >= 0.0), 0.0, y * log(a))",
        ),
    ),
    ("libdevice.hypot", ("g * a / y", "g * b / y")),
    ("libdevice.atan2", (_AROUND.format("b"), _AROUND.format("-a"))),
    ("libdevice.tan", ("g * (1.0 + y * y)",)),
    ("libdevice.tanh", ("g * (1.0 - y * y)",)),
    ("libdevice.sinh", ("g * libdevice.cosh(a)",)),
    ("libdevice.cosh", ("g * libdevice.sinh(a)",)),
    ("libdevice.asin", ("g / sqrt(1.0 - a * a)",)),
    ("libdevice.acos", ("-g / sqrt(1.0 - a * a)",)),
    ("libdevice.atan", ("g / (1.0 + a * a)",)),
    ("libdevice.asinh", ("g / sqrt(a * a + 1.0)",)),
    ("libdevice.acosh", ("g / sqrt(a * a - 1.0)",)),
    ("libdevice.atanh", ("g / (1.0 - a * a)",)),
    ("libdevice.cbrt", ("g / (3.0 * y * y)",)),
    ("libdevice.log1p", ("g / (1.0 + a)",)),
    ("libdevice.expm1", ("g * (y + 1.0)",)),
    ("libdevice.exp10", (f"g * y * {_LN_10}",)),
    ("libdevice.log10", (f"g / (a * {_LN_10})",)),
    ("libdevice.erfc", (f"{-_2_OVER_ROOT_PI} * g * exp(-a * a)",)),
    ("libdevice.normcdf", (f"{_1_OVER_ROOT_2_PI} * g * exp(-0.5 * a * a)",)),
    # Steps, and what only counts, asks or draws.
    (
        """ceil floor cdiv logical_and logical_or rand randint randn libdevice.nearbyint libdevice.rint
        libdevice.round libdevice.trunc libdevice.isnan libdevice.isinf libdevice.finitef
        libdevice.isfinited libdevice.signbit""",
        (),
    ),
)

#: These mean the same in the library of the device.
_ALSO_OF_THE_DEVICE = "abs ceil floor erf sqrt sqrt_rn rsqrt sin cos exp exp2 log log2 fma div_rn"

#: The rules by the operations' names; ``div`` and ``neg`` are Python's operators.
RULES: dict[str, Rule] = {name: rule for names, rule in _ROWS for name in names.split()}
RULES |= {f"libdevice.{name}": RULES[name] for name in _ALSO_OF_THE_DEVICE.split()}
