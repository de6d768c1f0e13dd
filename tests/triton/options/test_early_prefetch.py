"""Tiles asked for before the wait: of which kernels, and that nothing is read by it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from examples.llama import products  # noqa: E402
from ninetoothed.backends.triton.planning.choices import choices  # noqa: E402
from ninetoothed.backends.triton.printers.triton import LET_BEGIN, WAIT  # noqa: E402
from ninetoothed.backends.triton.specialization.target import Target  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of, specialize  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")

HOPPER, AMPERE = ("cuda", 90), ("cuda", 80)


def call(shape=(64, 512), block=4, columns=256):
    """A product of one row with a weight of some shape: the kernel, and the arguments of a call."""
    n, k = shape
    row, weight = (torch.empty(size, dtype=torch.bfloat16) for size in ((1, k), (1, n, k)))
    output = torch.empty(1, n, dtype=torch.bfloat16)
    arguments = (row, row[0], weight, 1e-5, output, output, True)
    return (
        products.make_few(products.plain, 1),
        arguments,
        {
            "BLOCK_SIZE_N": block,
            "BLOCK_SIZE_K": columns,
        },
    )


def source(kernel, arguments, constants, target=HOPPER, **blocks):
    """What is emitted for a call, with the options that the environment fixes."""
    found = kernel.call_of(*arguments, **constants)
    definition = kernel.specializations.of(found.constants)
    plain = Config(tuple(blocks.items()), 4, 3)
    environment = environment_of(definition, found, plain)
    (chosen, *_) = choices(definition, found, environment, Target.parse(target))
    return specialize(definition, found, replace(plain, options=chosen)).emitted.text


def test_weights_are_asked_for_before_the_wait_and_nothing_is_read(monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "dependent_launch=2,early_prefetch=2")
    kernel, arguments, constants = call()
    text = kernel.compile(*arguments, target=HOPPER, **constants).asm["ttgir"]

    def places(pattern):
        return [match.start() for match in re.finditer(pattern, text)]

    waits = places(r"griddepcontrol\.wait")
    begin = places(r"griddepcontrol\.launch_dependents")
    asked = places(r"prefetch\.global\.L2")
    others = places(r"tt\.(load|store)")
    assert asked and others
    assert max(begin) < min(asked) and max(asked) < min(waits) and max(waits) < min(others)


def test_as_many_rounds_are_asked_for_as_are_wanted_and_there(monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "early_prefetch=3")
    kernel, arguments, constants = call()
    text = source(kernel, arguments, constants)
    before, _, after = text.partition(WAIT)

    assert LET_BEGIN not in text
    assert re.search(r"range\(tl\.minimum\(.*, 3\)\)", before)
    assert before.count("prefetch_lines(") == 1 and "tl.load" not in before
    assert "prefetch_lines" not in after


@pytest.mark.parametrize(
    "how",
    [
        {"options": "early_prefetch=0"},
        {"options": "dependent_launch=0,early_prefetch=2"},
        {"options": "early_prefetch=2", "target": AMPERE},
        # A row ends within a tile: what comes after it is not to be asked for.
        {"options": "early_prefetch=2", "shape": (64, 500)},
        {"options": "early_prefetch=2", "shape": (63, 512)},
        # A tile's rows are no lines.
        {"options": "early_prefetch=2", "columns": 32},
    ],
    ids=str,
)
def test_where_it_cannot_be_nothing_is_asked_for(monkeypatch, how):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", how.pop("options"))
    target = how.pop("target", HOPPER)
    kernel, arguments, constants = call(**how)
    assert "prefetch" not in source(kernel, arguments, constants, target)


@pytest.mark.parametrize("name", ["add", "softmax", "mm"])
def test_kernels_that_share_their_tiles_or_have_no_loop_are_as_ever(name, monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "early_prefetch=2")
    tensor = torch.empty(4096 if name == "add" else (64, 64), dtype=torch.float16)
    constants = {"BLOCK_SIZE": 1024} if name == "add" else {}
    blocks = {f"BLOCK_SIZE_{dim}": 32 for dim in "MNK"} if name == "mm" else {}
    tensors = [tensor] * (2 if name == "softmax" else 3)

    assert "prefetch" not in source(TEN[name], tensors, constants, **blocks)
