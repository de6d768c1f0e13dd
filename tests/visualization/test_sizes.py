"""Sizes that a page needs and is not given: what follows, what is asked for."""

from __future__ import annotations

import functools
import json
import re

import pytest

from examples import add, conv2d, mm, sdpa
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ArgumentError, ArrangementError
from ninetoothed.visualization import visualize_arrangement, visualize_kernel
from ninetoothed.visualization.sizes import Links
from tests.visualization.models import model_of


def followed(html, label):
    """What the slider of a size changes besides."""
    knobs = json.JSONDecoder().raw_decode(html[html.index("knobs: ") + len("knobs: ") :])[0]
    return {
        each["label"]: each["text"]
        for knob in knobs
        if knob["label"] == label
        for each in knob["following"]
    }


@pytest.mark.parametrize(
    ("kernel", "label", "following"),
    [
        (mm.kernel, "input.shape[1]", {"other.shape[0]": None}),
        (mm.kernel, "input.shape[0]", {"output.shape[0]": None}),
        (
            conv2d.kernel,
            "input.shape[2]",
            {"output.shape[2]": "input.shape[2] - other.shape[2] + 1"},
        ),
        (
            sdpa.kernel,
            "query.shape[3]",
            {"key.shape[3]": None, "value.shape[3]": None, "output.shape[3]": None},
        ),
    ],
    ids=["inner", "rows", "convolution", "heads"],
)
def test_sizes_follow_one_another(kernel, label, following):
    assert followed(visualize_kernel(kernel.definition).html, label) == following


def test_a_size_that_was_given_otherwise_follows_nothing():
    page = visualize_kernel(mm.kernel.definition, {"input": (8, 8), "other": (12, 8)})
    assert followed(page.html, "input.shape[1]") == {}


def test_sizes_of_what_is_not_given_follow_from_what_is():
    model = model_of(mm.kernel.definition, {"output": (24, 40)})
    assert {model.labels[leaf]: value for leaf, value in model.values.items()} == {
        "input.shape[0]": 24,
        "input.shape[1]": 10,
        "other.shape[0]": 10,
        "other.shape[1]": 40,
        "output.shape[0]": 24,
        "output.shape[1]": 40,
        "BLOCK_SIZE_M": 4,
        "BLOCK_SIZE_N": 8,
        "BLOCK_SIZE_K": 4,
    }


def test_a_flattened_size_is_the_product_of_the_others():
    x, y = Tensor(3, name="x"), Tensor(1, name="y")
    links = Links()
    links.add([x.flatten().tile((4,)), y.tile((4,))])
    assert str(links.found[y.shape[0]]) == "x_size_0 * x_size_1 * x_size_2"


def test_names_and_objects_may_stand_for_sizes():
    x, block = Tensor(2, name="x"), Symbol("BLOCK", constexpr=True)
    arrangement = lambda x: x.tile((block, block))  # noqa: E731
    pages = [
        visualize_arrangement(arrangement, (x,), subs)
        for subs in (
            {"x": (8, 6), "BLOCK": 2},
            {x: {"shape": (8, 6)}, block: 2},
            {x: Tensor(shape=(8, 6)), block: 2},
        )
    ]
    assert len({page.html for page in pages}) == 1


def test_the_last_tensor_is_stored_unless_others_are_named():
    def stored(page):
        names = re.findall(r"^  name: \"(\w+)\"", page.html, re.MULTILINE)
        return [
            n
            for n, s in zip(names, re.findall(r"^  stored: (\w+)", page.html, re.M))
            if s == "true"
        ]

    show = functools.partial(visualize_arrangement, mm.arrangement, mm.tensors)
    assert stored(show()) == ["output"]
    assert stored(show(outputs=["input"])) == ["input"]
    assert stored(show(outputs=[mm.tensors[1]])) == ["other"]
    assert stored(visualize_kernel(mm.kernel.definition)) == ["output"]
    with pytest.raises(ArrangementError, match="`outputs` has 'outptu'.*Did you mean 'output'"):
        show(outputs=["outptu"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"inptu": (8, 8)},
            "'inptu' is neither a tensor nor a symbol of `mm`. Did you mean 'input'",
        ),
        ({"input": (8,)}, "subs got the shape \\(8,\\).*which has 2 dimensions"),
        ({"input": (8, 8), "output": (4, 64)}, "outermost shapes of the arranged tensors must be"),
        ({"BLOCK_SIZE_M": (4, 4)}, "subs got \\(4, 4\\) for `BLOCK_SIZE_M`"),
        ({"BLOCK_SIZE_M": Symbol("n")}, "begins with known sizes, and was given `n`"),
        ({3: 4}, "3 is neither"),
    ],
)
def test_wrong_sizes_are_told_at_the_call(given, message):
    with pytest.raises(ArrangementError, match=message) as raised:
        visualize_kernel(mm.kernel.definition, given)
    assert raised.value.location is not None and raised.value.location.file == __file__


def test_a_declared_size_stays_as_it_is():
    x = Tensor(shape=(4, None), name="x")
    with pytest.raises(
        ArrangementError, match=r"`x` was given the shape \(5, 8\).*it has \(4, 8\)"
    ):
        visualize_arrangement(lambda x: x.tile((2, 2)), (x,), {x: (5, 8)})


def test_an_arrangement_of_no_tensor_has_no_page():
    with pytest.raises(ArrangementError, match="returned no arranged tensor"):
        visualize_arrangement(lambda x: x, (Tensor(0),))


class Shaped:
    """An array without memory: it has a shape and nothing else."""

    def __init__(self, *shape):
        self.shape = shape


def test_a_kernel_takes_sizes_from_a_call():
    kernel = add.kernel
    page = kernel.visualize(Shaped(1000), Shaped(1000), (1000,), BLOCK_SIZE=64)
    assert '"label": "input.shape[0]", "value": 1000' in page.html
    assert '"label": "BLOCK_SIZE", "value": 64' in page.html
    assert (
        page.html
        == visualize_kernel(
            kernel.definition,
            dict.fromkeys(("input", "other", "output"), (1000,)) | {"BLOCK_SIZE": 64},
        ).html
    )


def test_a_call_may_say_what_the_tuner_would_choose():
    shapes = (Shaped(64, 32), Shaped(32, 16), Shaped(64, 16))
    page = mm.kernel.visualize(*shapes, BLOCK_SIZE_M=32)
    assert '"label": "BLOCK_SIZE_M", "value": 32' in page.html


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (((8, 8), (8, 8)), ArgumentError, "missing: output"),
        (((8, 8), (8, 8), 3), ArgumentError, "`output` has no shape of plain numbers"),
        (((8, 8), (8, 8), Shaped("many", 8)), ArgumentError, "in a jagged dimension, the longest"),
        (((8, 8), (8, 8), (4, 64)), ArrangementError, "outermost shapes"),
    ],
)
def test_a_call_that_does_not_fit_is_told(arguments, error, message):
    with pytest.raises(error, match=message):
        mm.kernel.visualize(*arguments)


def test_small_numbers_lie_within_the_bounds_that_were_declared():
    block = Symbol("BLOCK", constexpr=True, lower_bound=16, upper_bound=64)
    page = visualize_arrangement(
        lambda x: x.tile((block,)), (Tensor(1, name="x", shape_options={"upper_bound": 20}),)
    )
    assert '"label": "BLOCK", "value": 16, "powers": false, "least": 16, "most": 32' in page.html
    assert (
        '"label": "x.shape[0]", "value": 20, "powers": false, "least": 1, "most": 20' in page.html
    )
