"""Pairing with the application's parameters, the rule of arrangement, the grid."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ArrangementError
from ninetoothed.symbols.expr import as_symbol
from ninetoothed.tensors import grids
from ninetoothed.tensors.access import positions
from ninetoothed.tensors.arrange import NO_VALUE, arrange, pair, symbols_of

B = Symbol("B", constexpr=True)


def application(x, y):
    y = x


def tiles(x, y, size=4):
    return x.tile((size,)), y.tile((size,))


def test_the_arrangement_is_called_once_with_everything_it_is_given():
    calls = []

    def arrangement(*given):
        calls.append(given)
        return tiles(*given[:2])

    tensors = (Tensor(1), Tensor(1), "a string", 3)
    arrange(arrangement, application, tensors)

    assert calls == [tensors]


def test_parameters_are_paired_in_order():
    x, y = Tensor(1), Tensor(1)
    found = arrange(tiles, application, (x, y))

    assert [p.name for p in found.parameters] == ["x", "y"]
    assert [p.kind for p in found.parameters] == ["tensor", "tensor"]
    assert [p.source for p in found.parameters] == [x, y]
    assert found.parameters[0].tile_shape == (4,)
    assert found.parameters[0].middle_levels == ()


def test_one_tensor_may_come_back_without_a_tuple():
    found = arrange(lambda x: x.tile((4,)), lambda x: None, (Tensor(1),))

    assert [p.name for p in found.parameters] == ["x"]


def test_a_list_may_come_back():
    assert (
        len(arrange(lambda *t: list(tiles(*t)), application, (Tensor(1), Tensor(1))).parameters)
        == 2
    )


@pytest.mark.parametrize(
    ("value", "kind", "held"),
    [
        (Tensor(0), "scalar", NO_VALUE),
        (Tensor(0, dtype=float), "scalar", NO_VALUE),
        (Tensor(0, constexpr=True), "constexpr", NO_VALUE),
        (Tensor(0, constexpr=True, value=False), "constexpr", False),
        (Tensor(0, constexpr=True, value=None), "constexpr", None),
        (True, "constant", True),
        ("relu", "constant", "relu"),
        (None, "constant", None),
        (B, "constant", B),
    ],
    ids=str,
)
def test_what_is_no_tensor_has_its_own_kind(value, kind, held):
    parameter = arrange(
        lambda x, value: (x.tile((4,)), value), lambda x, p: None, (Tensor(1), value)
    ).parameters[1]

    assert parameter.kind == kind
    assert parameter.value is held
    assert parameter.levels == ()


def test_the_applications_defaults_fill_in():
    def application(x, flag=True):
        pass

    parameters = arrange(lambda x: x.tile((4,)), application, (Tensor(1),)).parameters

    assert (parameters[1].kind, parameters[1].value) == ("constant", True)


@pytest.mark.parametrize("count", [1, 3])
def test_another_number_of_tensors_than_parameters_is_an_error(count):
    with pytest.raises(ArrangementError) as caught:
        arrange(lambda *t: tuple(e.tile((4,)) for e in t), application, [Tensor(1)] * count)

    assert f"returned {'1 value,' if count == 1 else '3 values,'}" in caught.value.message
    assert "`application` has 2 parameters (x, y)" in caught.value.message
    assert caught.value.location.line == application.__code__.co_firstlineno


def test_an_arrangement_without_a_tensor_is_an_error():
    with pytest.raises(ArrangementError, match="no arranged tensor"):
        arrange(lambda x: x, lambda x: None, (Tensor(0),))


def test_the_grid_is_the_outermost_shape():
    found = arrange(tiles, application, (Tensor(1), Tensor(shape=(12,))))

    assert found.grid == (3,)
    assert found.accesses["x"].programs is found.accesses["y"].programs is found.programs


def test_scalars_are_exempt():
    found = arrange(
        lambda x, a, b: (x.tile((4,)), a, b),
        lambda x, a, b: None,
        (Tensor(2).flatten(), Tensor(0), Tensor(0, constexpr=True)),
    )

    assert len(found.grid) == 1


@pytest.mark.parametrize(
    "arrangement",
    [
        lambda x, y: (x.tile((-1,)), y.tile((-1,)).unsqueeze(0).expand((2, -1)).squeeze(1)),
        lambda x, y: (x.tile((-1,)), x.tile((-1,)).expand((3,))),
        lambda x, y: (x.tile((4,)).unsqueeze(0).expand((2, -1)), y.tile((-1,)).expand((3,))),
    ],
)
def test_a_mismatch_that_can_be_proved_names_every_parameter_with_its_shape(arrangement):
    with pytest.raises(ArrangementError) as caught:
        arrange(arrangement, application, (Tensor(1), Tensor(1))).among({"x", "y"})

    lines = caught.value.message.splitlines()
    assert "outermost shapes" in lines[0]
    assert [line.split(":")[0].strip() for line in lines[1:3]] == ["x", "y"]
    assert all("(" in line for line in lines[1:3])


def test_a_mismatch_of_tensors_that_are_not_touched_is_none():
    found = arrange(
        lambda x, y, z: (x.tile((-1,)), x.tile((-1,)).expand((3,)), z.tile((-1,))),
        lambda x, y, z: None,
        (Tensor(1), Tensor(1), Tensor(1)),
    ).among({"y"})

    assert found.grid == (3,)
    sizes = {p.source.shape[0]: 7 for p in found.parameters}
    assert found.verify(known(sizes), {"y"}) == (3,)


A, C = Tensor(2, name="a").shape


@pytest.mark.parametrize(
    ("shape", "grid", "expected"),
    [
        ((A, C), (A, C), (0, 1)),
        ((A, C, 1), (A, C), (0, 1, None)),
        ((A, 1, C), (1, A, C), (1, None, 2)),
        ((1, 1), (1,), (None, None)),
        # Which dimension is 1 shows in the call: here the one that is not the grid's.
        ((C, A, C), (A, C), (None, 0, 1)),
        ((A, C), (A, 1), (0, None)),
        # It could be either.
        ((C, C + 1), (A,), None),
    ],
)
def test_places_in_the_grid(shape, grid, expected):
    assert grids.places(shape, grid) == expected


@pytest.mark.parametrize(
    ("shape", "grid", "placed", "expected"),
    [
        ((3, 4), (3, 4), (0, 1), True),
        ((3, 4), (3, 5), (0, 1), False),
        ((3, 4, 1), (3, 4), (0, 1, None), True),
        ((3, 4, 2), (3, 4), (0, 1, None), False),
        ((3,), (3, 2), (0,), False),
        ((3, 1), (1, 3), None, True),
        ((3, 2), (2, 3), None, False),
        ((), (1, 1), (), True),
    ],
)
def test_known_shapes_agree_or_not(shape, grid, placed, expected):
    assert grids.agrees(shape, grid, placed) is expected


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 4), max_size=3), st.randoms(use_true_random=False))
def test_a_position_is_that_of_the_same_number(sizes, random):
    """Whatever dimensions of size 1 stand between the others."""

    def spread():
        shape = list(sizes)
        for _ in range(random.randint(0, 2)):
            shape.insert(random.randint(0, len(shape)), 1)
        return shape

    shape, grid = spread(), spread()
    # As symbols: which are 1 is not known.
    names = Tensor(len(shape)).shape, Tensor(len(grid)).shape
    values = dict(zip((*names[0], *names[1]), (*shape, *grid)))
    programs = positions("program", names[1])
    for placed in {grids.places(*names), None}:
        if not grids.agrees(shape, grid, placed):
            continue
        found = grids.positions_in(names[0], names[1], programs, placed)
        for number, place in enumerate(np.ndindex(*grid)):
            known_values = {**values, **dict(zip(programs, place))}
            where = tuple(int(as_symbol(e).evaluate(known_values)) for e in found)
            assert where == tuple(np.unravel_index(number, shape)) if shape else where == ()


def known(values):
    return lambda expression: int(as_symbol(expression).evaluate(values))


def test_a_mismatch_that_shows_at_the_call_names_every_parameter_with_its_shape():
    x, y = Tensor(1), Tensor(1)
    found = arrange(tiles, application, (x, y))

    assert found.verify(known({x.shape[0]: 12, y.shape[0]: 10})) == (3,)
    with pytest.raises(ArrangementError, match=r"(?s)outermost.*x: \(3,\).*y: \(4,\)"):
        found.verify(known({x.shape[0]: 12, y.shape[0]: 13}))


def test_meta_operations_are_checked_at_the_call_and_name_the_parameter():
    x, y = Tensor(2), Tensor(1)
    found = arrange(lambda x, y: (x.squeeze(1).tile((4,)), y.tile((4,))), application, (x, y))
    sizes = {x.shape[0]: 8, x.shape[1]: 2, y.shape[0]: 8}

    with pytest.raises(ArrangementError, match=r"`squeeze` on `x` of shape \(8, 2\) got") as caught:
        found.verify(known(sizes))
    assert caught.value.location.file == __file__
    assert found.verify(known({**sizes, x.shape[1]: 1})) == (2,)


def test_empty_tensors_have_an_empty_grid():
    x, y = Tensor(1), Tensor(1)
    found = arrange(tiles, application, (x, y))

    assert found.verify(known({x.shape[0]: 0, y.shape[0]: 0})) == (0,)


def test_levels_that_do_not_belong_together_name_the_parameter():
    def arrangement(x, y):
        x, tiled = tiles(x, y)
        tiled.dtype = y.tile((4,)).dtype
        return x, tiled

    with pytest.raises(ArrangementError, match="parameter `y`: .*do not belong together"):
        arrange(arrangement, application, (Tensor(1), Tensor(1)))


def test_a_partial_is_an_arrangement_too():
    found = arrange(functools.partial(tiles, size=2), application, (Tensor(1), Tensor(1)))

    assert found.parameters[1].tile_shape == (2,)


def test_all_symbols_are_found_but_the_compilers_own():
    x, y = Tensor(1, name="x"), Tensor(1, name="y")
    names = [
        str(s) for s in symbols_of(arrange(functools.partial(tiles, size=B), application, (x, y)))
    ]

    assert sorted(names) == ["B", "x_size_0", "y_size_0"]


def test_pairs_tensors_that_are_arranged_already():
    found = pair(tiles(Tensor(shape=(8,)), Tensor(1)), application)

    assert found.grid == (2,)


def test_an_arrangement_that_takes_another_number_of_tensors():
    def arrangement(x):
        return x.tile((4,))

    with pytest.raises(
        ArrangementError, match=r"takes \(x\), but `make` was given 2 tensors"
    ) as raised:
        arrange(arrangement, application, (Tensor(1), Tensor(1)))
    assert raised.value.location.file == __file__
