"""What a program leaves in its tensors, by running its application as plain Python, program after program.

Two things are the language's own and put in as text: what a parameter is assigned has the elements and the
type that its tensor has (``y = e``), in a helper too that returns nothing, which gives its caller's variables
what it assigned its parameters (``put(y, e)``).
"""

from __future__ import annotations

import ast
import warnings
from typing import Any

import numpy as np

from tests.hunt.executions import limited
from tests.hunt.values import Ambiguous
from tests.hunt.variables.program import Program
from tests.hunt.variables.tiles import LANGUAGE, Tile, made

#: What a program may take here, in seconds; made smaller, its loops may never end.
MOST_SECONDS = 0.5


def executed(program: Program) -> dict[str, np.ndarray]:
    """What is in the tensors afterwards."""
    content = program.content()
    if program.others and program.tile & (program.tile - 1):
        # What a tile is widened to reads as `other` too, and takes part.
        raise Ambiguous("lanes of a wider tile that are elements")
    numbers: dict[str, Any] = dict(program.numbers)
    if "f" not in program.constants and "float64" in program.types.values():
        numbers["f"] = Tile(np.asarray(float(numbers["f"])))
    with warnings.catch_warnings():
        # What is made smaller may be no program.
        warnings.simplefilter("ignore", SyntaxWarning)
        application = compile(_translated(program), "application", "exec")
    after = {name: data.copy() for name, data in content.items()}
    with limited(MOST_SECONDS):
        for first in range(0, program.size, program.tile):
            block = slice(first, first + program.tile)
            tiles = {name: _tile(program, name, data, block) for name, data in content.items()}
            known = {"ntl": LANGUAGE, "__stored": _stored, "__given": _given}
            exec(application, known)
            left = known["application"](**tiles, **numbers)
            for name, tile in zip(program.types, left):
                places, exists = _places(program, name, block)
                after[name][places[exists]] = tile.data[exists]
    return after


def _places(program: Program, name: str, block: slice) -> tuple[np.ndarray, np.ndarray]:
    """Where in a tensor the elements of a program's tile are, and which of these there are."""
    if name == "w":
        return np.arange(program.width), np.ones(program.width, bool)
    before, behind = program.pads.get(name, (0, 0))
    places = np.arange(
        block.start, block.stop if program.has_padding else min(block.stop, program.size)
    )
    places = places - before
    return places, (places >= 0) & (places < program.size - before - behind)


def _tile(program: Program, name: str, data: np.ndarray, block: slice) -> Tile:
    places, exists = _places(program, name, block)
    other = program.others.get(name)
    held = np.full(len(places), 0 if other is None else other, data.dtype)
    held[exists] = data[places[exists]]
    if exists.all():
        return Tile(held, name)
    return Tile(held, name, exists if other is None else None, ~exists)


def _stored(old: Any, value: Any) -> Any:
    """What a parameter is once it was assigned a value; a helper's, of what it was given at first."""
    if value is old or not isinstance(old, Tile) or old.owner is None:
        return value
    if not isinstance(value, (Tile, bool, int, float)):
        raise Ambiguous("a store of what is no tile")
    if isinstance(value, Tile) and value.shape not in ((), old.shape):
        raise Ambiguous("a tile of another size")
    data = np.broadcast_to(getattr(value, "data", np.asarray(value)), old.shape)
    data = made(data, old.dtype).data
    if old.kept is not None:
        data = np.where(old.kept, old.data, data)
    return Tile(data, old.owner, old.exists, old.kept)


def _given(name: str, value: Any) -> Any:
    """What a variable's name gives a helper that assigns it: a variable, or a parameter by its own name."""
    if isinstance(value, Tile) and value.owner not in (None, name):
        raise Ambiguous("a variable that is a parameter's tile is assigned in a helper")
    return value


class _Translation(ast.NodeTransformer):
    def __init__(self, program: Program, procedures: dict[str, list[str]]) -> None:
        self.program = program
        self.procedures = procedures
        #: The parameters of the function at hand that an assignment may store to.
        self.parameters: set[str] = set()

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [new for statement in body for new in self.statement(statement)]

    def statement(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements in the place of one."""
        for part in ("body", "orelse"):
            if block := getattr(statement, part, None):
                setattr(statement, part, self.statements(block))
        match statement:
            case ast.Expr(ast.Call(ast.Name(name), arguments)) if name in self.procedures:
                assigned = [at for at, is_set in enumerate(self.procedures[name]) if is_set]
                targets = [arguments[at] for at in assigned]
                if not all(isinstance(target, ast.Name) for target in targets):
                    raise Ambiguous("a helper assigns to what is no name")
                names = [target.id for target in targets]
                given = ", ".join(
                    f"__given({ast.unparse(a)!r}, {ast.unparse(a)})"
                    if at in assigned
                    else ast.unparse(a)
                    for at, a in enumerate(arguments)
                )
                text = f"{', '.join(names)}, = {name}({given})"
                return [*ast.parse(text).body, *self.stores(names)]
            case ast.Assign() | ast.AugAssign() | ast.Expr() | ast.AnnAssign():
                nodes = ast.walk(statement)
                names = [
                    n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                ]
                return [statement, *self.stores(names)]
        return [statement]

    def stores(self, names: list[str]) -> list[ast.stmt]:
        mine = [name for name in names if name in self.parameters]
        return [
            s for name in mine for s in ast.parse(f"{name} = __stored(__of_{name}, {name})").body
        ]


def _translated(program: Program) -> ast.Module:
    tree = ast.parse(program.text)
    procedures: dict[str, list[str]] = {}
    translation = _Translation(program, procedures)
    for function in tree.body:
        assert isinstance(function, ast.FunctionDef)
        names = [argument.arg for argument in function.args.args]
        nodes = list(ast.walk(function))
        left: list[str] = []
        if function.name == "application":
            left, names = [*program.types], program.names
            function.args = ast.parse(f"def f({', '.join(names)}): pass").body[0].args
        elif not any(isinstance(node, ast.Return) for node in nodes):
            written = {
                n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            }
            left = [name for name in names if name in written]
            procedures[function.name] = [name in written for name in names]
        translation.parameters = set(left)
        begins = "".join(f"__of_{name} = {name}\n" for name in left)
        function.body = [*ast.parse(begins).body, *translation.statements(function.body)]
        if left:
            result = "".join(f"{name}, " for name in left)
            function.body += ast.parse(f"return ({result})").body
    return ast.fix_missing_locations(tree)
