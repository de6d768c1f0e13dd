"""``ntl``: every name of Triton's language is there, as a neutral marker."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed.backends.numpy.language.implementations import FUNCTIONS
from ninetoothed.backends.numpy.language.libdevice import FUNCTIONS as LIBDEVICE
from ninetoothed.backends.numpy.values.tile import Tile
from ninetoothed.errors import NineToothedError
from ninetoothed.language import dtypes, operations

#: What the NumPy backend can give a meaning to: everything that a compiler is not needed for.
_ON_NUMPY = sorted(
    operations.names(lambda operation: operation.home and not operation.is_compiled_only)
)
_AT_THE_TOP = [name for name in _ON_NUMPY if "." not in name]


#: A module of Triton's compiler, which is among the names once Gluon has been imported.
_COMPILERS = {"semantic"}


def _public(module) -> set[str]:
    return {name for name in dir(module) if not name.startswith("_")} - _COMPILERS


def test_every_public_name_of_tritons_language_is_there():
    tl = pytest.importorskip("triton.language", reason="needs Triton to compare with")

    missing = [name for name in _public(tl) if not hasattr(ntl, name)]

    assert missing == []


def test_the_table_is_not_filled_from_the_installed_triton():
    code = (
        "import sys; sys.modules['triton'] = None\n"
        "import ninetoothed.language as ntl\n"
        "print(ntl.softmax, ntl.libdevice.tanh, ntl.PropagateNan.ALL)"
    )

    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert completed.stdout.split() == ["ntl.softmax", "ntl.libdevice.tanh", "ntl.PropagateNan.ALL"]


def test_every_function_of_libdevice_is_there():
    libdevice = pytest.importorskip("triton.language.extra.libdevice", reason="needs Triton")

    functions = {
        n for n in _public(libdevice) if getattr(libdevice, n).__module__ == libdevice.__name__
    }

    assert functions and [name for name in functions if not hasattr(ntl.libdevice, name)] == []


def test_importing_it_imports_nothing_heavy():
    code = (
        "import sys, ninetoothed.language\n"
        "print([n for n in ('numpy', 'triton', 'torch', 'ml_dtypes') if n in sys.modules])"
    )

    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert completed.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ntl._ELEMENT_TYPES)
def test_element_types_are_the_neutral_ones(name):
    assert getattr(ntl, name) is dtypes.by_name(name)


def test_the_package_and_the_language_share_types():
    assert ntl.float16 is ninetoothed.float16
    assert ntl.int1 is ninetoothed.bool


def test_a_marker_prints_its_name_and_cannot_be_changed():
    assert repr(ntl.exp) == "ntl.exp" and ntl.exp.name == "exp"
    assert ntl.libdevice.tanh.name == "libdevice.tanh"
    assert ntl.math.exp.name == "math.exp"
    assert ntl.constexpr.kind == "type" and ntl.PropagateNan.ALL.kind == "constant"
    with pytest.raises(AttributeError, match="cannot be changed"):
        ntl.exp.name = "log"


@pytest.mark.parametrize("marker", [ntl.exp, ntl.libdevice.tanh, ntl.PropagateNan.ALL, ntl.math])
def test_markers_survive_pickling_as_themselves(marker):
    assert pickle.loads(pickle.dumps(marker)) is marker


@pytest.mark.parametrize(
    "namespace, name, near",
    [(ntl, "exq", "exp"), (ntl.libdevice, "tahn", "tan"), (ntl.PropagateNan, "AL", "ALL")],
)
def test_an_unknown_name_is_refused_with_a_near_one(namespace, name, near):
    with pytest.raises(AttributeError, match=f"Did you mean '{near}'"):
        getattr(namespace, name)


def test_a_name_that_only_the_installed_triton_has_is_found_there(monkeypatch):
    tl = pytest.importorskip("triton.language", reason="needs Triton to look into")
    monkeypatch.setattr(tl, "brand_new", lambda x: x, raising=False)

    assert ntl.brand_new.name == "brand_new" and ntl.brand_new.kind == "function"


def _has(name: str) -> bool:
    return name in FUNCTIONS or name.removeprefix("libdevice.") in LIBDEVICE


def test_the_numpy_backend_has_every_function_but_those_for_compilers():
    assert [name for name in _ON_NUMPY if not _has(name)] == []
    only_compiled = operations.names(lambda operation: operation.is_compiled_only)
    assert [name for name in only_compiled if name in FUNCTIONS] == []


@pytest.mark.parametrize("name", ["inline_asm_elementwise", "libdevice.j0"])
def test_what_the_numpy_backend_lacks_is_named(name):
    marker = ntl
    for part in name.split("."):
        marker = getattr(marker, part)

    with pytest.raises(NineToothedError, match=f"no ntl.{name}"):
        marker(1.0)


def test_tiles_have_the_members_that_tritons_tensors_have():
    tl = pytest.importorskip("triton.language", reason="needs Triton to compare with")
    own = _public(tl.tensor) - {"handle", "store", "advance"}

    members = {name for name in own if not name.startswith("atomic")}

    assert [name for name in members if not hasattr(Tile, name)] == []
    assert {"sum", "reshape", "to", "T"} <= members | {"T"}


@pytest.mark.parametrize("namespace", [ntl.math, ntl.core, ntl.standard, ntl.random])
def test_namespaces_mean_what_their_names_mean_at_the_top(namespace):
    x = Tile(np.arange(4, dtype=np.float32), dtypes.float32)
    if hasattr(namespace, "sqrt"):
        assert namespace.sqrt(x).data.tolist() == ntl.sqrt(x).data.tolist()
    for name in set(vars(namespace)) - {"_name"}:
        assert callable(getattr(namespace, name)) and hasattr(ntl, name)


def _parameters(function) -> list[str]:
    plain = inspect.unwrap(getattr(function, "fn", function))
    hidden = {"_semantic", "_generator"}
    return [name for name in inspect.signature(plain).parameters if name not in hidden]


@pytest.mark.parametrize(
    "name", [name for name in _AT_THE_TOP if operations.TABLE[name].kind != "type"]
)
def test_the_parameters_are_called_as_tritons_are(name):
    tl = pytest.importorskip("triton.language", reason="needs Triton to compare with")

    assert _parameters(FUNCTIONS[name]) == _parameters(getattr(tl, name))


def test_a_tile_has_its_members_before_the_language_is_imported():
    code = (
        "import numpy, sys\n"
        "from ninetoothed.language import dtypes\n"
        "from ninetoothed.backends.numpy.values.tile import Tile\n"
        "x = Tile(numpy.ones(4, numpy.float32), dtypes.float32)\n"
        "print('ninetoothed.backends.numpy.language.implementations' in sys.modules, float((x + x).sum()))"
    )

    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert completed.stdout.split() == ["False", "8.0"]
