"""Expressions that are nested deeper than Python's recursion limit allows: a located error at each stage."""

import importlib.util
import sys

import numpy as np
import pytest
import torch

from ninetoothed import Symbol, Tensor, make, plugins
from ninetoothed.errors import NineToothedError

TERMS = 1000


@pytest.fixture(autouse=True)
def _usual_recursion_limit():
    """PyTorch's compiler raises it in its process."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(limit)


def _sizes(count=TERMS):
    return [Symbol(f"SIZE_{number}", constexpr=True) for number in range(count)]


def _copy(x, o):
    o = x  # noqa: F841


def _tiles_of_a_sum():
    total = sum(_sizes())
    return make(lambda x, o: (x.tile((total,)), o.tile((total,))), _copy, (Tensor(1), Tensor(1)))


def _slices_of_slices():
    chained = Tensor(1)
    for _ in range(TERMS):
        chained = chained[1:]
    return make(lambda x, o: (x.tile((64,)), o.tile((64,))), _copy, (chained, Tensor(1)))


@pytest.mark.parametrize(
    "attempt",
    [
        _tiles_of_a_sum,
        _slices_of_slices,
        lambda: str(sum(_sizes())),
        lambda: Symbol(" + ".join(f"a{number}" for number in range(TERMS))),
        lambda: Tensor(1).tile((sum(_sizes()),)),
        lambda: Tensor(shape=(sum(_sizes()),)).eval(),
    ],
)
def test_a_symbol_of_a_thousand_terms_is_right_or_refused(attempt):
    with pytest.raises(
        NineToothedError, match=r"(?s)nested too deep.*each calls the next.*setrecursionlimit.*File"
    ):
        attempt()


def _of_terms(tmp_path, count):
    path = tmp_path / f"sum_of_{count}.py"
    terms = " + ".join(["x"] * count)
    path.write_text(f"def application(x, o):\n    o = {terms}\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return make(
        lambda x, o: (x.tile((64,)), o.tile((64,))), module.application, (Tensor(1), Tensor(1))
    )


@pytest.mark.parametrize("count", [150, *range(160, 300, 10), TERMS])
def test_an_application_of_many_terms_is_right_or_refused(tmp_path, count):
    x, out = torch.arange(100.0), torch.full((100,), float("nan"))

    try:
        kernel = _of_terms(tmp_path, count)
        assert kernel.source
        kernel(x, out)
    except NineToothedError as error:
        assert "nested too deep" in str(error) and "File" in str(error)
        assert count > 150
    else:
        np.testing.assert_allclose(out, x * count)
        assert count < TERMS


def test_what_is_compiled_too_deep_is_refused(monkeypatch):
    kernel = make(lambda x, o: (x.tile((64,)), o.tile((64,))), _copy, (Tensor(1), Tensor(1)))

    def too_deep(*arguments):
        raise RecursionError

    monkeypatch.setattr(plugins.backend_named("triton"), "compile", too_deep)
    x = torch.zeros(64)

    with pytest.raises(NineToothedError, match=r"(?s)nested too deep.*File"):
        kernel.compile(x, x, target=("cuda", 90))
