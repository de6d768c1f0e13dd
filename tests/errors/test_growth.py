"""What a user nests or repeats costs in proportion, or is refused with a located error: work is counted."""

import ast
import importlib.util
import itertools

import numpy as np
import pytest

from ninetoothed import Symbol, Tensor, make
from ninetoothed.backends.numpy.language.math import where
from ninetoothed.backends.numpy.values.operators import add, greater
from ninetoothed.backends.numpy.values.tile import Tile
from ninetoothed.errors import ApplicationError, ArrangementError
from ninetoothed.language import dtypes
from ninetoothed.passes import mask_padding
from ninetoothed.passes.padding import branches as padding_branches
from ninetoothed.program.inference import Inference


@pytest.fixture
def application(tmp_path):
    """Makes the application of a text; a kernel is compiled from a file."""

    def of(text):
        path = tmp_path / f"application_{len(list(tmp_path.iterdir()))}.py"
        path.write_text("import ninetoothed.language as ntl\n" + text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.application

    return of


def _tiled(*tensors):
    return tuple(t.tile((64,)) if t.ndim else t for t in tensors)


def test_masks_that_meet_themselves_in_a_loop_stay_few():
    x = Tile(np.zeros(8, np.float32), dtypes.float32, (np.arange(8) < 5,))

    for _ in range(30):
        x = add(x, where(greater(x, 0), x, add(x, x)))

    assert len(x.validity) <= 4
    assert all((mask == (np.arange(8) < 5)).all() for mask in x.validity)


def test_masks_of_another_rank_are_added_once():
    row = Tile(np.zeros(8, np.float32), dtypes.float32, (np.arange(8) < 5,))
    both = Tile(np.zeros((4, 8), np.float32), dtypes.float32)

    for _ in range(30):
        both = add(both, row)

    assert len(both.validity) <= 16


@pytest.mark.parametrize("depth", [4, 16])
def test_loops_in_loops_are_looked_at_a_few_times_each(application, monkeypatch, depth):
    seen = []
    simple = mask_padding._Analysis.simple
    monkeypatch.setattr(
        mask_padding._Analysis, "simple", lambda self, s: (seen.append(s), simple(self, s))[1]
    )
    loops = "".join(f"{'    ' * (d + 1)}for k{d} in range(n):\n" for d in range(depth))
    text = f"def application(x, o, n):\n    a = x\n{loops}{'    ' * (depth + 1)}a += x\n    o = a\n"

    make(_tiled, application(text), (Tensor(1), Tensor(1), Tensor(0))).definition.optimized

    assert len(seen) <= 2 * depth + 8


def test_types_of_loops_in_loops_are_found_a_few_times_each(application, monkeypatch):
    seen = []
    enter = Inference.enter
    monkeypatch.setattr(
        Inference, "enter", lambda self, loop: (seen.append(loop), enter(self, loop))[1]
    )
    lines = [
        line
        for d in range(16)
        for line in (
            f"{'    ' * (d + 1)}c{d} = 0",
            f"{'    ' * (d + 1)}while c{d} < n:",
            f"{'    ' * (d + 2)}c{d} = c{d} + 1",
        )
    ]
    text = "def application(x, o, n):\n" + "\n".join(lines) + "\n    o = x\n"

    make(_tiled, application(text), (Tensor(1), Tensor(1), Tensor(0)))

    assert len(seen) <= 3 * 16


def test_helpers_that_double_at_each_step_are_refused(application):
    helpers = "".join(f"def h{n}(x):\n    return h{n - 1}(x) + h{n - 1}(x)\n" for n in range(1, 17))
    text = f"def h0(x):\n    return x\n{helpers}def application(x, o):\n    o = h16(x)\n"

    with pytest.raises(ApplicationError, match=r"(?s)4096 calls of helpers.*File .*h\d+\(x\)"):
        make(_tiled, application(text), (Tensor(1), Tensor(1)))


@pytest.mark.parametrize(
    "loop", ["for k in ntl.static_range(5000):", "for k in ntl.static_range(10**12):"]
)
def test_a_loop_that_is_unrolled_too_often_is_refused(application, loop):
    text = f"def application(x, o):\n    a = x\n    {loop}\n        a += x\n    o = a\n"

    with pytest.raises(ApplicationError, match=r"(?s)4096 calls.*rounds.*static_range"):
        make(_tiled, application(text), (Tensor(1), Tensor(1)))


def test_returns_of_which_each_doubles_what_follows_are_refused(application):
    steps = "".join(
        f"    if n > {k}:\n        if n > {k + 20}:\n            return v * {k}\n        v = v + 1\n"
        for k in range(16)
    )
    text = f"def h(v, n):\n{steps}    return v\ndef application(x, o, n):\n    o = h(x, n)\n"

    with pytest.raises(ApplicationError, match=r"(?s)4096 .*an `if` that returns.*if n > \d+"):
        make(_tiled, application(text), (Tensor(1), Tensor(1), Tensor(0)))


def test_returns_one_after_another_are_no_copies(application):
    steps = "".join(
        f"    if n > {k}:\n        v = v + 1\n        return v * {k}\n" for k in range(70)
    )
    text = f"def h(v, n):\n{steps}    return v\ndef application(x, o, n):\n    o = h(x, n)\n"

    assert make(_tiled, application(text), (Tensor(1), Tensor(1), Tensor(0))).definition.optimized


def test_branches_that_give_a_variable_other_padding_are_copied_only_where_they_are_few(
    application,
):
    branches = "".join(
        f"    if n > {k}:\n        a = a + y\n    else:\n        a = ntl.zeros((64,), dtype=ntl.float32)\n"
        for k in range(16)
    )
    text = f"def application(x, y, o, n):\n    a = x\n{branches}    o = ntl.sum(a) + x\n"
    typed = (*(Tensor(1, dtype="float32") for _ in range(3)), Tensor(0))

    # There a variable says which elements there are, as where the types are not known yet.
    for tensors in (typed, (Tensor(1),) * 3 + (Tensor(0),)):
        program = make(_tiled, application(text), tensors).definition.optimized
        assert sum(isinstance(node, ast.If) for node in program.nodes()) == 16


def test_branches_on_constants_that_give_a_variable_other_padding_are_refused_where_they_are_too_many(
    application, monkeypatch
):
    monkeypatch.setattr(padding_branches, "_MOST_LOOKS", 5000)
    branches = "".join(
        f"        if k > {k}:\n            a = a + y\n        else:\n            a = {'xyz'[k % 3]} * 2\n"
        for k in range(16)
    )
    text = (
        "def application(x, y, z, o, n):\n    a = x\n    for k in ntl.static_range(n):\n"
        f"{branches}        o = ntl.sum(a) + x\n"
    )
    tensors = (*(Tensor(1, dtype="float32") for _ in range(4)), Tensor(0, constexpr=True))

    with pytest.raises(ApplicationError, match=r"(?s)too many branches in a row.*if k > \d+"):
        make(_tiled, application(text), tensors).definition.optimized


def test_a_slice_of_slices_is_as_long_as_they_are_many():
    chained = Tensor(1, name="t")
    lengths = []
    for _ in range(12):
        chained = chained[2:-1:2]
        lengths.append(len(str(chained.shape[0])))

    steps = {after - before for before, after in itertools.pairwise(lengths)}
    assert max(steps) < 40


_BOUNDS = (None, 0, 2, 9, -1, -3, -9)


@pytest.mark.parametrize("step", [None, 1, 2, 3, -1, -2])
def test_a_slice_of_a_symbolic_size_has_pythons_elements(step):
    for start, stop in itertools.product(_BOUNDS, _BOUNDS):
        for size in (0, 1, 2, 5):
            tensor = Tensor(1)
            expected = list(range(size))[start:stop:step]

            found = tensor[start:stop:step].eval({tensor: {"shape": (size,)}})

            assert found.tolist() == expected, (start, stop, step, size)


def test_an_expression_that_doubles_is_refused():
    size = Symbol("n", constexpr=True)

    with pytest.raises(ArrangementError, match="terms"):
        for _ in range(30):
            size = size * size + size


def test_an_expression_that_doubles_in_an_application_is_refused_at_its_line(application):
    lines = "    i = i * i + i\n" * 30
    text = f"def application(x, o):\n    i = x.shape[0]\n{lines}    o = x + i\n"
    size = Symbol("n", constexpr=True)

    with pytest.raises(ApplicationError, match=r"(?s)terms.*i = i \* i \+ i"):
        make(
            lambda x, o: (x.tile((size,)), o.tile((size,))),
            application(text),
            (Tensor(1), Tensor(1)),
        )


def test_an_expression_that_grows_where_a_property_is_found_is_located_at_its_user():
    def grown(x):
        for _ in range(9):
            x = x.tile((2, 2)).permute((1, 0)).flatten()
            x.dtype = x.dtype.flatten()
            x = x.ravel().flatten().tile((3,)).ravel().flatten().unsqueeze(0)

    with pytest.raises(ArrangementError, match="has grown to more than") as caught:
        grown(Tensor(2))
    assert caught.value.location.file == __file__
