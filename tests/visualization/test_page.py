"""The page of an arrangement: what it evaluates is what `Tensor.eval` gives, for any sizes.

Its scripts run in node here, and in a browser in `test_browser.py`.
"""

from __future__ import annotations

import functools
import importlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import ninetoothed
from examples import add, mm, sdpa
from ninetoothed import Symbol, Tensor
from ninetoothed.symbols.expr import make, maximum, minimum, padded
from ninetoothed.visualization import page as page_module
from ninetoothed.visualization import visualize_arrangement, visualize_kernel
from ninetoothed.visualization.javascript import javascript
from ninetoothed.visualization.model import Model, View
from tests.tensors.gather import random_chain
from tests.tensors.test_metaops_property import symbols_for_some_numbers
from tests.visualization.models import model_of

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPTS = Path(page_module.__file__).parent
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs node to run JavaScript")
KERNELS = (
    "add addmm bmm conv2d dropout fused_rms_norm jagged_to_padded layer_norm max_pool2d mm "
    "rms_norm rope rope_in_place sdpa silu softmax swiglu"
).split()


def run(*texts):
    """What a script prints as JSON, after the functions that every page has."""
    arithmetic = (SCRIPTS / "arithmetic.js").read_text()
    result = subprocess.run(
        [NODE, "-"], input="\n".join([arithmetic, *texts]), capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def run_model(model, script):
    return run(model.script(), (SCRIPTS / "arrangement.js").read_text(), script)


def kernel_of(name):
    return importlib.import_module(f"examples.{name}").kernel


A, B = Symbol("a"), Symbol("b")


@needs_node
@pytest.mark.parametrize(
    "expression",
    [
        A + B * 3 - 7,
        -A // 4,
        A // B,
        A % B,
        (A - 9) % (B + 1),
        (A - 9) // (B - 3),
        make("==", A // 2, B),
        make("!=", A, B),
        A < B,
        A <= B,
        A > B,
        A >= 0,
        (A < 5) & (B < 5),
        (A < 5) | (B < 5),
        A & B,
        A | B,
        minimum(A, B),
        maximum(A, B - 2),
        padded(maximum(A, 0)),
    ],
    ids=str,
)
def test_javascript_computes_what_python_does(expression):
    cases = [(a, b) for a in (-13, -4, 0, 1, 6, 7, 100) for b in (-5, 0, 1, 3, 8, 65)]
    text = javascript(expression, lambda leaf: leaf.name)
    got = run(
        f"const f = (a, b) => {text};",
        f"console.log(JSON.stringify({json.dumps(cases)}.map((c) => Number(f(...c)))));",
    )
    assert got == [int(expression.evaluate({A: a, B: b})) for a, b in cases]


@needs_node
def test_a_product_beyond_32_bits_is_exact():
    text = javascript(A * B // 7 + (A & B), lambda leaf: leaf.name)
    (got,) = run(f"console.log(JSON.stringify([((a, b) => {text})({2**31}, {2**20 + 5})]))")
    assert got == 2**31 * (2**20 + 5) // 7 + (2**31 & (2**20 + 5))


def test_what_a_browser_cannot_compute_is_refused():
    with pytest.raises(ValueError, match="cannot be computed in a browser"):
        javascript(A[0], lambda leaf: leaf.name)


ALL_ELEMENTS = """
const all = SIZES.map((free) => {
  const arranged = new Arranged(MODEL, free);
  const steps = (tensor) => [...Array(count(tensor.steps)).keys()];
  return {
    values: arranged.values,
    problems: arranged.problems,
    elements: arranged.tensors.map((tensor) =>
      [...Array(arranged.programs).keys()].map((program) =>
        steps(tensor).map((step) => arranged.elements(tensor, program, step)))),
  };
});
console.log(JSON.stringify(all));
"""


@needs_node
@pytest.mark.parametrize("name", KERNELS)
def test_the_page_has_the_elements_that_eval_gives(name):
    model = model_of(kernel_of(name).definition)
    free = [model.values[leaf] for leaf in model.labels if leaf not in model.links]
    sizes = [free, [value + 2 * (value > 4) for value in free]]
    for case in run_model(model, f"const SIZES = {json.dumps(sizes)};{ALL_ELEMENTS}"):
        assert case["problems"] == []
        values = dict(zip(model.labels, case["values"]))
        for view, got in zip(model.views, case["elements"]):
            # A size of 1 may be left out of the outermost shape, so only the elements' order counts.
            wanted = view.tensor.eval(values)
            np.testing.assert_array_equal(np.array(got).reshape(-1), wanted.reshape(-1))


def dilated(x, y):
    tiled = x.pad(((1, 2), (0, 3))).tile((3, 2), strides=(2, 1), dilation=(2, 1), floor_mode=True)
    return tiled[:, ::2], y.permute((1, 0)).tile((2, 2))[1:].unsqueeze(0).squeeze(0).flatten()


@needs_node
def test_pads_steps_and_slices_are_as_eval_has_them():
    x, y = Tensor(shape=(9, 7), name="x"), Tensor(shape=(6, 8), name="y")
    for tensor in dilated(x, y):
        model = Model("t", [View("t", tensor)], {}, {}, {})
        (case,) = run_model(model, f"const SIZES = [[]];{ALL_ELEMENTS}")
        got = np.array(case["elements"][0])
        np.testing.assert_array_equal(got.reshape(-1), tensor.eval().reshape(-1))


@needs_node
@pytest.mark.parametrize("seeds", [range(100), range(100, 200)], ids=["first", "second"])
def test_chains_of_operations_are_as_numpy_executes_them(seeds):
    """Sizes and operands are symbols, whose values the page is given."""
    scripts, expected = [(SCRIPTS / "arrangement.js").read_text(), "const all = [];"], []
    for seed in seeds:
        shape, steps, wanted = random_chain(seed)
        source = Tensor(len(shape), name="x")
        replace, symbols = symbols_for_some_numbers(seed)
        tensor = source
        for step in steps:
            tensor = step.apply(tensor, replace)
        model = Model("t", [View("x", tensor)], {}, {source: shape, **symbols}, {})
        scripts.append(f"{{ {model.script()} {CHAIN} }}")
        expected.append(wanted.data.reshape(-1).tolist())
    assert run(*scripts, "console.log(JSON.stringify(all));") == expected


CHAIN = """
const arranged = new Arranged(MODEL, MODEL.knobs.map(({ value }) => value));
const [tensor] = arranged.tensors;
const found = arranged.problems.length ? [arranged.problems] : [];
for (let program = 0; program < arranged.programs; program++) {
  for (let step = 0; step < count(tensor.steps); step++) {
    found.push(arranged.elements(tensor, program, step));
  }
}
all.push(found.flat());
"""


SURVEY = """
const arranged = new Arranged(MODEL, MODEL.knobs.map(({ value }) => value));
console.log(JSON.stringify(arranged.tensors.map((tensor) => [...arranged.survey(tensor).shared])));
"""


@needs_node
def test_elements_that_two_programs_store_are_found():
    x, y = Tensor(shape=(8,), name="x"), Tensor(shape=(10,), name="y")
    overlapping = y.tile((4,), strides=(2,))
    tensors = [View("x", x.tile((4,), strides=(2,))[:1]), View("y", overlapping, False, True)]
    model = Model("t", tensors[1:], {}, {}, {})
    (shared,) = run_model(model, SURVEY)
    counts = np.unique(overlapping.eval(), return_counts=True)
    assert sorted(shared) == [e for e, n in zip(*counts) if n > 1 and e >= 0]


@needs_node
def test_a_tensor_that_is_only_read_has_no_conflicts():
    model = Model("t", [View("x", Tensor(shape=(8,)).tile((4,), strides=(2,)))], {}, {}, {})
    assert run_model(model, SURVEY) == [[]]


@needs_node
def test_sizes_that_break_a_rule_are_told():
    model = model_of(sdpa.kernel.definition)
    free = [leaf for leaf in model.labels if leaf not in model.links]
    wrong = [3 if model.labels[leaf] == "query.shape[1]" else model.values[leaf] for leaf in free]
    (case,) = run_model(model, f"const SIZES = {json.dumps([wrong])};{ALL_ELEMENTS}")
    assert (
        "The outermost shapes must be the same, and are query (2, 3, 3, 1)" in case["problems"][0]
    )


@needs_node
def test_what_an_operation_needs_is_told():
    x = Tensor(2, name="x")
    model = Model("t", [View("x", x.tile((4, 4)).squeeze(1))], {}, {x: (8, 4)}, {})
    (case,) = run_model(model, f"const SIZES = [[8, 5]];{ALL_ELEMENTS}")
    assert case["problems"] == ["squeeze of x needs a size of 1 in dimension 1; it is 2."]


def test_a_page_is_small_and_asks_for_nothing():
    sizes = {"input": (64, 64), "other": (64, 64), "output": (64, 64), "BLOCK_SIZE_M": 16}
    page = visualize_kernel(mm.kernel.definition, sizes)
    assert len(page.html.encode()) < 300_000
    assert "default-src 'none'" in page.html
    assert re.findall(r"https?:|\bsrc=|\bhref=|@import|url\(|fetch\(|XMLHttp", page.html) == []


def test_a_page_cannot_be_broken_by_the_text_of_a_function():
    def arrangement(x):
        return (x.tile((2,)),)  # </script> <!--SCRIPT-->

    page = visualize_arrangement(arrangement, (Tensor(1),))
    assert page.html.count("</script>") == 1
    assert page.html.count("const MODEL") == 1


def test_the_wheel_has_the_scripts(tmp_path):
    pytest.importorskip("hatchling", reason="needs hatchling, from requirements/test.txt")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("page.html", "page.css", *page_module.SCRIPTS):
        assert f"ninetoothed/visualization/{name}" in names


def test_a_notebook_shows_the_page_in_a_frame():
    page = visualize_kernel(mm.kernel.definition)
    frame = page._repr_html_()
    assert frame.startswith('<iframe title="mm"') and "<!doctype" not in frame
    assert "&lt;!doctype html&gt;" in frame


def test_a_page_is_saved(tmp_path):
    page = visualize_kernel(add.kernel.definition)
    page.save(tmp_path / "add.html")
    assert (tmp_path / "add.html").read_text(encoding="utf-8") == page.html
    assert "characters; .save(path) writes it>" in repr(page)


def test_a_parameter_that_the_program_does_not_touch_is_not_shown():
    def application(x, like, y):
        y = x

    def arrangement(x, like, y):
        return x.tile((like.shape[0],)), like.tile((4,)), y.tile((like.shape[0],))

    tensors = tuple(Tensor(1, shape_options={"constexpr": True}) for _ in range(3))
    kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="copy")
    page = visualize_kernel(kernel.definition, {"x": (8,), "like": (4,), "y": (8,)})
    assert re.findall(r"^  name: \"(\w+)\"", page.html, re.MULTILINE) == ["x", "y"]
    assert "No program has a tile of like, which is not shown." in page.html


@pytest.mark.parametrize(
    ("arrangement", "title"),
    [
        (mm.arrangement, "mm"),
        (functools.partial(mm.arrangement, BLOCK_SIZE_M=4), "mm"),
        (dilated, "dilated"),
        (lambda x, y: (x, y), "test_page"),
    ],
)
def test_a_page_is_called_as_what_it_shows(arrangement, title):
    assert page_module._title(arrangement) == title
