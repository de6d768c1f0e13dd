"""Programs that are drawn are well formed after each pass; a rule of padding that is broken is noticed
before anything is run."""

from __future__ import annotations

import warnings

import pytest

pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("torch", reason="needs PyTorch")

from ninetoothed import passes  # noqa: E402
from ninetoothed.errors import NineToothedError  # noqa: E402
from ninetoothed.launch.recorded_calls import definition_of  # noqa: E402
from ninetoothed.passes.padding.arguments import Arguments  # noqa: E402
from ninetoothed.program.nodes import Masked  # noqa: E402
from ninetoothed.program.verify import MalformedProgramError, verify  # noqa: E402
from tests.hunt import generate  # noqa: E402
from tests.hunt.executions import _buffers, loaded  # noqa: E402
from tests.hunt.text import module  # noqa: E402

PROGRAMS = 60


def verified(seed: int) -> bool:
    """Whether a program was accepted; its passes' results are verified."""
    drawn = generate.program(seed)
    constants = {f"S{size}": size for size in drawn.symbols}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with loaded(module(drawn, True), drawn.seed) as made:
                _, tensors = _buffers(drawn, "cpu")
                call = made.kernel.call_of(*tensors, *drawn.given, **constants)
                program = definition_of(made.kernel, call).program
                for each in passes.PASSES:
                    program = each.run(program)
                    verify(program)
        except NineToothedError:
            return False
    return True


def test_after_each_pass_programs_are_well_formed():
    assert sum(map(verified, range(PROGRAMS))) > 0.9 * PROGRAMS


def nothing(arguments, index, identity, axis=None):
    """Reductions take padding in."""


def zero(arguments, index, identity, axis=None, mask=Arguments.mask):
    """The identity is 0 whatever is reduced."""
    mask(arguments, index, "zero", axis)


def fewer(arguments, index, identity, axis=None, mask=Arguments.mask):
    """One condition of several is dropped."""
    mask(arguments, index, identity, axis)
    masked = arguments.get(index)
    if isinstance(masked, Masked) and len(masked.masks) > 1:
        masked.masks = masked.masks[:-1]


@pytest.mark.parametrize("broken", [nothing, zero, fewer])
def test_a_broken_rule_is_noticed(broken, monkeypatch):
    monkeypatch.setattr(Arguments, "mask", broken)

    with pytest.raises(MalformedProgramError, match="takes elements that do not exist"):
        for seed in range(PROGRAMS):
            verified(seed)
