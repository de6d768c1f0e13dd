"""Programs that are written another way: every rewriting is drawn, and changes what it says and no more."""

from __future__ import annotations

import ast
import re

import pytest

pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("torch", reason="needs PyTorch")

from tests.hunt import generate, shrink, text, worker  # noqa: E402
from tests.hunt.spelling.respelled import respelled, spelling  # noqa: E402
from tests.hunt.spelling.rewritings import REWRITINGS  # noqa: E402

#: An application, and of each rewriting a line that it is found to have written of it.
APPLICATION = """\
def application(x, y, n, flag):
    a = ntl.full(x.dtype.shape, 0.0, ntl.float32)
    b = ntl.exp(a) + 1
    for k in range(x.shape[0]):
        a += ntl.maximum(a, x[k])
    if n > 2:
        b = b * 2
    else:
        b = a - n
    b = a + 1 if n > 1 else b - 2
    for j in range(3):
        b = b + ntl.where(0 < a < n, a, 1)
    y = a + b
"""

WRITTEN = {
    "loop_over_other_numbers": r"for k in \(0, 1\):",
    "loop_backwards": r"for j0_ in reversed\(range\(3\)\):\n        j = 3 - 1 - j0_",
    "loop_that_counts": r"j = 0\n    while j < 3:\n        b = .*\n        j \+= 1",
    "index_that_moves_on": r"i0_ = k\n        a \+?= .*x\[i0_\].*\n        i0_ = ntl.minimum\(ntl.program_id\(0\), 0\) \+ 1\n.*x\[i0_\]",
    "loop_in_two": r"for j in range\(3 // 2\):\n.*\n    for j in range\(3 // 2, 3\):",
    "loop_around_a_loop": r"for j0_ in (.*):\n        for",
    "branch_around": r"    (if|    if) .* == .*:\n",
    "branch_turned": r"if not n > 2:\n        b = a - n\n    else:\n        b = b \* 2",
    "branch_for_choice": r"if n > 1:\n        b = a \+ 1\n    else:\n        b = b - 2",
    "choice_for_branch": r"    b = b \* 2 if n > 2 else a - n",
    "augmented": r"a = a \+ ntl.maximum\(a, x\[k\]\)",
    "several_at_once": r"b, \w+ = \(.*\)",
    "under_a_second_name": r"b0_ = \[1, a\]\n.*b0_\[-1\]",
    "named_before": r"t0_ = ntl.exp\(a\)\n    b = t0_ \+ 1",
    "named_as_another_before": r"    c = (0|0\.5|True|a|b)\n    c = a \* 2",
    "comparisons_apart": r"0 < a and a < n",
    "helper_that_rebinds": r"for k in range\(x.shape\[0\]\):\n        h0_\(.*\)\n",
    "helper_that_returns": r"for k in range\(x.shape\[0\]\):\n        a = h0_\(.*\)\n",
    "helper_for_an_expression": r"b = h0_\(.*\) \+ 1",
}


def written(name: str, number: int) -> str:
    given = {"ranks": {"x": 1, "y": 1}, "numbers": ["n"], "flags": ["flag"]}
    source = APPLICATION
    if name == "several_at_once":
        source = source.replace("    if n > 2", "    b = b * 3\n    c = a * 2\n    if n > 2")
    if name == "index_that_moves_on":
        source = source.replace("    if n > 2", "        a *= x[1]\n    if n > 2", 1)
    if name == "named_as_another_before":
        source = source.replace("    if n > 2", "    c = a * 2\n    if n > 2")
    return respelled(source, ((name, number),), **given, levels={"x.shape[0]": 2})


@pytest.mark.parametrize("name", REWRITINGS)
def test_a_rewriting_writes_what_it_says(name: str) -> None:
    assert any(re.search(WRITTEN[name], written(name, number)) for number in range(400))


def test_every_rewriting_is_drawn_and_half_of_the_programs_are_as_they_were() -> None:
    drawn = [spelling(seed) for seed in range(400)]
    assert {name for each in drawn for name, _ in each} == set(REWRITINGS)
    assert 120 < sum(not each for each in drawn) < 280


def test_a_program_is_what_it_was_but_for_its_text() -> None:
    families = ("loops", "variables")
    found = [worker.drawn(seed, families) for seed in range(12)]
    assert found == [worker.drawn(seed, families) for seed in range(12)]
    (seed, program), *_ = (
        (seed, each) for seed, each in enumerate(found) if each.spelling and each.family == "loops"
    )
    as_it_was = generate.program(seed, ("loops",))
    assert program.body == as_it_was.body and text.module(program) != text.module(as_it_was)
    ast.parse(text.module(program))


def test_what_fails_as_it_was_is_written_so() -> None:
    program = next(each for seed in range(99) if (each := worker.drawn(seed, ("loops",))).spelling)
    first, *others = shrink.candidates(program)
    assert first.spelling == () and first.body == program.body
    count = len(program.spelling)
    assert [len(each.spelling) for each in others[:count]] == [count - 1] * count


def test_a_choice_reads_no_name_that_only_a_branch_gives() -> None:
    given = {"ranks": {"x": 1}, "numbers": ["n"], "flags": []}
    source = "def application(x, n):\n    if n == n:\n        v = x + 1\n    x = v\n"
    assert respelled(source, (("choice_for_branch", 1),), **given) == source
    known = source.replace("    if", "    v = x\n    if")
    assert "v = x + 1 if n == n else v" in respelled(known, (("choice_for_branch", 1),), **given)


def test_a_helper_gives_no_variable_of_a_loop_back() -> None:
    source = (
        "def application(x, n):\n    k = 0\n    for k in range(n):\n        x += k\n    k = k + 1\n"
    )
    given = {"ranks": {"x": 1}, "numbers": ["n"], "flags": []}
    helpers = [
        node
        for at in range(200)
        for node in ast.walk(ast.parse(respelled(source, (("helper_that_returns", at),), **given)))
        if isinstance(node, ast.FunctionDef) and node.name == "h0_"
    ]
    assert helpers
    for helper in helpers:
        assert not any(isinstance(node, ast.For) for node in ast.walk(helper))


def test_a_variable_that_a_helper_may_have_given_a_tile_is_lent_to_none() -> None:
    source = "def application(x, n):\n    v = {}\n    v *= 2\n"
    given = {"ranks": {"x": 1}, "numbers": ["n"], "flags": []}

    def lent(value: str) -> bool:
        of_value = source.format(value)
        texts = [respelled(of_value, (("helper_that_rebinds", at),), **given) for at in range(99)]
        return any(re.search(r"^    h0_\(v\)", text, re.MULTILINE) for text in texts)

    assert lent("ntl.exp(x)") and not lent("first(x)")


def test_what_a_function_of_the_applications_is_given_is_no_value_instead() -> None:
    source = "def application(x, y):\n    y = {}(x)\n"
    given = {"ranks": {"x": 1, "y": 1}, "numbers": [], "flags": []}

    def renamed(function: str) -> bool:
        of_function = source.format(function)
        texts = [respelled(of_function, (("under_a_second_name", at),), **given) for at in range(9)]
        return any("b0_ =" in text for text in texts)

    assert renamed("ntl.exp") and not renamed("first") and not renamed("functions[0]")
