"""LANGUAGE.md: "Declarations are promises, not walls", and what `dtype` takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings

import ml_dtypes
import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import DeclarationWarning, Symbol, Tensor
from ninetoothed.errors import ApplicationError, ArgumentError, ArrangementError
from ninetoothed.frontends.base import owns_types
from tests.contract.kernels import B, arange, empty, tiles, vectors
from tests.frontends import toy_framework as toy


def copied(x, out):
    out = x  # noqa: F841


def declared(x, symbol=B):
    """A copy in blocks of a symbol, of a vector declared so."""
    return ninetoothed.make(
        lambda x, out: (x.tile((symbol,)), out.tile((symbol,))), copied, (x, Tensor(1))
    )


def warned(kernel, *arguments, **keywords):
    """The one warning of a call; a second call says nothing more."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        kernel(*arguments, **keywords)
        kernel(*arguments, **keywords)
    (found,) = [each for each in caught if each.category is DeclarationWarning]
    return found


# `dtype` takes our element types, a framework's, their names as strings, Python's.


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (ninetoothed.float16, "float16"),
        (ntl.float8e5, "float8_e5m2"),
        (torch.float16, "float16"),
        (torch.bfloat16, "bfloat16"),
        (torch.half, "float16"),
        (torch.bool, "bool"),
        (torch.float8_e4m3fn, "float8_e4m3"),
        (np.float16, "float16"),
        (np.dtype("uint8"), "uint8"),
        (np.bool_, "bool"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (np.dtype(ml_dtypes.float8_e5m2), "float8_e5m2"),
        ("float16", "float16"),
        ("torch.float16", "float16"),
        ("torch.half", "float16"),
        ("paddle.bfloat16", "bfloat16"),
        ("float8_e4m3fn", "float8_e4m3"),
        ("fp32", "float32"),
        (int, "int64"),
        (float, "float64"),
        (bool, "bool"),
        ("int", "int64"),
    ],
)
def test_what_dtype_takes(given, expected):
    with warnings.catch_warnings(action="error"):
        x = Tensor(2, dtype=given)
        y = Tensor(2)
        y.dtype = given

    assert x.dtype is y.dtype is getattr(ninetoothed, expected)


def test_paddles_and_jaxs_and_tritons_element_types():
    paddle = pytest.importorskip("paddle", reason="PaddlePaddle's element types")
    jnp = pytest.importorskip("jax.numpy", reason="JAX's element types")
    tl = pytest.importorskip("triton.language", reason="Triton's element types")

    for given in (paddle.float16, jnp.float16, tl.float16, "paddle.float16", "jax.numpy.float16"):
        assert Tensor(1, dtype=given).dtype is ninetoothed.float16
    assert Tensor(1, dtype=jnp.bfloat16).dtype is ninetoothed.bfloat16


def test_an_element_type_imports_no_framework():
    script = (
        "import sys, warnings; warnings.simplefilter('error')\n"
        "import numpy, ninetoothed\n"
        "for dtype in ('torch.float16', 'paddle.float16', numpy.float16, 'float16'):\n"
        "    assert ninetoothed.Tensor(1, dtype=dtype).dtype is ninetoothed.float16\n"
        "assert not {'torch', 'paddle', 'jax', 'triton'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


class Kind:
    """An element type of a framework of somebody else's."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"toy.{self.name}"


HALF, BROKEN = Kind("half"), Kind("broken")


def test_a_third_partys_element_types():
    """Through the frontend's own map."""
    types = {HALF: ninetoothed.float16, **toy.FIELDS["dtypes"]()}
    owns = owns_types((__name__, "Kind"))
    with toy.registered(dtypes=lambda: types, owns_dtype=owns):
        assert Tensor(1, dtype=HALF).dtype is ninetoothed.float16
        with pytest.warns(DeclarationWarning, match="toy.broken"):
            assert Tensor(1, dtype=BROKEN).dtype is None
    with pytest.warns(DeclarationWarning, match="toy.half"):
        assert Tensor(1, dtype=HALF).dtype is None


@pytest.mark.parametrize("stray", [256, "floating", torch.complex64, np.complex64, str, object()])
def test_anything_else_is_ignored_with_a_warning(stray):
    with pytest.warns(DeclarationWarning, match="is no element type and is ignored") as caught:
        x = Tensor(1, dtype=stray)
    with pytest.warns(DeclarationWarning, match="is no element type") as assigned:
        Tensor(1).dtype = stray

    assert x.dtype is None
    for found, line in ((caught[0], "x = Tensor(1, dtype=stray)"), (assigned[0], ".dtype = stray")):
        assert found.filename == found.message.location.file == __file__
        assert repr(stray) in str(found.message) and line in str(found.message)
    out = empty(5)
    declared(x)(arange(5), out, B=4)
    assert torch.equal(out, arange(5))


@pytest.mark.parametrize("dtype", [torch.float16, np.float16, ninetoothed.float16])
def test_a_frameworks_element_type_in_an_application(dtype):
    def application(x, out, is_half):
        out = x.to(dtype) + ntl.zeros(x.shape, dtype=dtype)  # noqa: F841
        if x.dtype == dtype:
            is_half = is_half * 0 + 1
        if dtype != x.dtype:
            is_half = is_half * 0 + 2
        if x.dtype is dtype and x.dtype is not None:
            is_half += 10
        if x.dtype is not dtype:
            is_half += 20  # noqa: F841

    kernel = ninetoothed.make(tiles, application, vectors(3))
    for given, expected in ((torch.float16, 11), (torch.float32, 22)):
        x = torch.tensor([1.0, 2049.0, 3.0], dtype=given)
        out, is_half = empty(3), empty(3)
        kernel(x, out, is_half, B=4)

        assert torch.equal(out, x.half().float())
        assert torch.equal(is_half, torch.full((3,), float(expected)))


# A value, size or element type other than declared gives one located warning and runs as given.


@pytest.mark.parametrize(
    ("tensor", "size", "declaration"),
    [
        (Tensor(1, shape_options={"upper_bound": 128}), 129, "upper_bound=128"),
        (Tensor(1, shape_options={"lower_bound": 8}), 3, "lower_bound=8"),
        (Tensor(1, shape_options={"power_of_two": True}), 6, "power_of_two=True"),
        (
            Tensor(1, shape_options=({"constexpr": True, "lower_bound": 2, "upper_bound": 4},)),
            5,
            "lower_bound=2, upper_bound=4",
        ),
    ],
)
def test_a_size_other_than_declared(tensor, size, declaration):
    kernel = declared(tensor)
    out = empty(size)
    found = warned(kernel, arange(size), out, B=4)

    assert torch.equal(out, arange(size))
    assert f"`x` in dimension 0 was declared with {declaration}; it is given {size}" in str(
        found.message
    )
    assert found.filename == __file__ and "Tensor(1, shape_options=" in str(found.message)


@pytest.mark.parametrize(
    ("keywords", "value", "declaration"),
    [
        ({"lower_bound": 32}, 4, "lower_bound=32"),
        ({"upper_bound": 2}, 4, "upper_bound=2"),
        ({"power_of_two": True}, 3, "power_of_two=True"),
        ({"power_of_two": True, "lower_bound": 8}, 3, "lower_bound=8, power_of_two=True"),
    ],
)
@pytest.mark.parametrize("size", [1, 6, 11])
def test_a_constant_other_than_declared(keywords, value, declaration, size):
    """The tile that it is the size of is masked as it needs to be."""
    symbol = Symbol("W", constexpr=True, **keywords)
    kernel = declared(Tensor(1), symbol)
    out = torch.full((size + 8,), float("nan"))
    found = warned(kernel, arange(size), out[:size], W=value)

    assert torch.equal(out[:size], arange(size)) and out[size:].isnan().all()
    assert f"`W` was declared with {declaration}; it is given {value}" in str(found.message)
    assert 'symbol = Symbol("W"' in str(found.message)


@pytest.mark.parametrize("given", [torch.float32, torch.int32, torch.float64])
def test_an_element_type_other_than_declared(given):
    """What is decided by `x.dtype` is decided by what is given."""

    def application(x, out, kind):
        out = x + x  # noqa: F841
        kind = ntl.zeros(x.shape, dtype=ntl.float32) + (1 if x.dtype is ntl.float16 else 2)  # noqa: F841

    tensors = (Tensor(1, dtype=torch.float16), Tensor(1), Tensor(1))
    kernel = ninetoothed.make(tiles, application, tensors)
    x = torch.tensor([100000.0, 3.0, 5.0]).to(given)
    out, kind = torch.empty_like(x), empty(3)
    found = warned(kernel, x, out, kind, B=4)

    assert torch.equal(out, x + x) and torch.equal(kind, torch.full((3,), 2.0))
    name = str(given).removeprefix("torch.")
    assert f"`x` was declared with dtype=float16; it is given {name}" in str(found.message)
    assert "Tensor(1, dtype=torch.float16)" in str(found.message)
    half = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float16)
    with warnings.catch_warnings(action="error"):
        kernel(half, torch.empty_like(half), kind, B=4)
    assert torch.equal(kind, torch.ones(3))


def one_of_two(x, z, count, out):
    value = x
    if count > 0:
        value = z
    out = value  # noqa: F841


def a_quotient(x, z, count, out):
    out = x // z  # noqa: F841


def what_is_joined(x, z, count, out):
    out = ntl.sum(ntl.join(x, z), axis=1)  # noqa: F841


@pytest.mark.parametrize(
    ("application", "dtypes"),
    [
        (one_of_two, (torch.int64, torch.int32)),
        (a_quotient, (torch.uint32, torch.int32)),
        (a_quotient, (torch.uint32, torch.uint32)),
        (what_is_joined, (torch.int32, torch.float32)),
    ],
)
def test_what_makes_no_sense_as_declared_runs_as_given(application, dtypes):
    tensors = *(Tensor(1, dtype=dtype) for dtype in dtypes), Tensor(0), Tensor(1)
    kernel = ninetoothed.make(tiles, application, tensors)
    x, out = torch.tensor([-8, -7, 5], dtype=torch.int32), torch.zeros(3, dtype=torch.int32)
    z = torch.tensor([3, 3, 3], dtype=torch.int32)
    with pytest.warns(DeclarationWarning, match="it is given int32, and runs with that"):
        kernel(x, z, 1, out, B=4)

    expected = {one_of_two: z, a_quotient: x // z, what_is_joined: x + z}
    assert torch.equal(out, expected[application])


@pytest.mark.parametrize("dtype", [torch.int32, torch.int8])
def test_given_types_that_make_no_sense_are_refused_at_the_call(dtype):
    """Whatever was declared."""
    tensors = (Tensor(1, dtype=torch.int32), Tensor(1, dtype=dtype), Tensor(0), Tensor(1))
    kernel = ninetoothed.make(tiles, one_of_two, tensors)
    x, z = torch.arange(3, dtype=torch.int32), torch.arange(3, dtype=torch.int8)
    with warnings.catch_warnings(action="ignore"), pytest.raises(ApplicationError) as raised:
        kernel(x, z, 1, empty(3), B=4)

    assert "`if` give 'value' different element types: int8" in raised.value.message
    assert raised.value.location.line == one_of_two.__code__.co_firstlineno + 2


@pytest.mark.parametrize(
    ("declared_as", "given"), [(torch.uint32, torch.int32), (torch.bool, torch.int32)]
)
def test_the_source_is_for_what_is_given(declared_as, given):
    """What a declaration makes free, as division of what has no sign, is free of that alone."""
    pytest.importorskip("triton")
    if os.environ.get("TRITON_INTERPRET"):
        pytest.skip("needs Triton's compiler, and its interpreter was chosen")

    def application(x, out):
        out = (x + x) // 3  # noqa: F841

    x = torch.tensor([-8, -7, 5]).to(given)
    texts = []
    for declaration in (declared_as, given):
        kernel = ninetoothed.make(tiles, application, (Tensor(1, dtype=declaration), Tensor(1)))
        with warnings.catch_warnings(action="ignore"):
            compiled = kernel.compile(x, empty(3), B=4, target=("cuda", 90))
        texts.append(re.sub(r" loc\(.*\)|#loc.*", "", compiled.asm["ttir"]))

    assert texts[0] == texts[1]


def test_an_assigned_element_type_is_told_where_it_was_assigned():
    x = Tensor(1)
    x.dtype = "float16"
    found = warned(declared(x), arange(3), empty(3), B=4)

    assert 'x.dtype = "float16"' in str(found.message)


def test_a_number_other_than_declared():
    def application(x, scale, out):
        out = x * scale  # noqa: F841

    kernel = ninetoothed.make(tiles, application, (Tensor(1), Tensor(0, dtype=int), Tensor(1)))
    out = empty(3)
    found = warned(kernel, arange(3), 2.5, out, B=4)

    assert torch.equal(out, arange(3) * 2.5)
    assert "`scale` was declared with dtype=int64; it is given float32" in str(found.message)


def test_each_new_key_warns():
    kernel = declared(Tensor(1, shape_options={"upper_bound": 2}))
    with pytest.warns(DeclarationWarning) as caught:
        for size in (3, 4, 3, 2, 5, 4):
            kernel(arange(size), empty(size), B=4)

    assert [int(str(each.message).split("given ")[1].split(",")[0]) for each in caught] == [3, 4, 5]


@pytest.mark.parametrize(
    ("tensor", "symbol", "given"),
    [
        (Tensor(1, dtype=torch.float16), B, 4),
        (Tensor(1, shape_options={"upper_bound": 2}), B, 4),
        (Tensor(1), Symbol("B", constexpr=True, upper_bound=2), 4),
    ],
)
def test_as_an_error_it_leaves_no_plan_behind(tensor, symbol, given):
    kernel, out = declared(tensor, symbol), torch.full((3,), float("nan"))
    for _ in range(2):
        with warnings.catch_warnings(), pytest.raises(DeclarationWarning, match="was declared"):
            warnings.simplefilter("error", DeclarationWarning)
            kernel(arange(3), out, B=given)
        assert out.isnan().all()
    with pytest.warns(DeclarationWarning):
        kernel(arange(3), out, B=given)
    assert torch.equal(out, arange(3))


@pytest.mark.parametrize("what", ["Tensor(1, dtype=256)", "kernel(torch.ones(3), torch.ones(3))"])
def test_the_command_line_makes_it_an_error(what, tmp_path):
    """an error under `-W error::ninetoothed.DeclarationWarning`"""
    script = tmp_path / "script.py"
    script.write_text(
        "import ninetoothed, torch\n"
        "from ninetoothed import Tensor\n"
        "def application(x, out):\n"
        "    out = x\n"
        "kernel = ninetoothed.make(lambda *tensors: tuple(t.tile((4,)) for t in tensors),\n"
        "    application, (Tensor(1, dtype=torch.float16), Tensor(1)))\n"
        f"{what}\n"
    )
    command = [sys.executable, "-W", "error::ninetoothed.DeclarationWarning", str(script)]
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **path})

    assert done.returncode == 1, done.stderr
    assert "ninetoothed.errors.DeclarationWarning" in done.stderr
    assert f'File "{script}", line' in done.stderr


def test_a_constant_size_is_exact():
    kernel = declared(Tensor(shape=(4,)))
    with pytest.raises(ArgumentError, match=r"`x` has size 5 in dimension 0.*\(4,\)"):
        kernel(arange(5), empty(5), B=4)


# No default bounds of constants: 0 and negative values are values.


@pytest.mark.parametrize("padding", [0, 2])
def test_a_padding_may_be_0(padding):
    pad = Symbol("PAD", constexpr=True)

    def arrangement(x, out):
        return x.pad(((pad, 0),)).tile((B,)), out.tile((B,))

    kernel = ninetoothed.make(arrangement, copied, (Tensor(1, other=7), Tensor(1)))
    x = arange(9)
    out = torch.full((9 + padding,), float("nan"))
    with warnings.catch_warnings(action="error"):
        kernel(x, out, PAD=padding, B=4)

    expected = torch.cat([torch.full((padding,), 7.0), x])
    assert torch.equal(out, expected)


@pytest.mark.parametrize(("start", "stop"), [(0, 5), (2, 9), (-3, 9)])
def test_bounds_of_a_slice_may_be_0_or_negative(start, stop):
    first, last = Symbol("FIRST", constexpr=True), Symbol("LAST", constexpr=True)

    def application(x, out):
        out = x + first - last  # noqa: F841

    kernel = ninetoothed.make(tiles, application, vectors(2))
    out = empty(5)
    kernel(arange(5), out, B=4, FIRST=start, LAST=stop)

    assert torch.equal(out, arange(5) + start - stop)


@pytest.mark.parametrize("divisor", [3, -3])
def test_a_constant_of_either_sign_divides_as_in_python(divisor):
    d = Symbol("D", constexpr=True)

    def application(x, out):
        out = x + x.source.shape[0] // d + x.source.shape[0] % d  # noqa: F841

    kernel = ninetoothed.make(tiles, application, vectors(2))
    out = empty(5)
    kernel(arange(5), out, B=4, D=divisor)

    assert torch.equal(out, arange(5) + 5 // divisor + 5 % divisor)


@pytest.mark.parametrize("size", [0, -2])
def test_a_tile_of_no_elements_is_still_an_error(size):
    kernel = declared(Tensor(1))
    with pytest.raises(ArrangementError, match=f"tile size of {size}"):
        kernel(arange(3), empty(3), B=size)
