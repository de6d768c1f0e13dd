"""What parts of a Program read, write and do: for the order of evaluation and for the passes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ninetoothed.language import operations
from ninetoothed.language.operations import Operation
from ninetoothed.program.nodes import (
    ElementPlace,
    ExternRef,
    Held,
    LanguageRef,
    Load,
    SourceLoad,
    SourcePlace,
    SourceStore,
    Store,
    walk,
)


def called_name(call: ast.Call) -> str:
    """The last part of a called name, ``""`` where the function is no name."""
    if isinstance(call.func, LanguageRef):
        return call.func.name.rpartition(".")[2]
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def operation_of(call: ast.Call) -> Operation | None:
    """The operation of the language that a call is, as a function or as a method of a value."""
    name = call.func.name if isinstance(call.func, LanguageRef) else called_name(call)
    return operations.find(name)


def is_product(node: ast.AST) -> bool:
    """Whether a node is a product of tiles."""
    operation = operation_of(node) if isinstance(node, ast.Call) else None
    return operation is not None and operation.kind == "product"


def asks_for_program(node: ast.AST) -> bool:
    """Whether a node asks which program runs, or how many there are."""
    operation = operation_of(node) if isinstance(node, ast.Call) else None
    return operation is not None and operation.kind == "program"


def effect_of(call: ast.Call) -> str:
    """What evaluating a call, without its arguments, does besides giving a value."""
    operation = operation_of(call)
    return "none" if operation is None else operation.effect


def elementwise_operands(node: ast.expr) -> list[ast.expr] | None:
    """What a value is computed of, each element for itself; None of one that is computed otherwise."""
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return [node.left, *node.comparators]
    operation = operation_of(node) if isinstance(node, ast.Call) else None
    if operation is None or not (operation.is_elementwise or operation.kind == "hint"):
        return None
    assert isinstance(node, ast.Call)
    of_method = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return [*of_method, *node.args, *(keyword.value for keyword in node.keywords)]


def is_atomic(name: str) -> bool:
    """Whether a function of the language changes memory in one step, and gives what was there."""
    operation = operations.find(name)
    return operation is not None and operation.kind == "atomic"


def place_changed(node: ast.expr) -> ElementPlace | SourcePlace | None:
    """The elements of a tensor that an atomic operation changes; None of another node."""
    place = node.args[0] if isinstance(node, ast.Call) and node.args else None
    return place if isinstance(place, ElementPlace | SourcePlace) else None


def is_lowest(call: ast.Call) -> bool:
    """Whether a call is ``float("-inf")``."""
    given = call.args[0] if call.args else None
    is_float = isinstance(call.func, ast.Name) and call.func.id == "float"
    text = str(given.value).strip() if is_float and isinstance(given, ast.Constant) else ""
    return text in ("-inf", "-infinity")


def has_effect(node: ast.AST) -> bool:
    """Whether evaluating ``node`` does more than give a value."""
    return any(is_effect(child) for child in walk(node))


def writes_memory(node: ast.AST) -> bool:
    """Whether running ``node`` may change an element of a tensor. Unknown functions may."""
    return any(is_write(child) for child in walk(node))


def is_write(node: ast.AST) -> bool:
    """Whether ``node`` itself, not what it is made of, may change an element of a tensor."""
    return is_effect(node) and not (isinstance(node, ast.Call) and effect_of(node) == "keeps")


def reads_memory(node: ast.AST) -> bool:
    """Whether ``node`` contains a load."""
    return any(
        isinstance(child, Load | SourceLoad)
        or (isinstance(child, ast.Call) and effect_of(child) == "reads")
        for child in walk(node)
    )


def names_read(node: ast.AST) -> set[str]:
    """The local names that ``node`` reads."""
    read = set()
    for child in walk(node):
        if isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Store):
            read.add(child.id)
        elif isinstance(child, Held):
            read.add(child.name)
    return read


#: What stands among names for the elements of all tensors.
MEMORY = "elements of tensors"


def names_deciding(node: ast.AST) -> set[str]:
    """The names that decide what ``node`` is, `MEMORY` too where it is read or changed."""
    return names_read(node) | ({MEMORY} if reads_memory(node) or has_effect(node) else set())


def names_changed(nodes: Iterable[ast.AST]) -> set[str]:
    """The names assigned anywhere within statements, `MEMORY` too where it may be written to."""
    nodes = list(nodes)
    return names_assigned(nodes) | ({MEMORY} if any(map(writes_memory, nodes)) else set())


def targets_of(node: ast.AST) -> Iterator[ast.Name]:
    """The names that the statement ``node`` itself assigns."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            elements = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (element for element in elements if isinstance(element, ast.Name))
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.For) and isinstance(
        node.target, ast.Name
    ):
        yield node.target


def names_assigned(nodes: Iterable[ast.AST]) -> set[str]:
    """The names assigned anywhere within the statements ``nodes``."""
    return {
        target.id
        for node in nodes
        for statement in statements_of(node)
        for target in targets_of(statement)
    }


def statements_of(node: ast.AST) -> Iterator[ast.AST]:
    """A statement and all within it."""
    yield node
    if isinstance(node, ast.If | ast.For | ast.While):
        for inner in (*node.body, *node.orelse):
            yield from statements_of(inner)


def conflicts(node: ast.AST, statements: list[ast.stmt]) -> bool:
    """Whether ``node``, evaluated after ``statements``, may differ from what it is before them."""
    if not names_read(node).isdisjoint(names_assigned(statements)):
        return True
    touched = any(writes_memory(statement) for statement in statements)
    if touched and reads_memory(node):
        return True
    if not has_effect(node):
        return False
    return touched or any(reads_memory(item) or has_effect(item) for item in statements)


def is_effect(node: ast.AST) -> bool:
    """Whether ``node`` itself, not what it is made of, does more than give a value."""
    if isinstance(node, Store | SourceStore):
        return True
    if not isinstance(node, ast.Call):
        return False
    return isinstance(node.func, ExternRef) or effect_of(node) in ("keeps", "writes")
