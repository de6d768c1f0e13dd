"""Where a value holds an element is part of its type: shown, and asked by the verifier after each pass."""

from __future__ import annotations

import dataclasses

import pytest

import ninetoothed
import ninetoothed.language as ntl
from examples import rms_norm, sdpa, softmax
from ninetoothed import Tensor, passes
from ninetoothed.program.inference import infer
from ninetoothed.program.nodes import Mask, Masked, clone, walk
from ninetoothed.program.types import type_of
from ninetoothed.program.verify import MalformedProgramError, verify
from tests.contract.application.meanings import CASES, made
from tests.parsing.applications import program_of

KERNELS = {"softmax": softmax.kernel, "rms_norm": rms_norm.kernel, "sdpa": sdpa.kernel}


def changed(program, replaced):
    """The program with another node for each masked value, and how many there are."""
    body = [clone(statement) for statement in program.body]
    for statement in body:
        for node in walk(statement):
            for name in node._fields:
                child = getattr(node, name, None)
                if isinstance(child, list):
                    child[:] = [replaced(c) if isinstance(c, Masked) else c for c in child]
                elif isinstance(child, Masked):
                    setattr(node, name, replaced(child))
    return dataclasses.replace(program, body=body)


def test_what_a_value_is_made_of_says_where_it_exists():
    text = softmax.kernel.definition.optimized.text(shows_types=True)

    assert "row: float32[1, input_size_1] where mask(input, (0, 1)) = " in text


def test_a_product_exists_where_a_row_and_a_column_do():
    (scores, *_) = (
        type_of(node.targets[0])
        for node in sdpa.kernel.definition.optimized.nodes()
        if getattr(getattr(node, "targets", [None])[0], "id", "") == "scores"
    )

    found = {(mask.origin.tile.parameter, mask.layout) for mask in scores.validity}
    assert found == {("query", (0, None)), ("key", (None, 0))}


def test_types_that_are_found_anew_keep_it():
    program = softmax.kernel.definition.optimized
    before = program.text(shows_types=True)
    infer(program)

    assert program.text(shows_types=True) == before


@pytest.mark.parametrize("name", KERNELS)
def test_after_each_pass_reductions_see_elements_alone(name):
    program = KERNELS[name].definition.program
    for each in passes.PASSES:
        program = each.run(program)
        infer(program)
        verify(program)


def test_a_mask_that_is_lost_is_noticed():
    program = softmax.kernel.definition.optimized
    lost = changed(program, lambda node: node.value)

    with pytest.raises(MalformedProgramError, match="max.* takes elements that do not exist"):
        verify(lost)


def test_another_identity_is_noticed():
    def otherwise(node):
        node.identity = "one"
        return node

    with pytest.raises(MalformedProgramError, match="takes elements that do not exist"):
        verify(changed(softmax.kernel.definition.optimized, otherwise))


def test_one_of_several_masks_that_is_lost_is_noticed():
    def fewer(node):
        assert all(isinstance(mask, Mask) for mask in node.masks)
        node.masks = node.masks[:-1]
        return node

    with pytest.raises(MalformedProgramError, match="of 1 masks of its argument 0 are there"):
        verify(changed(softmax.kernel.definition.optimized, fewer))


def scanned(x, y, n):
    y = ntl.cumsum(x + 1, axis=0)  # noqa: F841


def ordered(x, y, n):
    y = ntl.sort(x + 1)  # noqa: F841


def multiplied(x, y, n):
    y = ntl.dot(x + 1, x.T + 1)  # noqa: F841


def addressed(x, y, n):
    y.source[x.to(ntl.int32), 0] = 1


def stored(x, y, n):
    y.source[n, ntl.arange(0, 16)[None, :]] = x


@pytest.mark.parametrize("application", [scanned, ordered, multiplied, addressed, stored])
def test_whatever_takes_elements_alone_is_asked_for(application):
    program = program_of(application)
    for each in passes.PASSES:
        program = each.run(program)
    verify(program)

    with pytest.raises(MalformedProgramError, match="takes elements that do not exist"):
        verify(changed(program, lambda node: node.value))


def test_a_mask_of_another_tensor_is_noticed():
    def anothers(node):
        node.masks[0].tile.parameter = "output"
        return node

    with pytest.raises(MalformedProgramError, match="of 1 masks of its argument 1 are there"):
        verify(changed(softmax.kernel.definition.optimized, anothers))


def test_a_mask_along_another_dimension_is_noticed():
    def turned(node):
        node.masks[0].layout = node.masks[0].layout[::-1]
        return node

    with pytest.raises(MalformedProgramError, match="of 1 masks of its argument 1 are there"):
        verify(changed(softmax.kernel.definition.optimized, turned))


def programs():
    yield from ((name, kernel.definition.program) for name, kernel in KERNELS.items())
    yield from ((name, made(case)[0].definition.program) for name, case in CASES.items())


def test_following_padding_finds_the_types_that_inference_does():
    compared = 0
    for name, program in programs():
        for each in passes.PASSES[: passes.PASSES.index(passes.mask_padding) + 1]:
            program = each.run(program)
        nodes = [node for node in program.nodes() if "type" in node.__dict__]
        found = [type_of(node) for node in nodes]
        infer(program)

        assert found == [type_of(node) for node in nodes], name
        compared += len(nodes)
    assert compared > 400


def placed(x, y):
    column = ntl.full(x.shape, 1.0, ntl.float32)[:, None]
    y[0] = ntl.sum(ntl.argmax(ntl.where(x > 0, 2.0, column), axis=-2))


def test_an_axis_is_of_the_value_whatever_dimensions_a_mask_has():
    tensors = (Tensor(1), Tensor(1))
    kernel = ninetoothed.make(lambda x, y: (x.tile((8,)), y.tile((1,))), placed, tensors)

    verify(kernel.definition.optimized)
