"""What a person does with a page of an arrangement: points, steps, slides. In a real browser.

``NINETOOTHED_SCREENSHOTS=<folder>`` keeps a picture of each test's page, for somebody to look at.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from examples import add, conv2d, mm, sdpa
from ninetoothed import Tensor
from ninetoothed.visualization import visualize_arrangement, visualize_kernel
from tests.visualization.browser import EXECUTABLE, NAMES, Browser

pytestmark = pytest.mark.skipif(
    EXECUTABLE is None, reason=f"needs a browser: none of {', '.join(NAMES)} is on the path"
)

SHAPES = {"input": (64, 64), "other": (64, 64), "output": (64, 64), "BLOCK_SIZE_M": 16}


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.fixture
def show(browser, tmp_path, request):
    """Opens a page in the browser; afterwards nothing went wrong in it and nothing was asked for."""

    def opened(page):
        browser.requests.clear()
        browser.errors.clear()
        page.save(tmp_path / "page.html")
        browser.open(tmp_path / "page.html")
        return browser

    yield opened
    browser.hover("h1")
    folder = os.environ.get("NINETOOTHED_SCREENSHOTS")
    if folder:
        browser.screenshot(Path(folder) / f"{request.node.name}.png")
    assert browser.errors == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:"))] == []


def data(browser, tensor, key):
    return browser.run(f"document.querySelector('[data-tensor={tensor}]').dataset.{key}")


def program(browser):
    return browser.run("document.querySelector('#summary').dataset.program")


def summary(browser):
    return browser.run("document.querySelector('#summary').textContent")


def step(browser):
    return browser.run("document.querySelector('.stepper output').textContent")


def colour(browser, tensor, x, y):
    """The red, green, blue and opacity of a point of a source, by fractions of its picture."""
    return browser.run(
        f"(() => {{ const c = document.querySelector('[data-tensor={tensor}] canvas');"
        f"return [...c.getContext('2d').getImageData({x} * c.width, {y} * c.height, 1, 1).data]; }})()"
    )


def slide(browser, knob, value):
    """Puts a slider where it stands for a value, as dragging it does."""
    browser.run(
        f"(() => {{ const e = document.querySelector('[data-knob=\"{knob}\"]'); e.value = {value};"
        "e.dispatchEvent(new Event('input')); })()"
    )


def test_pointing_at_a_program_lights_its_elements(show):
    browser = show(visualize_kernel(mm.kernel.definition, SHAPES))
    assert program(browser) == "(0, 0)"
    dark = colour(browser, "output", 0.6, 0.4)

    browser.hover("#grid canvas", 0.62, 0.4)

    assert program(browser) == "(1, 2)"
    assert [data(browser, name, "lit") for name in ("input", "other", "output")] == ["256"] * 3
    lit = colour(browser, "output", 0.6, 0.4)
    assert lit != dark and colour(browser, "output", 0.1, 0.1) == dark
    # Of the input it reads the second row of tiles, now the first of them, of the other the third column.
    assert colour(browser, "input", 0.1, 0.4) != colour(browser, "input", 0.6, 0.4) != dark
    assert "Program (1, 2), at k = 0, reads input[0] (256 elements)" in summary(browser)


def test_stepping_walks_through_the_middle_level(show):
    browser = show(visualize_kernel(mm.kernel.definition, SHAPES))
    first = colour(browser, "input", 0.1, 0.1)

    browser.click(".stepper .on")

    assert step(browser) == "k = 1: step 2 of 4"
    assert colour(browser, "input", 0.35, 0.1) == first != colour(browser, "input", 0.1, 0.1)
    assert colour(browser, "output", 0.1, 0.1) != colour(browser, "output", 0.35, 0.1)

    browser.press("ArrowRight")
    assert step(browser) == "k = 2: step 3 of 4"
    browser.press("ArrowLeft")
    browser.click(".stepper .back")
    browser.click(".stepper .back")
    assert step(browser) == "k = 3: step 4 of 4"
    browser.press("ArrowDown")
    assert program(browser) == "(0, 1)"
    browser.press("ArrowUp")
    assert program(browser) == "(0, 0)"


def test_playing_walks_by_itself_until_it_is_stopped(show):
    browser = show(visualize_kernel(mm.kernel.definition, SHAPES))

    browser.click(".stepper .play")

    deadline = time.monotonic() + 20
    while step(browser) == "k = 0: step 1 of 4":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    browser.run("document.activeElement.blur()")
    browser.press(" ")
    stopped = step(browser)
    time.sleep(1.5)
    assert step(browser) == stopped


def test_sliding_changes_sizes_and_what_follows_from_them(show):
    browser = show(visualize_kernel(mm.kernel.definition, SHAPES))

    slide(browser, "input.shape[1]", 40)
    slide(browser, "BLOCK_SIZE_M", 5)  # A power of two.

    shapes = browser.run(
        "[...document.querySelectorAll('.tensor .shape')].map((e) => e.textContent)"
    )
    assert shapes == ["(64, 40)", "(40, 64)", "(64, 64)"]
    assert browser.run("document.querySelector('#grid .shape').textContent") == "(2, 4): 8 programs"
    browser.click(".stepper .back")
    assert step(browser) == "k = 2: step 3 of 3"
    # 32 rows of 16, of which 8 exist.
    assert (data(browser, "input", "lit"), data(browser, "input", "padding")) == ("256", "256")
    assert "256 of the tile are padding" in summary(browser)


def test_a_slider_moves_by_keys_and_does_not_step(show):
    browser = show(visualize_kernel(mm.kernel.definition, SHAPES))
    browser.run("document.querySelector('[data-knob=\"input.shape[0]\"]').focus()")

    browser.press("ArrowRight")

    assert browser.run("document.querySelector('.tensor .shape').textContent") == "(65, 64)"
    assert step(browser) == "k = 0: step 1 of 4"


def test_padding_is_hatched(show):
    browser = show(visualize_kernel(add.kernel.definition))

    browser.hover("#grid canvas", 0.9)

    assert program(browser) == "(2,)"
    assert (data(browser, "output", "lit"), data(browser, "output", "padding")) == ("2", "2")
    # A strip of a padding element has lines and gaps, one of an element has not.
    strip = (
        "(() => { const c = document.querySelector('[data-tensor=output] canvas');"
        "const p = c.getContext('2d').getImageData(FROM * c.width, c.height / 2, c.width / 20, 1).data;"
        "return new Set(p.filter((_, i) => i % 4 === 3)).size; })()"
    )
    assert browser.run(strip.replace("FROM", "11.2 / 12")) > 1
    assert browser.run(strip.replace("FROM", "8.2 / 12")) == 1


def test_elements_that_two_programs_store_are_red(show):
    x, y = Tensor(1), Tensor(1)

    def arrangement(x, y):
        return x.tile((4,)), y.tile((4,), strides=(3,))

    browser = show(visualize_arrangement(arrangement, (x, y), {"x": (16,), "y": (13,)}))

    assert data(browser, "y", "shared") == "3" and data(browser, "x", "shared") == "0"
    assert "3 elements are stored by more than one program" in summary(browser)
    red, green, blue, _ = colour(browser, "y", 6.5 / 13, 0.5)
    assert red > 180 and green < 80 and blue < 90


def test_pointing_at_an_element_tells_whose_it_is_and_why(show):
    browser = show(visualize_kernel(mm.kernel.definition, SHAPES))

    browser.hover("[data-tensor=input] canvas", 20.5 / 64, 3.5 / 64)

    readout = browser.run("document.querySelector('[data-tensor=input] .readout').textContent")
    assert (
        "input[3, 20] is element (3, 4) of program (0, 0)'s input[1]; 4 programs have it" in readout
    )
    assert "BLOCK_SIZE_K * k + i_1\n        = 16 * 1 + 4 = 20" in readout

    browser.hover("h1")
    readout = browser.run("document.querySelector('[data-tensor=input] .readout').textContent")
    assert "is element" not in readout


def test_sizes_that_break_a_rule_are_said(show):
    browser = show(visualize_kernel(sdpa.kernel.definition))
    assert browser.run("document.querySelector('#problems').hidden")

    slide(browser, "query.shape[1]", 3)

    problem = browser.run("document.querySelector('#problems').textContent")
    assert "The outermost shapes must be the same, and are query (2, 3, 3, 1)" in problem
    assert "No program runs" in summary(browser)
    slide(browser, "query.shape[1]", 4)
    assert browser.run("document.querySelector('#problems').hidden")
    assert program(browser) == "(0, 0, 0, 0)"


def test_a_convolution_follows_its_windows(show):
    browser = show(visualize_kernel(conv2d.kernel.definition))

    browser.hover("#grid canvas", 0.5, 0.99)
    slide(browser, "input.shape[2]", 9)

    assert browser.run("document.querySelector('[data-tensor=output] .shape').textContent") == (
        "(2, 10, 7, 6)"
    )
    assert browser.run("document.querySelector('#problems').hidden")


def test_large_sizes_say_what_is_left_out(show):
    sizes = dict.fromkeys(("input", "other", "output"), (2048, 2048))
    browser = show(visualize_kernel(mm.kernel.definition, sizes))

    note = browser.run("document.querySelector('#grid .readout').textContent")
    assert "elements that two programs store are not looked for" in note
    assert data(browser, "output", "shared") == "unknown"
    browser.hover("#grid canvas", 0.99, 0.99)
    assert data(browser, "output", "lit") == str(512 * 512)


def test_an_empty_grid_is_said(show):
    browser = show(add.kernel.visualize((0,), (0,), (0,), BLOCK_SIZE=16))

    browser.hover("#grid canvas")
    browser.press("ArrowDown")

    assert summary(browser) == "The grid is empty: no program runs."
    slide(browser, "input.shape[0]", 16)
    assert program(browser) == "(0,)"


def test_tensors_of_other_middle_levels_have_walks_of_their_own(show):
    def arrangement(x, y):
        return x.tile((2, 2)).tile((2, 2)).tile((2, 2)), y.tile((2, 2)).tile((4, 4))

    tensors = (Tensor(shape=(16, 16)), Tensor(shape=(16, 16)))
    browser = show(visualize_arrangement(arrangement, tensors))
    lit = colour(browser, "y", 0.05, 0.05)

    browser.press("ArrowRight")

    steps = browser.run(
        "[...document.querySelectorAll('.stepper output')].map((e) => e.textContent)"
    )
    assert steps == [
        "k_0, k_1, k_2, k_3 = 0, 0, 0, 1: step 2 of 16",
        "k_0, k_1 = 0, 0: step 1 of 16",
    ]
    assert "reads x[0, 0][0, 1] (4 elements) and stores y[0, 0]" in summary(browser)
    assert colour(browser, "y", 0.05, 0.05) == lit
    assert browser.run("document.querySelector('#sizes').hidden")


def test_a_long_vector_is_drawn_in_rows(show):
    browser = show(add.kernel.visualize((100000,), (100000,), (100000,), BLOCK_SIZE=1024))

    browser.hover("[data-tensor=input] canvas", 0.5, 0.5)

    readout = browser.run("document.querySelector('[data-tensor=input] .readout').textContent")
    assert "is element (" in readout
    width, height = browser.run(
        "(({ width, height }) => [width, height])(document.querySelector('[data-tensor=input] canvas'))"
    )
    assert height > width / 4


def test_a_notebook_frame_runs_by_itself(browser, tmp_path):
    frame = visualize_kernel(mm.kernel.definition, SHAPES)._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<!doctype html><meta charset=utf-8>{frame}")
    browser.open(tmp_path / "notebook.html")

    inside = (
        "document.querySelector('iframe').contentDocument.querySelector('#summary').dataset.program"
    )
    assert browser.run(inside) == "(0, 0)"
