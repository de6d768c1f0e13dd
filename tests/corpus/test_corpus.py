"""What is emitted is what the corpus has, byte for byte, in a process without Triton and PyTorch.

After a change that is meant, ``python -m tests.corpus --write`` writes it anew; read the difference.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.corpus.cases import Case, all_cases
from tests.corpus.package import DEFAULTS, NineToothedError, defined
from tests.corpus.record import stored, text_of

ROOT = Path(__file__).parents[2]

FEWEST_CASES, FEWEST_TEXTS = 480, 100

#: The options that change no text, and why.
WITHOUT_EFFECT: dict[str, str] = {}


def test_what_is_emitted_is_what_is_stored() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.corpus"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_enough_cases_and_texts() -> None:
    sections = stored().sections

    assert len(sections) >= FEWEST_CASES
    assert len(set(map(text_of, sections.values()))) > FEWEST_TEXTS


def emitted(case: Case) -> str:
    """A case's text; nothing where there is none."""
    try:
        return case.specialized().emitted.text
    except NineToothedError:
        return ""


def without(case: Case, option: str) -> Case:
    """The case without one of its options."""
    chosen = tuple(entry for entry in case.config.options if entry[0] != option)
    return replace(case, config=replace(case.config, options=chosen))


def test_every_option_changes_a_text() -> None:
    cases = all_cases()
    changing = {
        option
        for option, default in DEFAULTS.items()
        if any(
            emitted(case) != emitted(without(case, option))
            for case in cases
            if dict(case.config.options).get(option, default) != default
        )
    }

    assert changing == DEFAULTS.keys() - WITHOUT_EFFECT.keys()


def test_no_option_changes_the_program_that_it_is_given() -> None:
    for case in all_cases():
        program = defined(case.kernel, case.call).optimized
        before = program.text(shows_types=True)
        emitted(case)
        assert program.text(shows_types=True) == before, case.name
