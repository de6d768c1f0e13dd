"""Mistakes that once raised errors of Python's own, without a place: each is ours now, or is right."""

import pytest
import torch

import ninetoothed
import ninetoothed.debugging
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor, make
from ninetoothed.errors import ApplicationError, ArgumentError, NineToothedError


def _tiled(*tensors):
    return tuple(t.tile((64,)) if t.ndim else t for t in tensors)


def _kernel(application, is_constant=False):
    return make(_tiled, application, (Tensor(1), Tensor(1), Tensor(0, constexpr=is_constant)))


def _branch(x, o, n):
    if n > 1:
        y = x + 1
    o = y  # noqa: F841


def _known_in_a_branch(x, o, n):
    if n > 1:
        y = 3
    o = x + y  # noqa: F841


def _loop(x, o, n):
    for _ in range(n):
        y = x + 1
    o = y  # noqa: F841


def _while(x, o, n):
    i = 0
    while i < n:
        y = x + 1
        i += 1
    o = y  # noqa: F841


def _branch_on_a_size(x, o, n):
    if x.source.shape[0] > 3:
        y = x
    o = y  # noqa: F841


@pytest.mark.parametrize(
    "application", [_branch_on_a_size, _branch, _known_in_a_branch, _loop, _while]
)
def test_a_variable_that_only_one_way_assigns_is_refused_where_it_is_read(application):
    with pytest.raises(ApplicationError, match=r"(?s)'y' is read before it is assigned.*o = .*y"):
        _kernel(application)


def test_a_constant_decides_whether_a_variable_is_assigned():
    kernel = _kernel(_branch, is_constant=True)
    x, out = torch.rand(10), torch.full((10,), float("nan"))

    kernel(x, out, 2)
    torch.testing.assert_close(out, x + 1)
    with pytest.raises(NineToothedError, match=r"(?s)'y'.*File .*o = y"):
        kernel(x, out, 0)


def test_a_variable_of_a_branch_may_be_read_there():
    def application(x, o, n):
        o = x  # noqa: F841
        if n > 1:
            y = x + 1
            o = y * 2  # noqa: F841

    kernel = _kernel(application)
    x, out = torch.rand(10), torch.full((10,), float("nan"))

    kernel(x, out, 2)
    torch.testing.assert_close(out, (x + 1) * 2)
    kernel(x, out, 1)
    torch.testing.assert_close(out, x)
    assert kernel.compile(x, out, 2, target=("cuda", 90)).asm["ptx"]


#: What stands where another kind of thing is wanted.
_WRONG = (
    None,
    0,
    -3,
    2**31,
    2**70,
    1.5,
    float("nan"),
    "a",
    "",
    b"x",
    (),
    (1, 2),
    [1],
    {"a": 1},
    object(),
    int,
    Ellipsis,
    slice("a"),
    slice(None, None, 0),
    ((1,),),
    (None,),
    torch.tensor(3),
    torch.zeros(2),
    torch.float16,
    Symbol("N", constexpr=True),
    Tensor(1),
)


def _copy(x, o):
    o = x  # noqa: F841


def _vectors(x, o):
    return x.tile((64,)), o.tile((64,))


_KERNEL = make(_vectors, _copy, (Tensor(1), Tensor(1)))
_CONSTANT = make(
    lambda x, o, c: (*_vectors(x, o), c),
    lambda x, o, c: None,
    (Tensor(1), Tensor(1), Tensor(0, constexpr=True)),
)


def _assign(attribute):
    def assign(value):
        setattr(Tensor(2).tile((2, 2)), attribute, value)

    return assign


_PLACES = {
    **{
        f"Tensor.{name}": lambda value, name=name: getattr(Tensor(2), name)(value)
        for name in ("tile", "expand", "squeeze", "unsqueeze", "permute", "flatten", "pad", "subs")
    },
    "Tensor[...]": lambda value: Tensor(2)[value],
    "Tensor[..., ...]": lambda value: Tensor(2)[value, value],
    "Tensor.flatten end": lambda value: Tensor(2).flatten(0, value),
    **{
        f"Tensor.tile {name}": lambda value, name=name: Tensor(2).tile((2, 2), **{name: value})
        for name in ("strides", "dilation", "floor_mode")
    },
    **{
        f"Tensor {name}": lambda value, name=name: Tensor(**{"ndim": 1, name: value})
        for name in ("ndim", "shape", "jagged_dim", "other", "shape_options", "constexpr", "value")
    },
    "Tensor.shape =": _assign("shape"),
    **{
        f"Symbol {name}": lambda value, name=name: Symbol(**{"expr": "x", name: value})
        for name in ("expr", "constexpr", "meta", "lower_bound", "upper_bound", "power_of_two")
    },
    "block_size": ninetoothed.block_size,
    "eval": ninetoothed.eval,
    "eval subs": lambda value: ninetoothed.eval(Tensor(shape=(3,)), value),
    "eval shape": lambda value: (lambda t: ninetoothed.subs(t, {t: {"shape": value}}))(Tensor(1)),
    "eval tensor": lambda value: (lambda t: ninetoothed.subs(t, {t: value}))(Tensor(1)),
    **{
        f"make {name}": lambda value, name=name: make(
            **{
                "arrangement": _vectors,
                "application": _copy,
                "tensors": (Tensor(1), Tensor(1)),
                name: value,
            }
        )
        for name in (
            "arrangement",
            "application",
            "caller",
            "kernel_name",
            "num_warps",
            "num_stages",
            "max_num_configs",
        )
    },
    "make of what the arrangement returns": lambda value: make(
        lambda x, o: (x.tile((64,)), value), _copy, (Tensor(1), Tensor(1))
    ),
    "jit": lambda value: ninetoothed.jit(value),
    "tune": lambda value: ninetoothed.tune(value, value),
    "a call": lambda value: _KERNEL(value, torch.zeros(3)),
    "a call's output": lambda value: _KERNEL(torch.zeros(3), value),
    "a call's constant": lambda value: _CONSTANT(torch.zeros(3), torch.zeros(3), value),
    "compile target": lambda value: _KERNEL.compile(torch.zeros(3), torch.zeros(3), target=value),
    "simulate_arrangement": lambda value: ninetoothed.debugging.simulate_arrangement(
        _vectors, value
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", _PLACES)
def test_whatever_stands_in_a_place_is_right_or_refused_by_the_package(place):
    for value in _WRONG:
        # What the arrangement, or an object asked whether it is true, says of it is their own error.
        if place == "make arrangement" and value is int:
            continue
        if place == "simulate_arrangement" and isinstance(value, tuple):
            continue
        try:
            _PLACES[place](value)
        except NineToothedError as error:
            assert len(error.message) > 15, (place, value)
        except Exception as error:
            if "Boolean value of Tensor" in str(error):
                continue
            raise AssertionError(
                f"{place} of {value!r}: {type(error).__name__}: {error}"
            ) from error


def _wrong_calls():
    """Applications, each with a call of the language that cannot be."""

    def an_unknown_keyword(x, o):
        o = ntl.exp(x, axis=0)  # noqa: F841

    def a_tuple_to_split(x, o):
        o = ntl.split((x, x))  # noqa: F841

    def a_number_to_flip(x, o):
        o = ntl.flip(2.5)  # noqa: F841

    def a_tile_as_function(x, o):
        o = ntl.map_elementwise(x, x)  # noqa: F841

    def no_function_to_combine_with(x, o):
        o = ntl.associative_scan(x)  # noqa: F841

    def a_number_to_combine_with(x, o):
        o = ntl.reduce(x, 0, 3)  # noqa: F841

    def an_element_type_to_convert(x, o):
        o = ntl.libdevice.sqrt(ntl.float16)  # noqa: F841

    def no_arguments(x, o):
        o = ntl.histogram()  # noqa: F841

    return [each for each in locals().values()]


@pytest.mark.parametrize("application", _wrong_calls(), ids=lambda each: each.__name__)
def test_a_call_of_the_language_with_wrong_arguments_is_located(application):
    x = torch.rand(100)

    with pytest.raises(NineToothedError, match=r"(?s)File .*test_raw_errors.py.*o = ntl\."):
        make(_vectors, application, (Tensor(1), Tensor(1)))(x, torch.empty(100))


def _twice(x, o):
    o = x * 2  # noqa: F841


def test_a_symbol_that_a_slice_made_vanish_from_the_shape_is_still_asked_for():
    """Of ``x[S : S + 4]`` the size is 4, and where it begins nothing but S says."""
    start = Symbol("S", constexpr=True)

    def arrangement(x, o):
        return x[start : start + 4].tile((2,)), o.tile((2,))

    kernel = make(arrangement, _twice, (Tensor(1), Tensor(1)))
    x, out = torch.rand(9), torch.full((4,), float("nan"))
    kernel(x, out, S=3)
    torch.testing.assert_close(out, x[3:7] * 2)
    with pytest.raises(NineToothedError, match="missing: S"):
        kernel(x, out)

    sliced = Tensor(1, name="x")[start : start + 4]
    with pytest.raises(NineToothedError, match="`S` must be known"):
        sliced.eval({sliced.source: {"shape": (9,)}})
    assert sliced.eval({sliced.source: {"shape": (9,)}, start: 3}).tolist() == [3, 4, 5, 6]


def test_a_size_that_a_slice_made_vanish_is_still_known():
    """Of ``x[size - 4 :]`` the size is 4 at most; of a tile that one is chosen of, the number of tiles is gone."""
    size = Symbol("S", constexpr=True)

    def last(x, o):
        return x[x.shape[0] - 4 :].tile((2,)), o.tile((2,))

    def first(x, o):
        return x.tile((size,))[0:1], o.tile((size,))

    x, out = torch.rand(9), torch.full((4,), float("nan"))
    make(last, _twice, (Tensor(1), Tensor(1)))(x, out)
    torch.testing.assert_close(out, x[-4:] * 2)
    make(first, _twice, (Tensor(1), Tensor(1)))(x, out, S=4)
    torch.testing.assert_close(out, x[:4] * 2)


def test_no_program_runs_of_an_empty_grid_however_long_its_other_dimensions_are():
    def arrangement(x, o):
        return x.tile((1, 4)), o.tile((1, 4))

    make(arrangement, _twice, (Tensor(2), Tensor(2)))(torch.empty(2**62, 0), torch.empty(2**62, 0))


@pytest.mark.filterwarnings("error")
def test_a_float_that_float32_does_not_hold_is_infinite_without_a_word_of_numpys():
    out = torch.zeros(3)
    scaled = make(_tiled, _scaled, (Tensor(1), Tensor(1), Tensor(0)))
    scaled(torch.ones(3), out, 1e300)
    assert out.isinf().all()


def _scaled(x, o, factor):
    o = x * factor  # noqa: F841


def _by_a_step_of_its_round(x, o, n):
    y = x
    for j in range(2):
        for _ in range(0, 4, n + j - 1):
            y += 1
    o = y  # noqa: F841


def test_a_step_that_only_a_round_makes_0_is_refused_where_the_reference_comes_to_it():
    with pytest.raises(ArgumentError, match=r"(?s)The step of this range is 0.*range\(0, 4, n"):
        _kernel(_by_a_step_of_its_round)(torch.ones(4), torch.zeros(4), 0)
