"""Programs within which no tensor ends: the text, the machine's accesses, and the results."""

from __future__ import annotations

import re

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from examples import add, mm, softmax  # noqa: E402
from ninetoothed.backends.base import Argument, Call  # noqa: E402
from ninetoothed.backends.triton.compiler.specialized import Specialized  # noqa: E402
from ninetoothed.backends.triton.planning.planner import compiled_for  # noqa: E402
from ninetoothed.backends.triton.specialization.target import Target  # noqa: E402
from ninetoothed.backends.triton.translation import specialize  # noqa: E402
from ninetoothed.language import dtypes  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402
from tests.triton.options.cases import full_tile_versioning as cases  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")

QUESTION = "if has_all:"


def sum_of(size: int, options=(), alignment: int = 16) -> tuple[Specialized, Config]:
    vector = Argument((size,), (1,), dtypes.float16, alignment)
    names = ("input", "other", "output")
    call = Call(dict.fromkeys(names, vector), constants={"BLOCK_SIZE": 1024})
    config = Config((), 4, 3, options)
    return specialize(add.kernel.definition, call, config), config


def text(size: int, **how) -> str:
    return sum_of(size, **how)[0].emitted.text


@pytest.mark.parametrize("options", [(), (("program_coarsening", 4),)], ids=["plain", "coarsened"])
def test_full_programs_move_sixteen_bytes_at_a_time_whatever_the_size(options) -> None:
    specialized, config = sum_of(100_003, options)
    ptx = compiled_for(add.kernel.definition, specialized, Target.parse(("cuda", 90)), config).asm[
        "ptx"
    ]
    assert len(re.findall(r"ld\.global.*\.v4\.b32", ptx)) == 2 * dict(options).get(
        "program_coarsening", 1
    )
    full, other = specialized.emitted.text.split("else:")
    assert QUESTION in full and "mask=" not in full and other.count("mask=") == 3


@pytest.mark.parametrize(
    "size, alignment, why",
    [
        (100_008, 16, "the end is a multiple of 16 bytes"),
        (99_328, 16, "there are no masks"),
        (1003, 16, "there is one program"),
        (100_003, 2, "the addresses allow no more"),
    ],
)
def test_nothing_is_asked_where_that_gains_nothing(size, alignment, why) -> None:
    assert QUESTION not in text(size, alignment=alignment), why


def test_what_a_loop_or_a_whole_row_does_is_not_written_twice() -> None:
    rows = torch.empty(64, 1001, dtype=torch.half)
    call = softmax.kernel.call_of(rows, rows)
    assert (
        QUESTION not in specialize(softmax.kernel.definition, call, Config((), 4, 3)).emitted.text
    )
    padded = torch.empty(1000, 1008, dtype=torch.half)[:, :1001]
    call = mm.kernel.call_of(padded, padded.T, torch.empty(1000, 1000, dtype=torch.half))
    values = {mm.kernel.names[symbol]: 64 for symbol in mm.kernel.definition.meta_symbols}
    config = Config(tuple(values.items()), 4, 3)
    assert QUESTION not in specialize(mm.kernel.definition, call, config).emitted.text


@pytest.mark.parametrize("options", ["program_coarsening=1", "program_coarsening=4"])
def test_cases(options: str) -> None:
    assert failures(cases.__name__, options) == {}
