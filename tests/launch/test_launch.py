"""Launch functions: exact keys, bounded plans, checks once a key; with a frontend of NumPy arrays."""

from __future__ import annotations

import dataclasses
import linecache
import math
import threading

import numpy as np
import pluggy
import pytest

from ninetoothed import Tensor, plugins
from ninetoothed.errors import ArgumentError, ArrangementError, DeviceError
from ninetoothed.launch import checks, slow_path
from ninetoothed.launch import generate as launch
from ninetoothed.launch import kernel as kernel_module
from ninetoothed.launch.kernel import Kernel
from tests.launch.arrays import (
    Array,
    Nowhere,
    Numbered,
    Other,
    Plugin,
    called,
    floats,
    frontend,
    make,
    one_frontend,
)


@pytest.fixture(autouse=True)
def arrays():
    plugins.register(Plugin)
    yield
    plugins.unregister(Plugin)


@pytest.fixture
def planned(monkeypatch):
    """The calls that were planned, one for each new key."""
    calls = []
    original = Kernel.new_plan

    def new_plan(kernel, definition, frontend, given, values):
        plan = original(kernel, definition, frontend, given, values)
        calls.append(given)
        return plan

    monkeypatch.setattr(Kernel, "new_plan", new_plan)
    return calls


def test_runs(planned):
    called(make())

    assert len(planned) == 1


def test_what_was_planned_is_not_planned_again(planned):
    kernel = make()
    for _ in range(5):
        called(kernel)
    called(kernel, scale=3.0)
    called(kernel, Array(np.arange(10, 15, dtype=np.float32)))

    assert len(planned) == 1


def strided():
    return Array(np.arange(10, dtype=np.float32)[::2])


def unaligned():
    return Array(np.arange(6, dtype=np.float32)[1:])


@pytest.mark.parametrize(
    "changed",
    [
        {"x": floats(6)},
        {"x": floats(dtype=np.float64)},
        {"x": strided()},
        {"x": unaligned()},
        {"scale": 2},
        {"scale": True},
        {"flag": False},
        {"flag": 1},
        {"flag": "yes"},
        {"block": 8},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_whatever_a_plan_may_depend_on_makes_a_new_key(planned, changed):
    kernel = make()
    called(kernel)
    for _ in range(2):
        called(kernel, **changed)
    called(kernel)

    assert len(planned) == 2


def test_an_integer_past_32_bits_is_another_key(planned):
    kernel = make()
    x = floats(dtype=np.int64)
    for scale in (3, -7, 2**31 - 1, -(2**31)):
        called(kernel, x, scale)
    assert len(planned) == 1
    for scale in (2**31, -(2**40)):
        called(kernel, x, scale)
    assert len(planned) == 2


def test_a_known_call_asks_no_plugin_and_makes_no_check(monkeypatch):
    kernel = make()
    called(kernel)

    def forbidden(*arguments, **keywords):
        raise AssertionError("on the way of a known call")

    with monkeypatch.context() as patch:
        for name in ("frontend_of", "find_frontend", "frontend_of_arguments", "backend_for"):
            patch.setattr(plugins, name, forbidden)
        patch.setattr(kernel, "bind", forbidden)
        # pytest's own hooks go through pluggy too, but not within a test.
        patch.setattr(pluggy.HookCaller, "__call__", forbidden)
        called(kernel)


def test_keywords_positions_and_defaults_make_the_same_key(planned):
    tensors = (Tensor(1), Tensor(0), Tensor(0, constexpr=True, value=True), Tensor(1))
    kernel = make(tensors=tensors)
    x, y = floats(), floats()
    kernel(x, 2.0, True, y, 4)
    kernel(x, 2.0, True, y, B=4)
    kernel(B=4, y=y, flag=True, scale=2.0, x=x)
    kernel(x, 2.0, y, 4)
    kernel(x, 2.0, y=y, B=4)

    assert len(planned) == 1
    np.testing.assert_array_equal(y.data, x.data * 2)


def test_a_frontend_that_takes_the_place_of_another_reads_the_tensors():
    """Of the same name, for the same type: no launch function of the first is left."""
    read = []

    def plugin(number):
        def pointer_of(x):
            read.append(number)
            return x.data.ctypes.data

        made = dataclasses.replace(
            frontend("numbered", Numbered),
            namespace=lambda: {"pointer_of": pointer_of},
            pointer="pointer_of({x})",
        )
        return one_frontend(made)

    kernel = make()
    for number in range(3):
        module = plugin(number)
        plugins.register(module)
        for _ in range(3):
            called(kernel, Numbered(np.arange(5, dtype=np.float32)), of=Numbered)
        plugins.unregister(module)
        assert set(read) == {number}
        read.clear()
    with pytest.raises(ArgumentError, match="`x` must be a tensor"):
        called(kernel, Numbered(np.arange(5, dtype=np.float32)), of=Numbered)


def test_a_frontend_that_is_preferred_now_reads_the_tensors():
    modules = [one_frontend(frontend(name, Numbered)) for name in ("first", "second")]
    for module in modules:
        plugins.register(module)
    try:
        kernel = make()
        for name in ("first", "second", "first"):
            plugins.prefer(name)
            called(kernel, Numbered(np.arange(5, dtype=np.float32)), of=Numbered)
            assert [known.name for known in kernel._launchers] == [name]
    finally:
        for module in modules:
            plugins.unregister(module)


@pytest.mark.parametrize(
    "constants",
    [
        (1, True, 1.0),
        (0.0, -0.0),
        (np.float32(0.0), np.float32(-0.0)),
        (1j * 0.0, -0.0 - 0j),
        ((1,), (True,), (1.0,)),
        ((1, (0.0,)), (1, (-0.0,))),
        (frozenset({1}), frozenset({True})),
    ],
    ids=["numbers", "zeros", "numpy", "complex", "tuples", "nested", "sets"],
)
def test_constants_that_are_equal_and_differ_have_plans_of_their_own(planned, constants):
    assert len(set(constants)) == 1
    kernel = make()
    for _ in range(2):
        for constant in constants:
            called(kernel, scale=1.0, flag=constant)

    assert len(planned) == len(constants)


def test_a_zero_keeps_the_sign_that_a_call_gave_it():
    def plus(x, constant, y):
        y = x + constant  # noqa: F841

    kernel = make(plus, (Tensor(1), Tensor(0, constexpr=True), Tensor(1)))
    for zero in (0.0, -0.0, 0.0, -0.0):
        x, y = Array(np.full(5, -0.0, np.float32)), floats()
        kernel(x, zero, y, B=4)
        assert np.signbit(y.data).all() == (math.copysign(1.0, zero) < 0)


def test_plans_are_bounded(monkeypatch, planned):
    monkeypatch.setattr(slow_path, "MOST_PLANS", 3)
    kernel = make()
    for count in range(1, 6):
        called(kernel, floats(count))
    assert len(planned) == 5
    called(kernel, floats(5))
    assert len(planned) == 5
    called(kernel, floats(1))
    assert len(planned) == 6


@pytest.fixture
def family(monkeypatch, planned):
    """What calls of other sizes were run with, where none has more than 100 elements."""
    ran = []
    original = Kernel.new_plan

    def run_of(numbers):
        (shape, _), *_ = numbers
        return (lambda stream, x, scale, y: ran.append(shape)) if shape[0] <= 100 else None

    def new_plan(*arguments):
        plan, device = original(*arguments)
        return dataclasses.replace(plan, family=run_of), device

    monkeypatch.setattr(Kernel, "new_plan", new_plan)
    return ran


def test_sizes_of_a_known_family_are_not_planned(planned, family):
    kernel = make()
    for size in (5, 6, 7, 6):
        x = floats(size)
        kernel(x, 2.0, True, floats(size), B=4)

    assert family == [(6,), (7,), (6,)]
    kernel(floats(101), 2.0, True, floats(101), B=4)
    kernel(floats(6), 2.0, False, floats(6), B=4)
    kernel(floats(6, np.float64), 2.0, True, floats(6, np.float64), B=4)
    assert len(planned) == 4 and len(family) == 3


def test_sizes_of_a_known_family_are_checked(family):
    kernel = make()
    kernel(floats(5), 2.0, True, floats(5), B=4)
    same = Array(np.broadcast_to(np.zeros(1, np.float32), (6,)))
    with pytest.raises(ArgumentError, match="one address|read-only"):
        kernel(floats(6), 2.0, True, same, B=4)

    assert not family


def test_a_call_that_fails_is_not_remembered(planned):
    kernel = make()
    for _ in range(2):
        with pytest.raises(ArrangementError, match="outermost"):
            kernel(floats(5), 2.0, True, floats(9), B=4)
    assert planned == []
    called(kernel)


def test_an_error_is_told_alone():
    kernel = make()
    for arguments in ((floats(5), 2.0, True, floats(9)), (5, 2.0, True, floats())):
        with pytest.raises((ArrangementError, ArgumentError)) as raised:
            kernel(*arguments, B=4)
        assert raised.value.__context__ is None or raised.value.__suppress_context__


def test_a_scalar_may_be_a_tensor_of_no_dimensions(planned):
    class Held:
        ndim = 0

        def item(self):
            return 3.0

    kernel, y = make(), floats()
    kernel(floats(), Held(), True, y, B=4)
    np.testing.assert_array_equal(y.data, floats().data * 3)
    kernel(floats(), np.float32(4), True, y, B=4)
    np.testing.assert_array_equal(y.data, floats().data * 4)
    assert len(planned) == 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"scale": "2"}, "`scale` is passed by value.*'2'"),
        ({"scale": None}, "`scale` is passed by value.*None"),
        ({"flag": [1]}, "`flag` is a compile-time constant.*hashable, got \\[1\\]. Give \\(1,\\)"),
        ({"block": None}, "`B` is an integer constant"),
        ({"block": Array(4)}, "`B` is a compile-time constant, got a tensor of arrays.*`.item"),
        ({"flag": Array(True)}, "`flag` is a compile-time constant, got a tensor of arrays"),
        ({"x": Array(np.zeros((5, 1), np.float32))}, "`x` has 2 dimensions.*declared with 1"),
        ({"x": Array(np.zeros(5, np.complex64))}, "`x`.*complex64"),
        ({"x": Array(np.zeros(5, np.float32), "cuda")}, "`x` is on cuda:0 and `y` on cpu"),
        ({"x": Array(np.zeros(5, np.float32), "moon")}, "serves devices of kind 'moon'"),
    ],
    # An object's own text has its address, and the workers must agree on the names.
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_arguments_that_do_not_fit_are_errors_known_kernel_or_not(changed, words):
    arguments = {"x": floats(), "scale": 2.0, "flag": True, "block": 4} | changed
    kernel = make()
    for _ in range(2):
        with pytest.raises((ArgumentError, DeviceError), match=words):
            kernel(
                arguments["x"],
                arguments["scale"],
                arguments["flag"],
                floats(),
                B=arguments["block"],
            )
        called(kernel)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("B", {"block": np.int64(4)}),
        ("flag", {"flag": np.bool_(True)}),
        ("flag", {"flag": np.float32(2.5)}),
        ("flag", {"flag": np.int64(3)}),
    ],
    ids=str,
)
def test_a_constant_of_numpys_becomes_pythons(monkeypatch, name, given):
    seen = []
    original = checks.checked_call

    def checked_call(*arguments):
        call = original(*arguments)
        seen.append(call.constants[name])
        return call

    monkeypatch.setattr(kernel_module, "checked_call", checked_call)
    called(make(), **given)

    (constant,) = given.values()
    assert [(type(found), found) for found in seen] == [(type(constant.item()), constant)]


def test_only_an_empty_tensor_may_have_no_memory():
    """A freed one is like the one before in all but its address."""
    made = dataclasses.replace(
        frontend("nowhere", Nowhere),
        pointer="({x}.place == 'cpu' and {x}.data.ctypes.data)",
        device="'cpu' if {x} else None",
    )
    module = one_frontend(made)
    plugins.register(module)
    try:
        kernel, empty = make(), Nowhere(np.zeros(0, np.float32), "freed")
        for _ in range(3):
            called(kernel, Nowhere(np.arange(5, dtype=np.float32)), of=Nowhere)
            freed = Nowhere(np.zeros(5, np.float32), "freed")
            with pytest.raises(ArgumentError, match=r"`x` of shape \(5,\) has no memory"):
                called(kernel, freed, of=Nowhere)
            kernel(empty, 2.0, True, empty, B=4)
    finally:
        plugins.unregister(module)


def test_two_frameworks_in_one_call_are_an_error_that_names_both():
    kernel = make()
    for _ in range(2):
        with pytest.raises(ArgumentError, match="`x` is a tensor of arrays and `y` one of others"):
            kernel(floats(), 2.0, True, Other(), B=4)
        called(kernel)


def double(key, plan, run, stream, error, extra, unknown, index, key_pointer, missing_):
    missing_ = key * 2 + plan + run + stream + error + extra + unknown + index  # noqa: F841
    key_pointer = missing_  # noqa: F841


def test_parameters_may_be_called_as_the_launch_functions_own_variables():
    kernel = make(double, tuple(Tensor(1) for _ in range(10)), size=4)
    arrays = [floats() for _ in range(10)]
    for _ in range(2):
        kernel(*arrays)
        np.testing.assert_array_equal(arrays[-1].data, floats().data * 9)


def test_the_text_is_readable_and_is_what_a_traceback_shows():
    kernel = make()
    called(kernel)
    text = launch.source_of(kernel, plugins.frontend_named("arrays"))

    assert "def launch(x=missing_, scale=missing_, flag=missing_, y=missing_, B=missing_" in text
    assert "x.data.ctypes.data" in text
    assert linecache.getline("<launch of scaled for arrays>", 1).startswith("def launch(")


def test_many_threads_plan_a_key_and_all_get_right_results(planned):
    kernel, errors, start = make(), [], threading.Barrier(8)

    def work(number):
        try:
            start.wait()
            for count in range(1, 12):
                called(kernel, floats(count), scale=float(number))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_two_frontends_of_one_kernel_alternate():
    class Third(Array):
        """Read as an Array is."""

    kernel = make()
    for _ in range(3):
        called(kernel)
        x, y = Third(np.arange(5, dtype=np.float32)), Third(np.zeros(5, np.float32))
        kernel(x, 2.0, True, y, B=4)
        np.testing.assert_array_equal(y.data, x.data * 2)
