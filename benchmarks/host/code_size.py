"""How much code the ten kernels are: our examples against the idiomatic Triton kernels.

    python -m benchmarks.host.code_size [--output FOLDER]

The measures are those of the paper's table (section 5.2): lines, logical lines and source lines,
cyclomatic complexity G (summed over the functions), Halstead's vocabulary η, length N, volume V and
difficulty D, and the maintainability index MI, all by radon. Counted is what describes the kernel: of
an example everything but imports and the function that launches it, of Triton the functions under
`triton.jit` with their decorators, without the lists of configurations.

As in the paper, what an example imports from another (`mm`'s arrangement, for one) is not counted
again, while a Triton kernel counts with all that it calls; the last column counts ours in that way too.
"""

from __future__ import annotations

import argparse
import ast
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from radon.complexity import cc_visit
from radon.metrics import h_visit, mi_visit
from radon.raw import analyze

from benchmarks.common.fresh import ROOT, environment
from benchmarks.common.report import RESULTS, describe, table, write

#: The paper's ratios of Halstead volume, NineToothed over Triton, from its table 2.
PAPER = {
    "add": 4.75 / 79.95,
    "addmm": 27.00 / 990.79,
    "bmm": 25.36 / 1024.43,
    "conv2d": 4.00 / 1625.34,
    "mm": 25.54 / 822.20,
    "rms_norm": 48.43 / 142.62,
    "rope": 116.00 / 649.85,
    "sdpa": 284.60 / 505.24,
    "silu": 4.75 / 66.61,
    "softmax": 15.51 / 116.69,
}

#: The functions that launch, in the examples.
_LAUNCHERS = {*PAPER, "rope_"}

#: The Triton kernel of each task; a product is the batch of one.
_KERNELS = {**{name: f"{name}_kernel" for name in PAPER}, "bmm": "mm_kernel"}


@dataclass(frozen=True)
class Size:
    """The measures of one text."""

    loc: int
    lloc: int
    sloc: int
    complexity: int
    vocabulary: int
    length: int
    volume: float
    difficulty: float
    maintainability: float

    @classmethod
    def of(cls, text: str) -> Size:
        """Measure a module's text."""
        raw, halstead = analyze(text), h_visit(text).total
        return cls(
            raw.loc,
            raw.lloc,
            raw.sloc,
            sum(block.complexity for block in cc_visit(text)),
            halstead.vocabulary,
            halstead.length,
            halstead.volume,
            halstead.difficulty,
            mi_visit(text, multi=True),
        )

    def cells(self) -> tuple[str, ...]:
        """The measures for a table."""
        return tuple(
            f"{value:.2f}" if isinstance(value, float) else str(value)
            for value in asdict(self).values()
        )


def example(name: str) -> str:
    """What an example says of its kernel."""
    text = (ROOT / "examples" / f"{name}.py").read_text()
    kept = [
        node
        for node in ast.parse(text).body
        if not isinstance(node, (ast.Import, ast.ImportFrom))
        and not (isinstance(node, ast.FunctionDef) and node.name in _LAUNCHERS)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    return _text_of(kept, text)


def with_what_it_uses(name: str) -> str:
    """The same with the examples that it imports."""
    text = (ROOT / "examples" / f"{name}.py").read_text()
    used = [
        alias.name
        for node in ast.parse(text).body
        if isinstance(node, ast.ImportFrom) and node.module == "examples"
        for alias in node.names
    ]
    return "\n\n\n".join((*map(example, used), example(name)))


def triton_kernel(name: str) -> str:
    """The Triton kernel of a task, with the functions that it calls."""
    folder = ROOT / "benchmarks" / "peers" / "idiomatic"
    text = "\n".join(path.read_text() for path in sorted(folder.glob("*.py")))
    functions = {
        node.name: node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.decorator_list
    }
    wanted, found = [_KERNELS[name]], {}
    while wanted:
        current = wanted.pop()
        if current in functions and current not in found:
            found[current] = functions[current]
            wanted += [
                node.id for node in ast.walk(functions[current]) if isinstance(node, ast.Name)
            ]
    return _text_of([node for node in functions.values() if node.name in found], text)


def _text_of(nodes: Iterable[ast.stmt], text: str) -> str:
    """The lines of some statements, docstrings left out, two empty lines between functions."""
    lines, parts = text.splitlines(), []
    previous_end = None
    for node in nodes:
        decorators = getattr(node, "decorator_list", ())
        first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        kept = lines[first - 1 : node.end_lineno]
        for docstring in reversed(_docstrings(node)):
            assert docstring.end_lineno is not None
            del kept[docstring.lineno - first : docstring.end_lineno - first + 1]
        between = "" if previous_end is None else "\n" * min(3, max(1, first - previous_end))
        parts += [between, "\n".join(kept)]
        previous_end = node.end_lineno
    return "".join(parts) + "\n"


def _docstrings(node: ast.stmt) -> list[ast.Expr]:
    functions = (child for child in ast.walk(node) if isinstance(child, ast.FunctionDef))
    return [
        function.body[0]
        for function in functions
        if isinstance(function.body[0], ast.Expr)
        and isinstance(function.body[0].value, ast.Constant)
        and isinstance(function.body[0].value.value, str)
    ]


def measure() -> dict[str, dict[str, Size]]:
    """The sizes of each task: ``"Triton"``, ``"ours"`` and ``"ours, with what it uses"``."""
    return {
        name: {
            "Triton": Size.of(triton_kernel(name)),
            "ours": Size.of(example(name)),
            "ours, with what it uses": Size.of(with_what_it_uses(name)),
        }
        for name in PAPER
    }


def as_tables(sizes: dict[str, dict[str, Size]]) -> str:
    """The paper's table for our kernels, and the ratios of volume beside the paper's."""
    rows = [
        (f"{name}, {who}", *found[who].cells())
        for (name, found), who in itertools.product(sizes.items(), ("Triton", "ours"))
    ]
    ratios = [
        (
            name,
            f"{100 * found['ours'].volume / found['Triton'].volume:.2f} %",
            f"{100 * PAPER[name]:.2f} %",
            f"{100 * found['ours, with what it uses'].volume / found['Triton'].volume:.2f} %",
        )
        for name, found in sizes.items()
    ]
    return "\n".join(
        (
            table(("kernel", "LOC", "LLOC", "SLOC", "G", "η", "N", "V", "D", "MI"), rows),
            "",
            "Halstead volume, ours over Triton's.",
            "",
            table(("kernel", "ours", "the paper's", "ours, with what it imports"), ratios),
        )
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.host.code_size",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", type=Path, default=RESULTS / "host")
    options = parser.parse_args(arguments)
    sizes, here = measure(), environment()
    text = "\n".join(("# Size of the code", "", describe(here), "", as_tables(sizes)))
    print(text)
    data = {
        name: {who: asdict(size) for who, size in found.items()} for name, found in sizes.items()
    }
    write("code-size", here, text, data, options.output)


if __name__ == "__main__":
    main()
