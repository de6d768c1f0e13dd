"""Figures of tensors: which boxes are drawn where, in which files, and what is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples import mm
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ArrangementError, MissingPackageError
from ninetoothed.visualization import visualize
from ninetoothed.visualization.figure import boxes

REPOSITORY = Path(__file__).resolve().parents[2]
IMAGES = REPOSITORY / "docs" / "images"
MISFIT = Tensor(2, name="x")
BLOCKED = """
import sys
sys.modules["matplotlib"] = None
from ninetoothed import Tensor
from ninetoothed.visualization import visualize, visualize_arrangement
page = visualize_arrangement(lambda x: x.tile((2,)), (Tensor(1),))
assert "<!doctype html>" in page.html
try:
    visualize(Tensor(shape=(4, 4)))
except ImportError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def plt():
    """Matplotlib, without a window system, with no figure open."""
    matplotlib = pytest.importorskip(
        "matplotlib", reason="needs matplotlib, from requirements/test.txt"
    )
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    plt.close("all")
    yield plt
    plt.close("all")


def arranged(tensor):
    """The boxes of a tensor by depth, and its elements in the order in which they are drawn."""
    shapes = [tuple(map(int, level.shape)) for level in tensor.levels]
    found = list(boxes(shapes, tensor.eval()))
    return found, [box.element for box in found if box.element is not None]


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_a_level_is_a_box_around_those_of_the_next():
    tensor = Tensor(shape=(3, 5)).tile((2, 2)).tile((1, -1))
    found, elements = arranged(tensor)
    assert elements == tensor.eval().reshape(-1).tolist()
    for depth in range(4):
        assert sum(box.depth == depth for box in found) == [1, 2, 6, 24][depth]
    for outer, inner in zip(found, found[1:]):
        if inner.depth == outer.depth + 1:
            assert outer.x < inner.x and inner.x + inner.width < outer.x + outer.width
            assert outer.y < inner.y and inner.y + inner.height < outer.y + outer.height


def test_elements_do_not_overlap_whatever_the_number_of_dimensions():
    found, elements = arranged(Tensor(shape=(2, 3, 2, 3, 2)))
    places = {(box.x, box.y) for box in found if box.element is not None}
    assert elements == list(range(72)) and len(places) == 72
    assert all(
        abs(x - a) >= 1 or abs(y - b) >= 1 for x, y in places for a, b in places if (x, y) != (a, b)
    )


def test_rows_run_down_and_columns_across():
    found, _ = arranged(Tensor(shape=(2, 3)))
    x = {box.element: box.x for box in found}
    y = {box.element: box.y for box in found}
    assert x[0] < x[1] < x[2] and y[0] == y[1] == y[2] < y[3]


@pytest.mark.parametrize(
    ("ending", "start"),
    [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("SVG", b"<?xml")],
)
def test_the_ending_of_the_name_is_the_format(plt, tmp_path, ending, start):
    file = tmp_path / f"x.{ending}"
    visualize(Tensor(shape=(5, 7), name="x").tile((2, 4)), save_path=file)
    assert file.read_bytes().startswith(start)


def test_elements_bear_their_numbers_and_padding_none(plt):
    visualize(Tensor(shape=(3,), name="x").tile((2,)))
    (axes,) = plt.gcf().axes
    assert texts(axes) == ["x (3,), arranged as (2,) of (2,)", "0", "1", "2"]
    levels, elements, padding = axes.collections
    assert [len(c.get_paths()) for c in (levels, elements, padding)] == [3, 3, 1]
    assert padding.get_hatch() and not elements.get_hatch()


def test_calls_stack_in_the_current_figure(plt):
    input, other, output = mm.arrangement(*(Tensor(shape=(4, 4), name=n) for n in "abc"), 2, 2, 2)
    figure = plt.figure()
    visualize(input)
    height = figure.get_size_inches()[1]
    visualize(output)
    assert plt.gcf() is figure and figure.get_size_inches()[1] > 1.5 * height
    titles = [text for text in texts(figure.axes[0]) if "arranged" in text]
    assert titles == [
        "a (4, 4), arranged as (2, 2) of (2,) of (2, 2)",
        "c (4, 4), arranged as (2, 2) of (2, 2)",
    ]
    first, _, _, second, *_ = figure.axes[0].collections
    assert first.get_paths()[0].get_extents().y1 < second.get_paths()[0].get_extents().y0
    assert tuple(first.get_edgecolor()[0]) != tuple(second.get_edgecolor()[0])


def test_a_new_figure_begins_anew(plt):
    visualize(Tensor(shape=(2,), name="x"))
    plt.figure()
    visualize(Tensor(shape=(2,), name="y"))
    assert [text for text in texts(plt.gcf().axes[0]) if " " in text] == ["y (2,)"]


def test_a_colour_is_chosen(plt):
    visualize(Tensor(shape=(2,)), color="#ff0000")
    assert tuple(plt.gcf().axes[0].collections[1].get_facecolor()[0]) == (1, 0, 0, 1)


def test_an_empty_tensor_is_an_empty_box(plt):
    visualize(Tensor(shape=(0, 4), name="x").tile((2, 2)))
    (axes,) = plt.gcf().axes
    assert [len(c.get_paths()) for c in axes.collections] == [1, 0, 0]


def test_a_scalar_is_one_element(plt):
    visualize(Tensor(shape=(), name="x"))
    assert texts(plt.gcf().axes[0]) == ["x ()", "0"]


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (
            Tensor(2, name="x").tile((2, Symbol("BLOCK"))),
            r"x_size_0, x_size_1, BLOCK of Tensor\(x: .*are not known; replace symbols by numbers "
            r"first, as in visualize\(t.subs\(",
        ),
        (Tensor(shape=(4, None), name="x"), "x_size_1 of .* is not known"),
        (
            Tensor(shape=(300, 300), name="x"),
            "has 90000 elements, and a picture shows 65536 at most",
        ),
        (
            MISFIT.tile((2, 2)).squeeze(0).subs({MISFIT: {"shape": (4, 6)}}),
            "dimension 0, whose size is 2",
        ),
        (3, "draws a ninetoothed.Tensor, not int"),
    ],
)
def test_what_cannot_be_drawn_is_told(tensor, message):
    with pytest.raises(ArrangementError, match=message) as raised:
        visualize(tensor)
    assert raised.value.location.file == __file__


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"save_path": "x.docx"},
            "'x.docx' ends with no format of a picture; matplotlib writes .*svg",
        ),
        ({"save_path": "x"}, "ends with no format"),
        ({"color": "blurple"}, "'blurple' is no colour"),
    ],
)
def test_wrong_options_are_told_and_draw_nothing(plt, options, message):
    with pytest.raises(ArrangementError, match=message):
        visualize(Tensor(shape=(2,)), **options)
    assert plt.gcf().axes == []


def test_without_matplotlib_the_extra_is_named_and_pages_work():
    result = subprocess.run(
        [sys.executable, "-c", BLOCKED], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("MissingPackageError `visualize` draws with matplotlib")
    assert "pip install 'ninetoothed[visualization]'" in result.stdout
    assert issubclass(MissingPackageError, ImportError)


def test_the_pictures_of_the_documentation_are_of_today(plt, tmp_path):
    from docs.images.draw import draw, pictures

    draw(tmp_path)
    names = {f"{name}.svg" for name, _ in pictures()}
    assert names == {path.name for path in IMAGES.glob("*.svg")}
    for name in names:
        drawn, kept = (
            re.findall(r"<text[^>]*>(.*?)</text>", (folder / name).read_text())
            for folder in (tmp_path, IMAGES)
        )
        assert drawn == kept != []
