"""Wrong arguments, a row each: what is called with them, and what the error says of it."""

import functools
import math
import warnings

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.debugging
from ninetoothed import Symbol, Tensor, block_size, make
from ninetoothed.errors import ArgumentError, ArrangementError, NineToothedError

N = Symbol("N", constexpr=True)

#: Python refuses to print it.
HUGE = 10**5000


def _arrangement(x, o):
    return x.tile((64,)), o.tile((64,))


def _copy(x, o):
    o = x  # noqa: F841


def _scaled(x, o, factor):
    o = x * factor  # noqa: F841


def _made(**changed):
    parts = {"arrangement": _arrangement, "application": _copy, "tensors": (Tensor(1), Tensor(1))}
    return make(**{**parts, **changed})


def _with_third(third, application=_scaled):
    return make(
        lambda x, o, f: (*_arrangement(x, o), f), application, (Tensor(1), Tensor(1), third)
    )


def _within_itself():
    level = Tensor(1).tile((2,))
    level.dtype.dtype = level


KERNEL = _made()
SIZED = make(lambda x, o: (x.tile((N,)), o.tile((N,))), _copy, (Tensor(1), Tensor(1)))
SCALED = _with_third(Tensor(0))
CONSTANT = _with_third(Tensor(0, constexpr=True))
PICKED = make(lambda x, o: (x[N].tile((4,)), o.tile((4,))), _copy, (Tensor(2), Tensor(1)))
CUT = make(lambda x, o: (x[N:].tile((4,)), o.tile((4,))), _copy, (Tensor(1), Tensor(1)))
LAST = make(
    lambda x, o: (x[x.shape[0] - 9 :].tile((4,)), o.tile((4,))), _copy, (Tensor(1), Tensor(1))
)
FIXED = make(_arrangement, _copy, (Tensor(shape=(8,)), Tensor(1)))


def vector(*shape):
    return torch.zeros(shape or (8,))


#: What is called, and key words of its error.
ROWS = {
    # Tensors.
    "no ndim": (lambda: Tensor(), "needs `ndim` or `shape`"),
    "a negative ndim": (lambda: Tensor(-1), "number of dimensions.*-1"),
    "half an ndim": (lambda: Tensor(1.5), "number of dimensions.*1.5"),
    "too many dimensions": (lambda: Tensor(65), "at most 64"),
    "dimensions beyond all": (lambda: Tensor(HUGE), "number of dimensions.*16610 bits"),
    "a declared size beyond all": (lambda: Tensor(shape=(HUGE,)), "shape has ints.*16610 bits"),
    "ndim and shape": (lambda: Tensor(1, shape=(2, 3)), "must agree"),
    "a negative size": (lambda: Tensor(shape=(-1,)), "ints, Symbols or None.*-1"),
    "a text as size": (lambda: Tensor(shape=("a",)), "ints, Symbols or None.*'a'"),
    "a number's shape": (lambda: Tensor(shape=1.5), "ints, Symbols or None.*1.5"),
    "a jagged dimension beyond": (lambda: Tensor(2, jagged_dim=2), "jagged_dim.*from -2 to 1"),
    "a jagged dimension of a scalar": (
        lambda: Tensor(0, jagged_dim=0),
        "0 dimensions got dimension 0; it needs a tensor that has dimensions",
    ),
    "a squeezed scalar": (
        lambda: Tensor(0).squeeze(0),
        "dimension 0; it needs a tensor that has dimensions",
    ),
    "a text as other": (lambda: Tensor(1, other="0"), "`other`.*'0'"),
    "a constant of dimensions": (lambda: Tensor(1, constexpr=True), "for scalars"),
    "a value of no constant": (lambda: Tensor(0, value=3), "needs constexpr=True"),
    "options for too few": (lambda: Tensor(2, shape_options=({},)), "1 entries for 2"),
    "options that are none": (lambda: Tensor(1, shape_options=3), "shape_options=3"),
    "an unknown option": (lambda: Tensor(1, shape_options={"odd": 1}), "shape_options.*odd"),
    "a length": (lambda: len(Tensor(1)), "use `.shape"),
    "a loop over a tensor": (lambda: list(Tensor(1)), "cannot be iterated"),
    "a shape of another rank": (lambda: setattr(Tensor(2), "shape", (1,)), "keeps its 2 dim"),
    # Symbols.
    "no expression": (lambda: Symbol("a +"), "is not a Python expression"),
    "a call": (lambda: Symbol("f(a)"), "cannot be part of a Symbol"),
    "a half": (lambda: Symbol(0.5), "a name, an expression or an int.*0.5"),
    "an expression with bounds": (lambda: Symbol("a + 1", lower_bound=2), "only a plain name"),
    "meta and constexpr": (lambda: Symbol("a", meta=True, constexpr=True), "not both"),
    "bounds below every size": (lambda: block_size(-1, 0), "numbers of at least 1.*-1 to 0"),
    "bounds between powers of two": (
        lambda: block_size(33, 63),
        "powers of two.*33 and 63.*power_of",
    ),
    "a bound beyond all": (lambda: block_size(HUGE, HUGE), "a bound.*an int of 16610 bits"),
    "bounds crossed": (lambda: block_size(64, 32), "has no value.*64 to 32"),
    "a text as bound": (lambda: block_size("64"), "a bound.*is an int.*'64'"),
    "division": (lambda: N / 2, "may be no integer.*rounds down"),
    "a number divided": (lambda: 2 / N, "may be no integer"),
    "a power of no integer": (lambda: N**0.5, "an exponent from 0 to 64"),
    "a power below 0": (lambda: N**-1, "an exponent from 0 to 64"),
    "a power of a symbol": (lambda: 2**N, "has no exponent that is known"),
    "a number of Python's": (lambda: int(N), "`N` is a symbol, whose number is known when"),
    "a float of Python's": (lambda: float(N), "`N` is a symbol, whose number is known when"),
    "a range": (lambda: range(N), "`N` is a symbol, whose number is known when"),
    "a root": (lambda: math.sqrt(N), "`N` is a symbol, whose number is known when"),
    "a symbol that picks": (lambda: [1, 2][N], "`N` is a symbol, whose number is known when"),
    "a symbol rounded to digits": (lambda: round(N, 1), "whose number is known when"),
    "a product with a float": (lambda: N * 1.5, "meets integers and symbols, but got 1.5"),
    "a sum with nothing": (lambda: N + None, "meets integers and symbols, but got None"),
    "a repeated list": (lambda: [0] * N, r"meets integers and symbols, but got \[0\]"),
    "a product of matrices": (lambda: N @ N, "no `@`"),
    "a decision": (lambda: bool(N > 1), "only known when the kernel is called"),
    "a loop over a symbol": (lambda: list(N), "cannot be iterated"),
    # Meta-operations.
    "a tile of too many": (lambda: Tensor(1).tile((2, 2)), "one entry for each of the 1"),
    "a tile of nothing": (lambda: Tensor(1).tile((0,)), "at least 1"),
    "a stride beyond all": (lambda: Tensor(1).tile((2,), strides=(2**70,)), "strides.*62 bits"),
    "a padding beyond all": (
        lambda: Tensor(1).pad(((2**63, 0),)),
        "9223372036854775808 in dimension 0.*62 bits",
    ),
    "a tensor as inner level": (
        lambda: setattr(Tensor(1).tile((2,)), "dtype", Tensor(1)),
        "the inner level of .* cannot be .*rearrange the level that is there",
    ),
    "a level within itself": (_within_itself, "the inner level of .* cannot be"),
    "a dilation beyond all": (
        lambda: Tensor(1).tile((2,), dilation=(HUGE,)),
        "16610 bits.*62 bits",
    ),
    "a stride of nothing": (lambda: Tensor(1).tile((2,), strides=(0,)), "at least 1"),
    "a negative dilation": (lambda: Tensor(1).tile((2,), dilation=(-2,)), "at least 1"),
    "a text as tile": (lambda: Tensor(1).tile(("a",)), "ints or Symbols"),
    "expanding what is not 1": (lambda: Tensor(shape=(3,)).expand((4,)), "a size of 1"),
    "squeezing what is not 1": (lambda: Tensor(shape=(3,)).squeeze(0), "dimension of size 1"),
    "squeezing beyond": (lambda: Tensor(1).squeeze(1), "from -1 to 0"),
    "squeezing twice": (lambda: Tensor(2).squeeze((0, 0)), "each dimension once"),
    "permuting some": (lambda: Tensor(2).permute((0,)), "each of the 2 dimensions once"),
    "permuting twice": (lambda: Tensor(2).permute((0, 0)), "each of the 2 dimensions once"),
    "flattening nothing": (lambda: Tensor(2).flatten(1, 1), "at least one dimension"),
    "a negative padding": (lambda: Tensor(1).pad(((-1, 0),)), "at least 0"),
    "half a padding": (lambda: Tensor(1).pad((1,)), "left, right"),
    "an index beyond": (lambda: Tensor(shape=(3,))[3], "inside the dimension of size 3"),
    "a step of 0": (lambda: Tensor(1)[::0], "an int that is not 0"),
    "too many indices": (lambda: Tensor(1)[0, 0], "at most 1"),
    "two ellipses": (lambda: Tensor(2)[..., ...], "one at most"),
    "an unknown size": (lambda: Tensor(1).eval(), "must be known"),
    "subs of a name": (lambda: Tensor(1).subs({"x": 1}), "neither"),
    "a dimension beyond all": (lambda: Tensor(1).squeeze(HUGE), "an int of 16610 bits"),
    "several dimensions beyond all": (lambda: Tensor(1).flatten((HUGE,)), "a tuple with an int"),
    "a padding below all": (lambda: Tensor(1).pad(((-HUGE, 0),)), "16610 bits.*at least 0"),
    "a size below all": (lambda: Tensor(1).expand((-HUGE,)), "16610 bits.*62 bits at most"),
    "a size below 0": (lambda: Tensor(1).expand((-2,)), "-2 for dimension 0.*at least 0"),
    # make.
    "a tensor for tensors": (lambda: _made(tensors=Tensor(1)), "as a tuple"),
    "too few tensors": (lambda: _made(tensors=(Tensor(1),)), "1 tensor"),
    "no application": (lambda: _made(application=3), "a function written in Python"),
    "no arrangement": (lambda: _made(arrangement=3), "an arrangement is a function"),
    "an unknown caller": (lambda: _made(caller="tensorflow"), "tensorflow"),
    "a name with a space": (lambda: _made(kernel_name="a b"), "identifier"),
    "no warps": (lambda: _made(num_warps=0), "num_warps"),
    "warps beyond all": (lambda: _made(num_warps=HUGE), "num_warps.*an int of 16610 bits"),
    "stages beyond all": (lambda: _made(num_stages=(2, HUGE)), "num_stages.*too many digits"),
    "no end of choices": (lambda: _made(max_num_configs=HUGE), "max_num_configs.*16610 bits"),
    "nothing returned": (lambda: _made(arrangement=lambda x, o: None), "returned None"),
    "other outermost shapes": (
        lambda: _made(arrangement=lambda x, o: (x.tile((64,))[:3], o.tile((64,))[:4]))(
            vector(640), vector(640)
        ),
        "outermost shapes",
    ),
    # Calls.
    "no arguments": (lambda: KERNEL(), "missing: x, o"),
    "too many arguments": (lambda: KERNEL(vector(), vector(), 1), "3 positional"),
    "an unknown keyword": (lambda: KERNEL(vector(), vector(), bogus=1), "'bogus' is not one"),
    "one argument twice": (lambda: _made()(vector(), vector(), x=vector()), "'x' was given twice"),
    "a list for a tensor": (lambda: KERNEL([1.0], vector()), "must be a tensor, not builtins.list"),
    "NumPy beside PyTorch": (lambda: KERNEL(np.zeros(8), vector()), "must be a tensor, not numpy"),
    "another rank": (lambda: KERNEL(vector(2, 4), vector()), "2 dimensions.*declared with 1"),
    "another fixed size": (lambda: FIXED(vector(9), vector(9)), "size 9.*declared"),
    "an other that does not fit": (
        lambda: _made(tensors=(Tensor(1, other=300), Tensor(1)))(vector().byte(), vector()),
        "other=300, which uint8.*from 0 to 255",
    ),
    "an other that is not whole": (
        lambda: _made(tensors=(Tensor(1, other=0.5), Tensor(1)))(vector().int(), vector()),
        "other=0.5, which int32.* a whole number",
    ),
    "an other that does not fit what is declared": (
        lambda: _made(
            tensors=(Tensor(1, dtype="uint8", other=300), Tensor(1, dtype="uint8")),
            caller="cuda",
            output_dir="never made",
        ),
        "other=300, which uint8.*from 0 to 255",
    ),
    "sizes that differ": (lambda: KERNEL(vector(200), vector(8)), "outermost shapes"),
    "a tile of more dimensions than NumPy has": (
        lambda: _made(
            arrangement=lambda x, o: (x.tile((1,) * 33), o.tile((1,) * 33)),
            tensors=(Tensor(33), Tensor(33)),
        )(vector(*(1,) * 33), vector(*(1,) * 33)),
        "tile of `x` has 33 dimensions.*32 at most",
    ),
    "a grid of more dimensions than NumPy has": (
        lambda: _made(
            arrangement=lambda x, o: tuple(
                functools.reduce(lambda made, _: made.unsqueeze(0), range(64), t.tile((4,)))
                for t in (x, o)
            )
        )(vector(), vector()),
        "the grid has 65 dimensions.*64 at most",
    ),
    "a tile that no memory holds": (
        lambda: SIZED(vector(), vector(), N=2**40),
        "tile of `x` is.*1099511627776 elements.*on a CPU a tile has at most 268435456",
    ),
    "more programs than can run": (
        lambda: _made(
            arrangement=lambda *tensors: tuple(t.pad(((2**61, 0),)).tile((2,)) for t in tensors)
        )(vector(), vector()),
        "1152921504606846980 programs, grid",
    ),
    "a symbol that would count from the end": (
        lambda: PICKED(vector(4, 8), vector(), N=-1),
        "index -1.*0 to 3",
    ),
    "a bound that would count from the end": (
        lambda: CUT(vector(), vector(), N=-1),
        "bound -1 .`N`. in dimension 0.*at least 0.*negative int counts from the end",
    ),
    "a bound of sizes that would count from the end": (
        lambda: LAST(vector(8), vector(8)),
        "bound -1 .`x_size_0 - 9`. in dimension 0.*at least 0",
    ),
    "half a size": (lambda: SIZED(vector(), vector(), N=1.5), "`N` is an integer constant"),
    "a size beyond all": (
        lambda: SIZED(vector(), vector(), N=HUGE),
        "`N` is an integer constant.*16610 bits",
    ),
    "a symbol as value": (lambda: SIZED(vector(), vector(), N=N), "integer constant|no value"),
    "a list as constant": (lambda: CONSTANT(vector(), vector(), [1]), "constant.*cannot be hashed"),
    "a symbol as constant": (lambda: CONSTANT(vector(), vector(), N), "no value. Give the value"),
    "a text as scalar": (lambda: SCALED(vector(), vector(), "2"), "factor"),
    "a vector as scalar": (lambda: SCALED(vector(), vector(), vector()), "factor"),
    "sizes of one Tensor given twice": (
        lambda: _made(tensors=(Tensor(1),) * 2)(vector(4), vector(8)),
        "size 8 .*`x` and `o` were arranged from one Tensor; give each a Tensor of its own",
    ),
    "no kernel to tune": (lambda: ninetoothed.tune(3), "`tune` takes what `make`"),
    "an unknown effort": (lambda: ninetoothed.tune(KERNEL, effort="all"), "all"),
    "no target": (lambda: KERNEL.compile(vector(), vector(), target="h200"), "target"),
    "tensors to simulate": (
        lambda: ninetoothed.debugging.simulate_arrangement(_arrangement, 3),
        "as a tuple",
    ),
}


def test_there_are_enough_rows():
    assert len(ROWS) >= 60


@pytest.mark.parametrize("row", ROWS)
def test_a_wrong_argument_is_said_with_what_was_found_and_expected(row):
    call, message = ROWS[row]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(NineToothedError, match=f"(?s){message}") as raised:
            call()
    if isinstance(raised.value, ArgumentError | ArrangementError):
        assert raised.value.location is not None and "File" in str(raised.value)
