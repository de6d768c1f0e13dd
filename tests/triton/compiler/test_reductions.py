"""No reduction is lowered over lanes of other rows: where lanes along its dimension are no neighbours, Triton
3.6 reduces over those that are (a wrong minimum on an H200, of a flipped tile that was reshaped)."""

from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("triton", reason="needs Triton's compiler")
torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
from ninetoothed.backends.triton.compiler import versions  # noqa: E402
from ninetoothed.backends.triton.compiler.reductions import rearranged  # noqa: E402
from tests.contract.tensors import test_reshaped as reshaped  # noqa: E402

_LANES = re.compile(
    r"^(#\w+) = #ttg\.linear<\{register = .*, lane = (.*), warp = (.*), block = ", re.M
)
_REDUCED = re.compile(
    r'"tt\.reduce"\([^\n]*axis = (\d+).*?\}\) : \(tensor<[\dx]+x\w+, (#\w+)>', re.S
)


def _along(bases, axis):
    return [place for place, base in enumerate(bases) if base[axis]]


@pytest.mark.skipif(
    versions.reduces_in_any_layout(), reason="Triton lowers them rightly from 3.7 on"
)
@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("row", reshaped.ROWS, ids=lambda row: row.application.__name__)
def test_lanes_along_a_reduced_dimension_are_neighbours(row, num_warps):
    kernel = ninetoothed.make(row.arrangement, row.application, row.tensors)
    x, y = torch.zeros(row.shape), torch.zeros(row.result)
    text = kernel.compile(x, y, target=("cuda", 90), num_warps=num_warps).asm["ttgir"]
    layouts = {name: [*map(json.loads, bases)] for name, *bases in _LANES.findall(text)}
    found = [(int(axis), layouts[name]) for axis, name in _REDUCED.findall(text) if name in layouts]
    assert found
    for axis, (lanes, warps) in found:
        lanes = _along(lanes, axis)
        assert lanes == [*range(lanes[0], lanes[0] + len(lanes))] if lanes else not warps


PROGRAM = """\
#linear = #ttg.linear<{{register = [[0, 2]], lane = {lanes}, warp = {warps}, block = []}}>
#loc = loc(unknown)
module attributes {{"ttg.num-warps" = 2 : i32}} {{
  tt.func @first(%x: tensor<4x32xf32, #linear>, %i: tensor<4x32xi32, #linear>) {{
    %0:2 = "tt.reduce"(%x, %i) <{{axis = 1 : i32}}> ({{
    ^bb0(%a: f32 loc(#loc), %b: i32 loc(#loc), %c: f32 loc(#loc), %d: i32 loc(#loc)):
      tt.reduce.return %a, %b : f32, i32 loc(#loc)
    }}) : (tensor<4x32xf32, #linear>, tensor<4x32xi32, #linear>) -> \
(tensor<4xf32, #ttg.slice<{{dim = 1, parent = #linear}}>>, \
tensor<4xi32, #ttg.slice<{{dim = 1, parent = #linear}}>>) loc(#loc)
    %1 = "tt.reduce"(%0#1) <{{axis = 0 : i32}}> ({{
    ^bb0(%a: i32 loc(#loc), %b: i32 loc(#loc)):
      tt.reduce.return %a : i32 loc(#loc)
    }}) : (tensor<4xi32, #ttg.slice<{{dim = 1, parent = #linear}}>>) -> i32 loc(#loc)
    use %0#0, %0#10 loc(#loc)
  }} loc(#loc)
  tt.func @second(%0: f32) {{
    use %0#0 loc(#loc)
  }} loc(#loc)
}} loc(#loc)
"""

NEIGHBOURS = [[0, 1], [0, 4], [0, 8], [1, 0], [2, 0]]


def test_what_is_lowered_rightly_is_left_as_it_is():
    program = PROGRAM.format(lanes=NEIGHBOURS, warps=[[0, 16]])
    assert rearranged(program) == program
    assert rearranged(program.replace("linear", "blocked")) == program.replace("linear", "blocked")


@pytest.mark.parametrize(
    "lanes, warps",
    [
        ([[0, 1], [1, 0], [0, 4], [0, 8], [2, 0]], [[0, 16]]),
        # Where several warps have parts, other dimensions' lanes are told by their numbers too.
        ([[1, 0], [0, 1], [0, 4], [0, 8], [2, 0]], [[0, 16]]),
    ],
)
def test_operands_are_converted_and_results_back(lanes, warps):
    found = rearranged(PROGRAM.format(lanes=lanes, warps=warps))
    assert f"#grouped0 = #ttg.linear<{{register = [[0, 2]], lane = {NEIGHBOURS}, warp" in found
    a_slice = "#ttg.slice<{dim = 1, parent = "
    for line in (
        "%grouped.0 = ttg.convert_layout %x : tensor<4x32xf32, #linear> -> tensor<4x32xf32, #grouped0>",
        "%grouped.1 = ttg.convert_layout %i : tensor<4x32xi32, #linear> -> tensor<4x32xi32, #grouped0>",
        '%grouped.2:2 = "tt.reduce"(%grouped.0, %grouped.1) <{axis = 1 : i32}> ({',
        "}) : (tensor<4x32xf32, #grouped0>, tensor<4x32xi32, #grouped0>) -> "
        f"(tensor<4xf32, {a_slice}#grouped0}}>>, tensor<4xi32, {a_slice}#grouped0}}>>)",
        f"%grouped.3 = ttg.convert_layout %grouped.2#0 : tensor<4xf32, {a_slice}#grouped0}}>> "
        f"-> tensor<4xf32, {a_slice}#linear}}>>",
        "use %grouped.3, %0#10",
    ):
        assert f"    {line} loc(#loc)\n" in found or f"    {line}\n" in found
    _, second = found.split("tt.func @second")
    assert "use %0#0 loc" in second


def test_the_dimension_of_a_slice_is_found_in_what_was_sliced():
    """Along the rows lanes are no neighbours, in the tile that has columns no more."""
    found = rearranged(
        PROGRAM.format(lanes=[[1, 0], [0, 1], [0, 4], [0, 8], [2, 0]], warps=[[0, 0]])
    )
    assert '= "tt.reduce"(%x, %i)' in found
    assert f"lane = {[[1, 0], [2, 0], [0, 1], [0, 4], [0, 8]]}" in found
    assert re.search(
        r"(%grouped\.\d) = ttg.convert_layout %0#1 .*\n +%1 = \"tt.reduce\"\(\1\)", found
    )
