"""Calls whose sizes do not agree, every example at odd sizes and programs that the hunt draws, for
compute-sanitizer to watch.

`sanitize_all` runs it under every tool; ``compute-sanitizer --tool memcheck python -m tests.gpu.sanitize``
under one. Without PyTorch's cache each tensor is an allocation of its own and of its own size, so that an
access beyond its end is one beyond the allocation. Tensors are made and compared on the host: what is
watched are our kernels alone. Each call prints one line; one that is refused with an error of the
package's own is told as such. ``--device cpu`` runs the same calls in NumPy.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import sys
from collections.abc import Callable
from typing import Any

os.environ.setdefault("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")
# What the estimate ranks first is what runs: a search would take hours under the sanitizer.
os.environ.setdefault("NINETOOTHED_TUNE", "none")
# A drawn program's tensors end where their allocations do.
os.environ.setdefault("HUNT_ROOM", "0")

import torch  # noqa: E402

import ninetoothed  # noqa: E402
from examples import addmm, bmm, conv2d, layer_norm, mm, rope, sdpa  # noqa: E402
from ninetoothed import Symbol, Tensor  # noqa: E402
from ninetoothed.errors import NineToothedError  # noqa: E402
from tests.examples.cases import EXAMPLES, Example  # noqa: E402
from tests.examples.checking import compare  # noqa: E402
from tests.examples.maker import Maker  # noqa: E402
from tests.examples.more_cases import MORE  # noqa: E402
from tests.hunt import executions, generate  # noqa: E402

BLOCK = Symbol("BLOCK", constexpr=True)

#: Sizes of dimensions: odd, and next to powers of two.
SIZES = (1, 3, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129)


class Draw:
    """One call's random sizes, and tensors of them that are filled: nothing uninitialised is read."""

    def __init__(self, device: str, number: int) -> None:
        self._random = random.Random(number)
        self._device = device

    def size(self) -> int:
        return self._random.choice(SIZES)

    def near(self, size: int) -> int:
        """Mostly the same size, or one that it does not agree with."""
        others = (size - 1, size + 1, size // 2, 2 * size, self.size())
        return self._random.choice((*(size,) * 25, *others)) or 1

    def is_heads(self) -> bool:
        return self._random.random() < 0.5

    def kernel(self, kernel: Any) -> Any:
        """The kernel, or the same with tensors that go on in zeros, so that sizes may disagree."""
        return _in_zeros(kernel) if self.is_heads() else kernel

    def tensor(self, *shape: int) -> torch.Tensor:
        return torch.full(shape, 0.5).to(self._device)

    def indices(self, *shape: int) -> torch.Tensor:
        """Within some tensor, or far from any."""
        ranges = (4, 200, 2**20, 2**31)
        span = self._random.choice(ranges)
        values = [self._random.randint(-span, span - 1) for _ in range(torch.Size(shape).numel())]
        return torch.tensor(values, dtype=torch.int32).reshape(shape).to(self._device)


@functools.cache
def _in_zeros(kernel: Any) -> Any:
    definition = kernel.definition
    tensors = []
    for parameter in definition.parameters:
        source = parameter.source
        if parameter.kind == "tensor":
            options = tuple({"constexpr": size.constexpr} for size in source.shape)
            source = Tensor(source.ndim, other=0, shape_options=options)
        tensors.append(source)
    arrangement, application = ARRANGED[definition.name], definition.application
    return ninetoothed.make(arrangement, application, tuple(tensors), kernel_name=definition.name)


#: What the kernels' tensors are arranged by.
ARRANGED: dict[str, Callable[..., Any]] = {
    "mm": mm.arrangement,
    "bmm": bmm.arrangement,
    "addmm": addmm.arrangement,
    "sdpa": sdpa.arrangement,
    "layer_norm": layer_norm.arrangement,
    "conv2d": conv2d.arrangement,
    "rope": rope.arrangement,
    "rope_halves": functools.partial(rope.arrangement, interleaved=False),
}


def _mm(draw: Draw) -> None:
    m, n, k = draw.size(), draw.size(), draw.size()
    output = draw.tensor(draw.near(m), draw.near(n))
    draw.kernel(mm.kernel)(draw.tensor(m, k), draw.tensor(draw.near(k), n), output)


def _bmm(draw: Draw) -> None:
    b, m, n, k = 3, draw.size(), draw.size(), draw.size()
    output = draw.tensor(b, draw.near(m), draw.near(n))
    draw.kernel(bmm.kernel)(
        draw.tensor(b, m, k), draw.tensor(draw.near(b), draw.near(k), n), output
    )


def _addmm(draw: Draw) -> None:
    m, n, k = draw.size(), draw.size(), draw.size()
    added, output = draw.tensor(draw.near(m), draw.near(n)), draw.tensor(m, n)
    draw.kernel(addmm.kernel)(
        added, draw.tensor(m, k), draw.tensor(draw.near(k), n), 1.0, 1.0, output
    )


def _sdpa(draw: Draw) -> None:
    length, width = draw.size(), draw.size()
    query = draw.tensor(2, 4, draw.size(), width)
    key = draw.tensor(2, 2, length, draw.near(width))
    value = draw.tensor(2, 2, draw.near(length), draw.near(width))
    output = draw.tensor(2, 4, query.shape[2], draw.near(width))
    draw.kernel(sdpa.kernel)(query, key, value, 0.125, draw.is_heads(), output)


def _layer_norm(draw: Draw) -> None:
    rows, columns = draw.size(), draw.size()
    input, output = draw.tensor(rows, columns), draw.tensor(draw.near(rows), draw.near(columns))
    weight, bias = draw.tensor(draw.near(columns)), draw.tensor(draw.near(columns))
    draw.kernel(layer_norm.kernel)(input, weight, bias, 1e-5, output)


def _conv2d(draw: Draw) -> None:
    channels, height, width = draw.near(3), draw.size(), draw.size()
    filter = draw.tensor(5, draw.near(channels), 3, 2)
    output = draw.tensor(
        2, draw.near(5), draw.near(max(height - 2, 1)), draw.near(max(width - 1, 1))
    )
    draw.kernel(conv2d.kernel)(draw.tensor(2, channels, height, width), filter, output)


def _rope(draw: Draw) -> None:
    length, size = draw.size(), 2 * draw.size()
    sin, cos = (draw.tensor(draw.near(length), draw.near(size // 2)) for _ in range(2))
    output = draw.tensor(2, draw.near(length), 3, draw.near(size))
    kernel = rope.kernel if draw.is_heads() else rope.halves_kernel
    draw.kernel(kernel)(draw.tensor(2, length, 3, size), sin, cos, output)


def _elements(table, index, output):
    output = table.source[index, index + 1]


def _rows(table, index, output):
    table.source[index, 0] = output


@functools.cache
def _gathering(application: Callable[..., None]) -> Any:
    def arrangement(table: Any, index: Any, output: Any) -> tuple[Any, ...]:
        # Of the table only the source is used: any tile of each program's will do.
        tile = table[:1, :1].tile((1, 1)).squeeze(1).expand(index.tile((BLOCK,)).shape)
        return tile, index.tile((BLOCK,)), output.tile((BLOCK,))

    return ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1), Tensor(1)))


def _gathers(draw: Draw) -> None:
    kernel = _gathering(_elements if draw.is_heads() else _rows)
    length = draw.size()
    table = draw.tensor(draw.size(), draw.size())
    kernel(table, draw.indices(length), draw.tensor(draw.near(length)), BLOCK=32)


KINDS: dict[str, Callable[[Draw], None]] = {
    "mm": _mm,
    "bmm": _bmm,
    "addmm": _addmm,
    "sdpa": _sdpa,
    "layer_norm": _layer_norm,
    "conv2d": _conv2d,
    "rope": _rope,
    "gathers": _gathers,
}


def disagree(device: str, number: int) -> str:
    """One call whose sizes mostly do not agree; what came of it."""
    name = list(KINDS)[number % len(KINDS)]
    try:
        KINDS[name](Draw(device, number))
    except NineToothedError:
        return f"{name}: refused"
    _finish(device)
    return f"{name}: ran"


def check_example(device: str, example: Example, label: str) -> str:
    """One example at one of the odd sizes of its table, compared on the host."""
    parameters = example.small[label]
    arguments = example.arguments(Maker(torch.float32), parameters)
    expected = example.expected(arguments)
    moved = [each.to(device) if isinstance(each, torch.Tensor) else each for each in arguments]
    actual = tuple(result.cpu() for result in example.actual(tuple(moved)))
    compare(example, parameters, actual, expected, torch.float32)
    return f"example {example.name}, {label}: right"


def check_program(device: str, seed: int) -> str:
    """One drawn program, compared on the host."""
    found = executions.outcome(generate.program(seed), "numpy" if device == "cpu" else device)
    return f"program {seed}: " + (found.kind if found.is_right else f"WRONG, {found}")


def _finish(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def main() -> int:
    """Runs one share of all, a line each; 0 where every drawn program is right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--programs", type=int, default=0, help="of the hunt's")
    parser.add_argument("--seed", type=int, default=40_000_000, help="of the first program")
    parser.add_argument("--share", default="0/1", help="which of how many processes this is: 0/4")
    given = parser.parse_args()
    share, shares = map(int, given.share.split("/"))
    torch.set_num_threads(1)
    # Whole rounds of all kinds, so that shares cost alike.
    calls = [number for number in range(given.calls) if number // len(KINDS) % shares == share]
    examples = [(example, label) for example in (*EXAMPLES, *MORE) for label in example.small]
    for number in calls:
        print(disagree(given.device, number), flush=True)
    for example, label in examples[share::shares]:
        print(check_example(given.device, example, label), flush=True)
    wrong = 0
    for seed in range(given.seed + share, given.seed + given.programs, shares):
        line = check_program(given.device, seed)
        wrong += "WRONG" in line
        print(line, flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
