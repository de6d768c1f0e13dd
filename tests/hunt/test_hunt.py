"""The hunt finds nothing in some hundreds of programs, and knows every operation of the table."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("torch", reason="needs PyTorch")

from ninetoothed.language import operations  # noqa: E402
from tests.hunt import executions, generate, reference, text, worker  # noqa: E402
from tests.hunt.__main__ import apart  # noqa: E402
from tests.hunt.broken_rules import MUTANTS  # noqa: E402
from tests.hunt.description import Parameter, Program, Step, gathered, with_shapes  # noqa: E402
from tests.hunt.forms import FORMS  # noqa: E402
from tests.hunt.memory import ATOMICS, content, places  # noqa: E402
from tests.hunt.values import Ambiguous, exact, rounded  # noqa: E402

ROOT = Path(__file__).parents[2]

#: The rows of the table of operations that the hunt does not draw, and why. The device's library is left
#: out as a whole: `tests/numpy/language` compares it, and no function of it knows of padding.
_REASONS = {
    "has no value of its own: a type, or what a type is made of": """
        block_type condition const constexpr constexpr_type dtype float8e4b15 float8e4b8 float8e5b16
        pi32_t pointer_type slice str_to_ty tensor tensor_descriptor tensor_descriptor_type tuple
        tuple_type void""",
    "addresses memory by pointer or descriptor: the user's own masks": """
        advance load load_tensor_descriptor make_block_ptr make_tensor_descriptor scatter store
        store_tensor_descriptor""",
    "is random: its bits are tested beside Triton's": """
        pair_uniform_to_normal philox philox_impl rand rand4x randint randint4x randn randn4x
        uint_to_uniform_float""",
    "gives what depends on the device or on how programs are numbered": """
        num_programs program_id swizzle2d target_info.cuda_capability_geq
        target_info.current_target target_info.is_cuda target_info.is_hip target_info.is_hip_cdna3
        target_info.is_hip_cdna4""",
    "checks or prints": """
        assume debug_barrier device_assert device_print static_assert static_print""",
    "is a compiler's alone, or takes what only a device has": """
        dot_scaled inline_asm_elementwise""",
    "depends on an order: tests/contract/atomics/test_atomics.py has cases": """
        atomic_cas atomic_xchg""",
    "is not drawn yet": """
        map_elementwise static_range""",
}

LEFT_OUT = {name: reason for reason, names in _REASONS.items() for name in names.split()}


@pytest.mark.parametrize(
    ("backends", "programs", "seed", "families"),
    [
        ("numpy", 130, 0, ""),
        ("interpreter,plain", 40, 10**6, ""),
        ("numpy,interpreter", 36, 7 * 10**6, "variables,padded-variables"),
        ("class,ahead", 16, 4 * 10**8, ""),
        ("numpy,interpreter,plain", 20, 30000023, "biased-chains"),
        ("options", 60, 5 * 10**6, "offered"),
        ("numpy,class,options", 12, 620000000, "long"),
    ],
)
def test_nothing_is_found(
    tmp_path: Path, backends: str, programs: int, seed: int, families: str
) -> None:
    kept = tmp_path / "hunt.json"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.hunt", "--backend", backends, "--json", str(kept)),
            *("--programs", str(programs), "--seed", str(seed), "--families", families),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert json.loads(kept.read_text())["programs"] == programs


def test_every_operation_is_drawn_or_left_out_for_a_reason() -> None:
    drawn = {row for form in FORMS.values() for row in form.rows}
    # Statements and expressions of their own.
    drawn |= {"full", "range", "zeros", *(f"atomic_{name}" for name in ATOMICS)}
    names = set(operations.TABLE)
    libdevice = {name for name in names if name.startswith("libdevice.")}
    assert drawn <= names
    assert names - drawn - libdevice == set(LEFT_OUT)


def test_each_broken_rule_is_one_of_the_package() -> None:
    counts = {
        name: (ROOT / mutant.file).read_text().count(mutant.before)
        for name, mutant in MUTANTS.items()
    }
    assert counts == dict.fromkeys(MUTANTS, 1)


def ended(connection: Any, seeds: range, *given: Any) -> None:
    """Tells of seeds until one at which the process ends, or the compiler is never done."""
    for seed in seeds:
        if seed == 3:
            os._exit(7)
        if seed == 5:
            with executions.limited(0.2, 0.5):
                # Nothing here asks for signals.
                sum(range(10**13))
        connection.send({"programs": 1, "findings": []})


def test_a_compiler_that_never_returns_is_a_finding_and_the_next_seeds_run() -> None:
    found = list(apart(ended, [range(7), range(7, 9)], 2, (False, math.inf)))
    crashes = [finding for each in found for finding in each["findings"]]
    assert sum(each.get("programs", 0) for each in found) == 7
    assert [(each["seed"], each["kind"]) for each in crashes] == [(3, "crash"), (5, "crash")]


def test_a_seed_gives_the_same_program() -> None:
    assert generate.program(7) == generate.program(7)


def test_half_of_a_dimension_is_that_of_the_dimension_it_bounds() -> None:
    keys = (("slice", ("half",), None, None), ("rest",), ("slice", None, ("half",), 2))
    assert text.expression(("part", "w", (), keys[1:])) == "w[..., :w.shape[-1] // 2:2]"
    assert text.expression(("part", "w", (), keys)) == (
        "w[w.shape[0] // 2:, ..., :w.shape[-1] // 2:2]"
    )


def test_the_reference_executes_what_is_drawn() -> None:
    for seed in range(20):
        assert reference.executed(generate.program(seed)).memory.buffers


def test_the_reference_rounds_the_least_numbers() -> None:
    held = rounded(np.array([2.0**-36, 1.4 * 2**-24, 3 * 2.0**-25, 5.0]), "float16")
    assert held.tolist() == [0, 2.0**-24, 2.0**-23, 5]


def test_the_reference_is_off_by_more_where_an_exponent_is_large() -> None:
    """Seed 206360129: of `exp` of -46 a device has 1.053065e-20 for 1.053062e-20."""
    compute = FORMS["exp"].compute
    small, large = (compute(exact(np.full(1, x), "float32")) for x in (-0.5, -46.0))
    assert abs(1.053065e-20 - large.data[0]) < large.error[0] < 1e-5 * large.data[0]
    assert small.error[0] < 2e-6 * small.data[0]
    assert FORMS["sigmoid"].compute(exact(np.full(1, 46.0), "float32")).error[0] < 4e-6


def test_the_reference_is_exact_about_the_largest_integers() -> None:
    most = 2**63 - 1
    numbers = exact(np.array([[most - 1, most, -most - 1, -most]]), "int64")
    computed = {
        name: FORMS[name].compute(numbers, **given).data.ravel().tolist()
        for name, given in {
            **dict.fromkeys(("max", "min", "argmax", "argmin"), {"axis": 0}),
            "sort": {"descending": True},
        }.items()
    }
    assert computed == {
        "max": [most],
        "min": [-most - 1],
        "argmax": [1],
        "argmin": [2],
        "sort": [most, most - 1, -most, -most - 1],
    }
    least = exact(np.full((1, 2), 2**62 + 5), "int64")
    assert FORMS["min"].compute(least, axis=None).data.tolist() == [2**62 + 5]


def test_the_reference_stores_what_is_computed_of_the_0_that_padding_reads_as() -> None:
    around, whole = Step(0, "pad", (((1, 1),),)), Step(0, "tile", ((5,),))
    x = Parameter("x", (3,), "float32", (around, whole))
    y = Parameter("y", (5,), "float32", (whole,))
    load, one = ("load", "x", ()), ("number", 1)

    def left(value: tuple[Any, ...]) -> list[float]:
        program = Program(0, "", (x, y), (("store", "y", (), value),))
        return list(reference.executed(program).memory.buffers["y"].data[places(y)[0]])

    before = content(Program(0, "", (x, y), ()), x)[places(x)[0]]
    doubled = ("form", "+", (), (("form", "*", (), (load, ("number", 2))), one))
    assert left(doubled) == [1, *(2 * before + 1), 1]
    truth = ("form", ">", (), (load, ("number", -1)))
    assert left(truth)[0] == left(truth)[-1] == 1
    for unsaid in ("cumsum", (("axis", 0), ("reverse", False)), (load,)), ("/", (), (one, load)):
        with pytest.raises(Ambiguous):
            left(("form", *unsaid))


def test_a_class_is_tried_with_other_sizes_than_the_programs_own() -> None:
    step = Step(0, "expand", ((-1, 2),), written="(-1, y.tile((4,)).shape[0])")
    x = Parameter("x", (3, 1), "float32", (step,))
    y = Parameter("y", (7,), "float32", (Step(0, "tile", ((4,),)),))
    found = with_shapes(Program(0, "", (x, y), ()), {"x": (3, 1), "y": (9,)})
    assert gathered(found.parameter("x")).shape(0) == (3, 3)
    drawn = generate.program(10, ("long",))
    shapes = [[p.shape for p in each.parameters] for each in worker.siblings(drawn)]
    assert shapes and [p.shape for p in drawn.parameters] not in shapes


@pytest.mark.parametrize("step", [Step(0, "squeeze", (0,)), Step(0, "expand", ((3,),))])
def test_sizes_that_an_arrangement_refuses_are_not_drawn(step: Step) -> None:
    assert gathered(Parameter("x", (1,), "float32", (step,))).data.size
    with pytest.raises(ValueError):
        gathered(Parameter("x", (2,), "float32", (step,)))


def test_a_float_is_given_beside_tensors_that_are_touched() -> None:
    x, y = Parameter("x", (3,), "float64", ()), Parameter("y", (3,), "float32", ())
    size, load = ("full", ("x", 0), 1.0, "float64"), ("load", "x", ())
    for value, is_wide in ((size, False), (load, True)):
        assert Program(0, "", (x, y), (("store", "y", (), value),)).is_wide is is_wide
