"""Which module of a package imports which, imports inside functions and for types only included."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

#: From a module to those that it imports, and whether each is imported for types only.
Graph = Mapping[str, Mapping[str, bool]]


def graph_of(package: Path) -> Graph:
    """The imports among the modules below a package's folder."""
    files = {_name(file, package): file for file in sorted(package.rglob("*.py"))}
    graph: dict[str, dict[str, bool]] = {}
    for name, file in files.items():
        imported = graph.setdefault(name, {})
        for target, types_only in _imports(ast.parse(file.read_text(encoding="utf-8"))):
            while target not in files and "." in target:
                target = target.rpartition(".")[0]
            if target in files and target != name:
                imported[target] = imported.get(target, True) and types_only
    return graph


def circles(graph: Graph) -> list[list[str]]:
    """The sets of modules that import one another, each sorted. Tarjan, 1972."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = lowest[module] = len(index)
        stack.append(module)
        for imported in graph[module]:
            if imported not in index:
                visit(imported)
                lowest[module] = min(lowest[module], lowest[imported])
            elif imported in stack:
                lowest[module] = min(lowest[module], index[imported])
        if lowest[module] == index[module]:
            start = stack.index(module)
            members = stack[start:]
            del stack[start:]
            if len(members) > 1:
                found.append(sorted(members))

    for module in graph:
        if module not in index:
            visit(module)
    return found


def without(graph: Graph, edges: Iterable[tuple[str, str]]) -> Graph:
    """The graph without some imports."""
    left_out = set(edges)
    return {
        name: {target: kind for target, kind in imported.items() if (name, target) not in left_out}
        for name, imported in graph.items()
    }


def edges_of(graph: Graph) -> Iterator[tuple[str, str, bool]]:
    """Importer, imported, whether for types only."""
    for name, imported in graph.items():
        yield from zip(itertools.repeat(name), imported, imported.values())


def _name(file: Path, package: Path) -> str:
    parts = file.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(node: ast.AST, types_only: bool = False) -> Iterator[tuple[str, bool]]:
    for child in ast.iter_child_nodes(node):
        is_guard = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        if isinstance(child, ast.Import):
            yield from ((alias.name, types_only) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module is not None:
            yield from ((f"{child.module}.{alias.name}", types_only) for alias in child.names)
        else:
            yield from _imports(child, types_only or is_guard)
