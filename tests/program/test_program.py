"""The Program's text and its verifier."""

import ast
from types import SimpleNamespace

import pytest

from ninetoothed.language import dtypes
from ninetoothed.program.nodes import (
    DTypeRef,
    ElementType,
    ExternRef,
    LanguageRef,
    Load,
    Mask,
    Masked,
    Offsets,
    Padded,
    SequenceLength,
    SourceLoad,
    SourcePointer,
    SourceStore,
    Store,
    SymbolValue,
    TileRef,
    at,
    clone,
)
from ninetoothed.program.program import Program
from ninetoothed.program.verify import MalformedProgramError, verify


def tensor(name, *levels, ndim=2):
    return SimpleNamespace(
        name=name,
        kind="tensor",
        levels=levels,
        tile_shape=levels[-1],
        dtype=None,
        source=SimpleNamespace(ndim=ndim, strides=()),
    )


X = tensor("x", ("grid",), ("count",), ("M", "N"))
Y = tensor("y", ("grid",), ("M", "N"))
N = SimpleNamespace(name="n", kind="scalar", levels=(), value=None, dtype=None)


def placed(node):
    for child in ast.walk(node):
        at(child, ast.Name("here", lineno=3, col_offset=4), "user.py")
    return node


def name(text):
    return ast.Name(id=text, ctx=ast.Load())


def x_tile():
    return TileRef(parameter="x", indices=[name("n")])


def y_tile():
    return TileRef(parameter="y", indices=[])


def program(*body, **more):
    return Program("kernel", (X, Y, N), [placed(node) for node in body], **more)


def text(node):
    statement = node if isinstance(node, ast.stmt) else ast.Expr(value=node)
    return str(program(statement)).splitlines()[-1].strip()


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (Load(tile=x_tile()), "x[n]"),
        (Load(tile=y_tile()), "y"),
        (Store(tile=x_tile(), value=Load(tile=y_tile())), "store x[n] = y"),
        (Offsets(tile=x_tile(), dim=1), "x[n].offsets(1)"),
        (Offsets(tile=y_tile(), dim=None), "y.offsets()"),
        (SymbolValue(symbol="y_size_0"), "y_size_0"),
        (SymbolValue(symbol="a + 1"), "(a + 1)"),
        (SequenceLength(parameter="y", dim=1), "y.source.shape[1]"),
        (SourcePointer(parameter="y"), "y.data_ptr()"),
        (ElementType(parameter="y"), "y.dtype"),
        (SourceLoad(parameter="y", indices=[name("n"), name("n")]), "y.source[n, n]"),
        (
            SourceStore(parameter="y", indices=[name("n"), name("n")], value=name("n")),
            "store y.source[n, n] = n",
        ),
        (DTypeRef(dtype=dtypes.float32), "float32"),
        (LanguageRef(name="libdevice.tanh"), "ntl.libdevice.tanh"),
        (Padded(value=name("n")), "padded(n)"),
        (
            Masked(
                value=Load(tile=y_tile()),
                masks=[Mask(tile=y_tile(), layout=(0, None))],
                identity="zero",
            ),
            "masked(y, mask(y, (0, None)), 'zero')",
        ),
    ],
)
def test_nodes_print_as_a_reader_would_write_them(node, expected):
    assert text(node) == expected


def test_a_program_prints_its_parameters_with_their_levels():
    shown = str(program(Store(tile=y_tile(), value=Load(tile=x_tile()))))

    assert shown.splitlines() == [
        "program kernel:",
        "    x: (grid,) of (count,) of (M, N)",
        "    y: (grid,) of (M, N)",
        "    n: scalar",
        "",
        "    store y = x[n]",
    ]


def test_printing_leaves_the_program_as_it_was():
    made = program(Store(tile=y_tile(), value=Load(tile=x_tile())))

    assert str(made) == str(made)
    assert isinstance(made.body[0].value, Load)


def test_a_clone_shares_nothing_but_leaves():
    node = placed(Store(tile=x_tile(), value=DTypeRef(dtype=dtypes.int8)))
    copy = clone(node)

    assert {id(item) for item in ast.walk(node)}.isdisjoint(
        id(item) for item in ast.walk(copy) if not isinstance(item, ast.expr_context)
    )
    assert copy.value.dtype is dtypes.int8
    assert (copy.lineno, copy.file) == (3, "user.py")


def test_arranged_parameters():
    assert program(ast.Expr(value=Offsets(tile=y_tile(), dim=0))).touched() == {"y"}


def test_a_good_program_passes():
    verify(
        program(
            ast.Assign(targets=[name("v")], value=Load(tile=x_tile())),
            Store(tile=y_tile(), value=name("v")),
        )
    )


def test_a_pass_may_not_change_what_type_a_value_has():
    shifted = ast.BinOp(left=Load(tile=y_tile()), op=ast.Add(), right=name("n"))
    store = Store(tile=y_tile(), value=shifted)
    verify(program(store))

    changed = clone(store)
    changed.value.left = at(ast.Constant(value=1.0), shifted)
    with pytest.raises(MalformedProgramError, match=r"has different shapes: it was \?\[M, N\]"):
        verify(program(changed))


def test_a_loop_may_read_what_it_assigned_in_the_round_before():
    loop = ast.For(
        target=name("i"),
        iter=ast.Call(func=LanguageRef(name="range"), args=[name("n")], keywords=[]),
        body=[
            ast.If(test=name("i"), body=[Store(tile=y_tile(), value=name("v"))], orelse=[]),
            ast.Assign(targets=[name("v")], value=name("i")),
        ],
        orelse=[],
    )

    verify(program(loop))


SHARED = name("n")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (Store(tile=y_tile(), value=name("lost")), "reads 'lost' before"),
        (Store(tile=TileRef(parameter="z", indices=[]), value=name("n")), "names no tensor"),
        (Store(tile=TileRef(parameter="x", indices=[]), value=name("n")), "needs 1 indices"),
        (ast.Assign(targets=[name("y")], value=name("n")), "assigns to a parameter's name"),
        (ast.Assign(targets=[name("a"), name("b")], value=name("n")), "several targets"),
        (ast.parse("n[0] = n").body[0], "no name to assign to"),
        (ast.Expr(value=Offsets(tile=y_tile(), dim=2)), "no dimension 2"),
        (ast.Expr(value=SourceLoad(parameter="y", indices=[])), "needs 2 indices"),
        (ast.Expr(value=ExternRef(name="f")), "names no extern: 'f'"),
        (ast.Expr(value=Masked(value=name("n"), masks=[], identity="two")), "identity 'two'"),
        (ast.Expr(value=Mask(tile=y_tile(), layout=(0, 0))), "layout"),
        (ast.Expr(value=Mask(tile=y_tile(), layout=(2,))), "layout"),
        (ast.parse("lambda: n").body[0], "no expression of a Program"),
        (ast.Break(), "no statement of a Program"),
        (ast.If(test=name("n"), body=[], orelse=[]), "empty body"),
        (ast.Expr(value=ast.BinOp(left=SHARED, op=ast.Add(), right=SHARED)), "appears twice"),
    ],
)
def test_a_broken_program_is_refused(statement, words):
    with pytest.raises(MalformedProgramError, match=words):
        verify(program(statement))


def test_a_node_without_a_position_is_refused():
    with pytest.raises(MalformedProgramError, match="no position"):
        verify(Program("kernel", (N,), [ast.Expr(value=name("n"))]))


def test_a_helper_ends_in_a_return():
    helper = ast.parse("def combine(a, b):\n    c = a\n    return c\n").body[0]
    placed(helper)
    verify(program(ast.Pass(), helpers={"combine": helper}))

    helper = clone(helper)
    helper.body.pop()
    with pytest.raises(MalformedProgramError, match="does not end in a return"):
        verify(program(ast.Pass(), helpers={"combine": helper}))
