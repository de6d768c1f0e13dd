"""Runs the hand-written Triton kernels in Triton's interpreter.

The idiomatic ones run on the examples' own cases, the best ones at the sizes that their blocks divide.
A program of its own, since ``TRITON_INTERPRET`` must be set before Triton is imported.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os

os.environ["TRITON_INTERPRET"] = "1"

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

from benchmarks.common import search  # noqa: E402
from benchmarks.common.inputs import Builder, normal, rotations  # noqa: E402
from benchmarks.peers import best, idiomatic  # noqa: E402
from benchmarks.peers.best import convolution, products  # noqa: E402
from tests.examples.cases import BY_NAME  # noqa: E402
from tests.examples.checking import check  # noqa: E402
from tests.examples.compare import assert_matches, poisoned_memory  # noqa: E402
from tests.examples.maker import Maker  # noqa: E402
from tests.examples.references import rms_norm_reference, rope_reference, sdpa_reference  # noqa: E402

IDIOMATIC = {
    "add": idiomatic.add,
    "silu": idiomatic.silu,
    "softmax": idiomatic.softmax,
    "rms_norm": idiomatic.rms_norm,
    "rope": idiomatic.rope,
    "rope of halves": idiomatic.rope,
    "mm": idiomatic.mm,
    "addmm": idiomatic.addmm,
    "bmm": idiomatic.bmm,
    "conv2d": idiomatic.conv2d,
    "sdpa": idiomatic.sdpa,
    "causal sdpa": idiomatic.sdpa,
}


@dataclasses.dataclass(frozen=True)
class Case:
    """One of the best kernels, in one of the ways it has."""

    function: object
    build: Builder
    reference: object
    reduction: int = 1
    rounds_intermediates: bool = False


def best_cases() -> dict[str, Case]:
    """Every kernel in every way, at a small size."""
    rows = normal((8, 128))
    cases = {
        "add": Case(best.add, normal((8192,), (8192,)), torch.add),
        "silu": Case(best.silu, normal((8192,)), F.silu),
        "softmax": Case(best.softmax, rows, lambda x: torch.softmax(x, -1), 128),
        "rms_norm": Case(best.rms_norm, rows, rms_norm_reference, 128),
        "addmm": Case(
            functools.partial(best.addmm, beta=0.5, alpha=-1.5),
            normal(*[(256, 256)] * 3),
            functools.partial(torch.addmm, beta=0.5, alpha=-1.5),
            256,
        ),
        "mm": Case(best.mm, normal((256, 128), (128, 512)), torch.mm, 128),
    }
    for interleaved in (True, False):
        cases[f"rope, interleaved: {interleaved}"] = Case(
            functools.partial(best.rope, interleaved=interleaved),
            rotations(2, 16, 16, 32),
            functools.partial(rope_reference, interleaved=interleaved),
        )
    batches = normal((2, 256, 256), (2, 256, 512))
    for name, way in best.bmm.ways.items():
        cases[f"bmm {name}"] = Case(way, batches, torch.bmm, 256)
    heads = normal((1, 4, 256, 64), (1, 2, 256, 64), (1, 2, 256, 64))
    for name, way in best.sdpa.ways.items():
        for is_causal in (False, True):
            cases[f"sdpa {name}, causal: {is_causal}"] = Case(
                functools.partial(way, is_causal=is_causal),
                heads,
                functools.partial(sdpa_reference, is_causal=is_causal),
                320,
                True,
            )
    images = normal((1, 128, 10, 10), (256, 128, 3, 3))
    wanted = {(1, False), (1, True), (3, False), (3, True)}
    for config in convolution.conv2d_kernel.configs:
        way = config.kwargs["SPLIT"], config.kwargs["AHEAD"]
        if way in wanted:
            wanted.remove(way)
            case = functools.partial(with_config, config)
            cases[f"conv2d, {config}"] = Case(case, images, F.conv2d, 128 * 9)
    return cases


def with_config(config: object, *arguments: torch.Tensor) -> torch.Tensor:
    """The best convolution with this configuration; twice, for it must leave its counters at zero."""
    search.CHOICES.clear()
    convolution.conv2d_kernel.configs = [config]
    best.conv2d(*arguments)
    return best.conv2d(*arguments)


def failures() -> dict[str, str]:
    """What is wrong, by the name of the case."""
    found = {}

    for name, function in IDIOMATIC.items():
        BY_NAME[name] = dataclasses.replace(BY_NAME[name], function=function)
        for dtype in (torch.float32, torch.float16):
            try:
                check(name, BY_NAME[name].small["odd"], Maker(dtype))
            except Exception as error:
                found[f"{name}, {dtype}"] = f"{type(error).__name__}: {error}"

    for module in (convolution, products):
        module.num_processors = lambda: 2

    for name, case in best_cases().items():
        arguments = case.build(Maker(torch.float16))
        expected = case.reference(*(argument.double() for argument in arguments))
        try:
            with poisoned_memory():
                result = case.function(*arguments)
            assert_matches(result, expected, case.reduction, case.rounds_intermediates)
        except Exception as error:
            found[f"best {name}"] = f"{type(error).__name__}: {error}"

    return found


if __name__ == "__main__":
    print(json.dumps(failures()))
