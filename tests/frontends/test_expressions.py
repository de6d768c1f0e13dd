"""A frontend's expressions in launch functions: names that a kernel's parameters have, and guards."""

from __future__ import annotations

import dataclasses

import numpy
import pytest

import ninetoothed
from ninetoothed import Symbol, Tensor, plugins
from ninetoothed.errors import NineToothedError
from ninetoothed.frontends.base import JaggedExpressions, guard_by
from tests.frontends import toy_framework as toy

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def tiled(first, second):
    return first.tile((BLOCK_SIZE,)), second.tile((BLOCK_SIZE,))


def steps_of(x):
    return tuple(step // x.kind.itemsize for step in x.steps)


def of_names(tuple, steps_of):  # noqa: A002
    steps_of = tuple * 2


def of_a_comprehension(step, part):
    part = step * 2


def of_the_launch_function(plans_, int):  # noqa: A002
    int = plans_ * 2


def of_the_last_call(last_, guard_):
    guard_ = last_ * 2


@pytest.mark.parametrize(
    "application", [of_names, of_a_comprehension, of_the_launch_function, of_the_last_call]
)
@pytest.mark.parametrize("with_guard", [False, True])
def test_parameters_hide_no_name_that_a_launch_needs(application, with_guard):
    changes = {
        "namespace": lambda: {"steps_of": steps_of, "current_stream": toy.current_stream},
        "strides": "tuple([step for step in steps_of({x}) if {x}.kind])",
        "pointer": "({x}.address or tuple([0])[0])",
        "guard": guard_by(dict, "{x}.sizes", "{x}.steps", "{x}.kind") if with_guard else None,
    }
    with toy.registered(**changes):
        kernel = ninetoothed.make(tiled, application, (Tensor(1), Tensor(1)))
        for count in (5, 5, 5, 7, 5):
            array = numpy.arange(count, dtype=numpy.float32)
            x, y = toy.array(array), toy.array(array)
            kernel(x, y, BLOCK_SIZE=4)
            assert numpy.array_equal(y.numpy(), 2 * array)
        made = kernel.launch_function(plugins.frontend_named("toy")).__globals__
        plans = next(value for name, value in made.items() if name.startswith("plans_"))
        assert len(plans) == 2, "a launch function that fails goes the slow way"


def test_names_are_changed_where_they_are_taken_and_nowhere_else():
    frontend = toy.ToyPlugin(
        namespace=lambda: {"f": abs, "f_": max, "g": min},
        shape="f({x}.f, g, [f for f in ()])",
        read_only="g({x})",
        stream="g({index})",
        jagged=JaggedExpressions(*["f({x})"] * 6),
    ).frontend
    apart = frontend.apart_from(("f", "len", "x"))
    assert apart.shape == "f__({x}.f, g, [f__ for f__ in ()])"
    assert (apart.read_only, apart.stream) == ("g({x})", "g({index})")
    assert apart.strides == frontend.strides
    assert apart.jagged is not None and apart.jagged.values == "f__({x})"
    assert (apart.names["f__"], apart.names["f_"], apart.names["g"]) == (abs, max, min)
    assert frontend.apart_from(("h",)) is frontend


def test_the_namespace_is_not_asked_for_where_no_name_is_taken():
    def namespace():
        raise AssertionError("a framework would be imported")

    frontend = toy.ToyPlugin(namespace=namespace, shape="sizes_of({x})").frontend
    assert frontend.apart_from(("input", "output", "len")) is frontend


def test_a_guard_compares_by_value_what_cannot_be_hashed():
    @dataclasses.dataclass
    class Thing:
        sizes: list[int]
        kind: str

    guard = guard_by(lambda: {"upper": str.upper}, "{x}.sizes", "upper({x}.kind)")
    alike = guard(Thing([1, 2], "a"), Thing([3], "b"))
    assert alike(Thing([1, 2], "A"), Thing([3], "b"))
    assert not alike(Thing([1, 2], "a"), Thing([4], "b"))
    assert not alike(Thing([1, 2], "b"), Thing([3], "b"))
    with pytest.raises(TypeError):
        alike(Thing([1, 2], "a"))


WRONG = {
    "shape": ("list({x}.sizes)", "`tuple` .*cannot be read.*unhashable"),
    "namespace": (lambda: None, "`namespace` must give a dictionary of names; it gave None"),
    "dtypes": (lambda: ["float32"], r"`dtypes` must give a dictionary .*; it gave \['float32'\]"),
    "device_of": (lambda place: "toy", "`device_of` must give a `Device`; it gave 'toy'"),
}


@pytest.mark.parametrize("field", WRONG)
def test_what_a_frontend_says_wrongly_is_named_at_a_call(field):
    said, message = WRONG[field]
    with toy.registered(**{field: said}):
        kernel = ninetoothed.make(tiled, of_names, (Tensor(1), Tensor(1)))
        x = toy.array(numpy.ones(3, numpy.float32))
        with pytest.raises(NineToothedError, match=message):
            kernel(x, x, BLOCK_SIZE=4)
