"""The table of operations: what it says is so, and one row adds an operation to the whole house."""

from __future__ import annotations

import ast
import pickle

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.backends.base import Argument, Call, Device
from ninetoothed.backends.triton.analysis.operation_counts import count
from ninetoothed.backends.triton.translation import environment_of
from ninetoothed.errors import CompilationError
from ninetoothed.language import dtypes, operations
from ninetoothed.language.operations import Operation
from ninetoothed.passes.padding.calls import RULES
from ninetoothed.program.nodes import IDENTITIES, LanguageRef, Masked
from ninetoothed.tuning.space import Config

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# An operation from elsewhere.


def softsign_of_arrays(x):
    return x / (1 + np.abs(x))


if triton is None:

    def softsign_in_triton(x):
        """Stands for the function that there would be: printing it imports nothing."""
else:

    @triton.jit
    def softsign_in_triton(x):
        return x / (1 + tl.abs(x))


SOFTSIGN = Operation(
    "element-wise",
    "softsign",
    shape="broadcast",
    zero="all",
    is_transcendental=True,
    triton=softsign_in_triton,
    numpy=softsign_of_arrays,
)


@pytest.fixture
def softsign(monkeypatch):
    """The language with one operation more."""
    monkeypatch.setattr(operations, "TABLE", dict(operations.TABLE))
    operations.register(SOFTSIGN)


def arrangement(x, y):
    return x.tile((1, 5)), y.tile((1, 1))


def maximum_of_softsign(x, y):
    y = ntl.max(ntl.softsign(x), axis=1, keep_dims=True)  # noqa: F841


def sum_of_softsign(x, y):
    y = ntl.sum(ntl.softsign(x), axis=1, keep_dims=True)  # noqa: F841


def made(application):
    return ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))


def test_an_operation_is_there_once_it_is_registered(softsign):
    assert ntl.softsign.name == "softsign" and repr(ntl.softsign) == "ntl.softsign"
    assert pickle.loads(pickle.dumps(ntl.softsign)).name == "softsign"


def test_without_it_there_is_no_such_name():
    with pytest.raises(AttributeError, match="softsign"):
        ntl.softsign  # noqa: B018


def test_it_is_parsed_as_one_operation(softsign):
    program = made(maximum_of_softsign).definition.optimized

    called = {node.name for node in program.nodes() if isinstance(node, LanguageRef)}
    assert called == {"softsign", "max"}


def test_the_passes_follow_the_padding_through_it(softsign):
    (masked,) = (
        node
        for node in made(maximum_of_softsign).definition.optimized.nodes()
        if isinstance(node, Masked)
    )
    assert masked.identity == "lowest" and isinstance(masked.value, ast.Call)
    # Padding reads as zero, and of zero it is zero.
    assert not any(
        isinstance(n, Masked) for n in made(sum_of_softsign).definition.optimized.nodes()
    )


def test_it_is_counted(softsign):
    kernel = made(sum_of_softsign)
    x, y = (Argument(shape, (shape[1], 1), dtypes.float32) for shape in ((64, 5), (64, 1)))
    call = Call({"x": x, "y": y}, device=Device("cuda"))

    counts = count(
        kernel.definition, call, environment_of(kernel.definition, call, Config((), 4, 3))
    )

    assert counts.special == 8 and counts.reductions == 1


def test_it_is_printed(softsign):
    lines = made(maximum_of_softsign).source.splitlines()

    assert any("softsign(" in line and "tl.softsign" not in line for line in lines)


@pytest.mark.skipif(triton is None, reason="needs Triton to compile with")
def test_it_is_compiled(softsign):
    tensors = torch.empty(64, 5), torch.empty(64, 1)

    compiled = made(maximum_of_softsign).compile(*tensors, target=("cuda", 90))

    assert "div.full.f32" in compiled.asm["ptx"]


def test_it_runs_on_the_numpy_backend(softsign):
    x, y = -torch.rand(64, 5) - 1, torch.empty(64, 1)

    made(maximum_of_softsign)(x, y)

    assert torch.allclose(y, (x / (1 + x.abs())).amax(1, keepdim=True))


def test_what_it_lacks_on_a_backend_is_named(monkeypatch):
    monkeypatch.setattr(operations, "TABLE", dict(operations.TABLE))
    operations.register(Operation("element-wise", "softsign", shape="broadcast"))

    with pytest.raises(CompilationError, match="has no ntl.softsign"):
        made(maximum_of_softsign)(torch.ones(64, 5), torch.empty(64, 1))


def test_another_name_of_tritons_is_printed_in_its_place(monkeypatch):
    monkeypatch.setattr(operations, "TABLE", dict(operations.TABLE))
    operations.register(
        Operation("element-wise", "softsign", shape="broadcast", triton="libdevice.tanh")
    )

    source = made(maximum_of_softsign).source

    assert "libdevice.tanh(" in source and "import libdevice" in source


@pytest.mark.parametrize("name", ["exp", "no name", ""])
def test_a_name_must_be_new_and_a_name(name):
    with pytest.raises(ValueError, match="operation"):
        operations.register(Operation("element-wise", name))


# The table.


def test_no_name_stands_in_two_rows():
    listed = [
        operations._full_name(name, row.home)
        for names, row in operations._ROWS
        for name in names.split()
    ]
    assert len(listed) == len(set(listed)) == len(operations.TABLE)


@pytest.mark.parametrize("name", sorted(operations.TABLE))
def test_a_row_agrees_with_itself(name):
    row = operations.find(name)

    assert row.name == name
    assert row.identity is None or row.identity in IDENTITIES
    assert row.shape == "unknown" or row.shape in RULES
    is_combined = row.kind in ("reduction", "scan") and not row.takes_function
    assert (row.identity is not None) or not is_combined
    assert {"axis", "keep_dims"} <= row.places.keys() or row.kind != "reduction"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("exp", "exp"),
        ("math.exp", "exp"),
        ("standard.sum", "sum"),
        ("libdevice.tanh", "libdevice.tanh"),
        ("libdevice.only_of_the_installed_triton", "libdevice.only_of_the_installed_triton"),
    ],
)
def test_a_name_is_found_in_its_namespaces(name, found):
    assert operations.find(name).name == found


@pytest.mark.parametrize("name", ["", "tanh", "copy_", "extra.exp"])
def test_anything_else_is_not(name):
    assert operations.find(name) is None


@pytest.mark.parametrize("name", sorted(operations.names(lambda row: row.zero == "all")))
def test_of_zeros_it_is_zero(name):
    """What ``zero`` says of an element-wise operation is true of its NumPy implementation."""
    from ninetoothed.backends.numpy.language.implementations import implementation
    from ninetoothed.backends.numpy.values.tile import Tile

    zero = Tile(np.zeros(4, np.float32), dtypes.float32)
    more = {"cast": (dtypes.float16,), "to": (dtypes.float16,)}.get(name, ())
    if name in ("add", "sub", "maximum", "minimum", "multiple_of"):
        more = (zero,)
    if name in ("max_contiguous", "max_constancy"):
        more = ([4],)
    function = Tile.to if name == "to" else implementation(name)

    assert not np.any(function(zero, *more).data)


# What the lists of before had left out.


def maximum_of_one_of_four(x, y):
    y = ntl.max(ntl.rand4x(0, x)[1], axis=1, keep_dims=True)  # noqa: F841


def maximum_of_uniform(x, y):
    y = ntl.max(ntl.uint_to_uniform_float(x), axis=1, keep_dims=True)  # noqa: F841


@pytest.mark.parametrize("application", [maximum_of_one_of_four, maximum_of_uniform])
def test_padding_is_followed_through_random_numbers(application):
    (masked,) = (n for n in made(application).definition.optimized.nodes() if isinstance(n, Masked))

    assert masked.identity == "lowest"


def maximum_of_philox(x, y):
    y = ntl.max(ntl.philox(0, x, 0, 0, 0)[0], axis=1, keep_dims=True)  # noqa: F841


def test_padding_is_followed_through_philox_on_numpy():
    # The first of five numbers is the greatest one or not, whatever the three behind them give.
    x = torch.arange(64 * 5, dtype=torch.int32).reshape(64, 5) + 1
    of_five, of_one = torch.empty(64, 1, dtype=torch.int64), torch.empty(64, 5, dtype=torch.int64)

    made(maximum_of_philox)(x, of_five)
    for column in range(5):
        made_of_one(x[:, column : column + 1], of_one[:, column : column + 1])

    assert torch.equal(of_five, of_one.amax(1, keepdim=True))


def made_of_one(x, y):
    def of_one(x, y):
        return x.tile((1, 1)), y.tile((1, 1))

    ninetoothed.make(of_one, maximum_of_philox, (Tensor(2), Tensor(2)))(x, y)


def assumed(x, y):
    ntl.assume(x > 0)
    y = ntl.sum(x, axis=1, keep_dims=True)  # noqa: F841


def test_an_assumption_holds_in_the_padding():
    (masked,) = (n for n in made(assumed).definition.optimized.nodes() if isinstance(n, Masked))
    assert masked.identity == "one"

    x, y = torch.ones(64, 5), torch.empty(64, 1)
    made(assumed)(x, y)
    assert torch.equal(y, torch.full((64, 1), 5.0))


def viewed(x, y, z):
    y = ntl.view(ntl.zeros((z.source.shape[0], 1), ntl.float32), (1, z.source.shape[1]))  # noqa: F841


def viewed_by_a_method(x, y, z):
    y = ntl.sum(x).reshape(1, z.source.shape[1])  # noqa: F841


@pytest.mark.parametrize("application", [viewed, viewed_by_a_method])
def test_a_shape_is_known_when_it_is_compiled(application):
    kernel = ninetoothed.make(
        lambda x, y, z: (*arrangement(x, y), z), application, (Tensor(2), Tensor(2), Tensor(2))
    )
    assert "z_size_1: tl.constexpr" in kernel.source
