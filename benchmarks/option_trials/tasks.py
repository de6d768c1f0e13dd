"""What the options of the Triton backend are tried on (`benchmarks.option_trials`): calls and chains.

A task is one kernel's call at one size, and a chain in which each call reads what the last one
wrote; some are a chain of several kernels alone. Results of one shape take turns between two
buffers, as a program's do whose allocator gives back what was freed; what else a call reads differs
from link to link, as the layers of a model have each their own weights.
"""

from __future__ import annotations

import functools
import importlib.util
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from benchmarks.common.inputs import BUILDERS, ELEMENTS, Builder, normal
from benchmarks.common.measure import num_turns
from ninetoothed.derivatives.derive import derive
from ninetoothed.launch.kernel import Kernel
from tests.examples.maker import Maker

Call = Callable[[], object]

#: A chain begins with arguments of its own after at least so many links: values neither vanish nor
#: grow beyond float16.
_LINKS = 8

#: So many calls at least are made in a row before the first one's arguments come again.
_ROW = 8

#: Of the one geometry that keeps an image's size, and of the paper's.
_PADDED, _PLAIN = ((1, 1), (1, 1), (1, 1)), ((1, 1), (0, 0), (1, 1))


@dataclass(frozen=True)
class Operation:
    """How one kernel of an example is called.

    Attributes:
        example: the module's name.
        given: (arguments, result) -> what the kernel is given.
        keywords: what it is given by name.
        kernel: finds it in the example's module.
        result: the shape of the result; that of what is chained, unless given.
        chained: which of the arguments the last result takes the place of in a chain.
        in_place: whether the chained argument is overwritten; there is no other result.
    """

    example: str
    given: Callable[[Sequence[Any], Any], tuple[Any, ...]]
    keywords: Mapping[str, Any] = field(default_factory=dict)
    kernel: Callable[[Any], Kernel] = operator.attrgetter("kernel")
    result: Callable[[Sequence[Any]], tuple[int, ...]] | None = None
    chained: int = 0
    in_place: bool = False

    def new_result(self, arguments: Sequence[Any]) -> torch.Tensor:
        """Memory for the result; the argument that is overwritten, where one is."""
        chained: torch.Tensor = arguments[self.chained]
        if self.in_place:
            return chained
        return chained.new_empty(self.result(arguments) if self.result else chained.shape)

    def bound(self, kernel: Kernel, arguments: Sequence[Any], result: torch.Tensor) -> Call:
        """A call that takes the host as little as possible."""
        return functools.partial(kernel, *self.given(arguments, result), **self.keywords)


@dataclass(frozen=True)
class Step:
    """An operation and what builds its arguments."""

    operation: Operation
    build: Builder


@dataclass(frozen=True)
class Task:
    """What options are tried on.

    Attributes:
        name: as ``--tasks`` takes it.
        size: the size, in words.
        chain: the steps of the chain, over and over; none where results have another shape.
        single: the one that is called by itself and in a row; None where there is the chain alone.
        segments: how many times as many calls as the fewest are timed together.
    """

    name: str
    size: str
    chain: tuple[Step, ...]
    single: Step | None
    segments: int = 4

    @property
    def steps(self) -> tuple[Step, ...]:
        """All of them."""
        return (*self.chain, *([self.single] if self.single else []))

    @property
    def operations(self) -> list[Operation]:
        """Those that take part, once each."""
        found: list[Operation] = []
        for step in self.steps:
            if step.operation not in found:
                found.append(step.operation)
        return found


class Kernels:
    """Kernels of one contender: examples are imported anew, so that they share nothing."""

    def __init__(self) -> None:
        self._modules: dict[str, Any] = {}

    def of(self, operation: Operation) -> Kernel:
        """The kernel of an operation."""
        if operation.example not in self._modules:
            home = importlib.util.find_spec(f"examples.{operation.example}")
            assert home is not None and home.loader is not None
            module = importlib.util.module_from_spec(home)
            home.loader.exec_module(module)
            self._modules[operation.example] = module
        return operation.kernel(self._modules[operation.example])


class Data:
    """A task's tensors, which all contenders share."""

    def __init__(self, task: Task, maker: Maker) -> None:
        self._task = task
        self._sets: dict[int, list[tuple[Any, ...]]] = {}
        for step in task.steps:
            if id(step) not in self._sets:
                self._sets[id(step)] = _sets(step, maker)
        self._buffers: list[torch.Tensor] = []
        self._last: list[torch.Tensor] = []
        for first in task.chain[:1]:
            chained = self._sets[id(first)][0][first.operation.chained]
            self._buffers = [torch.zeros_like(chained) for _ in range(2)]
            self._last = [chained] if first.operation.in_place else self._buffers
        self._results: list[torch.Tensor] = []
        if task.single is not None:
            operation = task.single.operation
            self._results = [operation.new_result(each) for each in self.sets(task.single)]

    def sets(self, step: Step) -> list[tuple[Any, ...]]:
        """The sets of arguments that take turns."""
        return self._sets[id(step)]

    def calls(self, kernels: Kernels) -> dict[str, list[Call]]:
        """What is timed in each setting: one call, calls in a row, a chain."""
        found = {"chain": list(self._chain(kernels))} if self._task.chain else {}
        if self._task.single is not None:
            row = self._row(kernels, self._task.single)
            found = {"do_bench": row[:1], "row": row, **found}
        return found

    def _row(self, kernels: Kernels, step: Step) -> list[Call]:
        """Calls whose results are kept until the same arguments come again."""
        operation, sets = step.operation, self.sets(step)
        kernel = kernels.of(operation)
        bound = [operation.bound(kernel, *each) for each in zip(sets, self._results)]
        count = max(_ROW * self._task.segments // len(bound), 1)
        return bound * count

    def _chain(self, kernels: Kernels) -> Iterator[Call]:
        steps = self._task.chain
        links = -(-_LINKS // len(steps)) * len(steps)
        for segment in range(self._task.segments):
            first = self.sets(steps[0])
            last = first[segment % len(first)][steps[0].operation.chained]
            for link in range(links):
                step = steps[link % len(steps)]
                operation, sets = step.operation, self.sets(step)
                arguments = list(sets[(segment + link) % len(sets)])
                arguments[operation.chained] = last
                result = last if operation.in_place else self._buffers[link % 2]
                yield operation.bound(kernels.of(operation), arguments, result)
                last = result

    def is_finite(self) -> bool:
        """Whether a chain has ended with numbers: others may be computed in another time."""
        return all(bool(buffer.isfinite().all()) for buffer in self._last)

    def values(self, kernels: Kernels) -> list[torch.Tensor]:
        """Each operation's result, of arguments that nothing has changed."""
        return [self._value(kernels, operation) for operation in self._task.operations]

    def _value(self, kernels: Kernels, operation: Operation) -> torch.Tensor:
        step = next(step for step in self._task.steps if step.operation is operation)
        arguments = list(self.sets(step)[0])
        chained = arguments[operation.chained]
        if operation.in_place:
            # What it was is known to nobody by now; that it is the same for all, is what counts. In
            # float16 the steps would not be finite.
            same = torch.linspace(-1, 1, chained.numel(), device=chained.device)
            arguments[operation.chained] = same.to(chained.dtype).reshape(chained.shape)
        result = operation.new_result(arguments)
        if not operation.in_place:
            result.fill_(math.nan)
        operation.bound(kernels.of(operation), arguments, result)()
        return result


def _sets(step: Step, maker: Maker) -> list[tuple[Any, ...]]:
    first = step.build(maker)
    count = num_turns(sum(argument.nbytes for argument in first))
    return [first, *(step.build(maker) for _ in range(count - 1))]


# The operations.


def _scaled(build: Builder, place: int, terms: int) -> Builder:
    """The same with one argument so small that sums of so many products stay as large as they were."""

    def scaled(make: Maker) -> tuple[Any, ...]:
        arguments = list(build(make))
        arguments[place] = arguments[place] / math.sqrt(terms)
        return tuple(arguments)

    return scaled


def _convolution(geometry: tuple[tuple[int, int], ...]) -> Operation:
    less = 0 if geometry == _PADDED else 2
    return Operation(
        "conv2d",
        lambda a, result: (*a, result),
        kernel=lambda module: module.kernel_for(*geometry),
        result=lambda a: (a[0].shape[0], a[1].shape[0], *(n - less for n in a[0].shape[2:])),
    )


def _attention(is_causal: bool) -> Operation:
    return Operation("sdpa", lambda a, result: (*a, a[0].shape[-1] ** -0.5, is_causal, result))


def _flat(example: str) -> Operation:
    """An element-wise kernel, as its example calls it."""
    return Operation(
        example,
        lambda a, result: tuple(tensor.flatten() for tensor in (*a, result)),
        {"BLOCK_SIZE": 1024},
    )


def _pooling(example: str, kernel: str = "kernel", size: int = 2) -> Operation:
    """Windows of this size, one after another."""
    names = ("WINDOW_HEIGHT", "WINDOW_WIDTH", "STRIDE_HEIGHT", "STRIDE_WIDTH")
    padding = dict.fromkeys(("PADDING_HEIGHT", "PADDING_WIDTH"), 0) if "more" in example else {}
    return Operation(
        example,
        lambda a, result: (*a, result),
        {**dict.fromkeys(names, size), **padding, "BLOCK_SIZE": 256},
        operator.attrgetter(kernel),
        lambda a: (*a[0].shape[:2], *(n // size for n in a[0].shape[2:])),
    )


@functools.cache
def _backward(kernel: Kernel) -> Kernel:
    """Of a normalisation: the gradients of its rows, and those of its weight in 256 parts."""
    return Kernel(derive(kernel.definition, ("input", "weight"), parts=256).specializations)


def _rows_and_gradients(make: Maker) -> tuple[Any, ...]:
    rows, columns = 8192, 4096
    parts = torch.empty(256, 1, columns, device=make.device)
    # Weights of 1 and -1: gradients keep their size from link to link.
    return make(rows, columns), make(columns).sign(), make(rows, columns), parts


ADD, SILU = _flat("add"), _flat("silu")
SOFTMAX, ROPE, MM, BMM = (
    Operation(example, lambda a, result: (*a, result))
    for example in ("softmax", "rope", "mm", "bmm")
)
RMS_NORM = Operation("rms_norm", lambda a, result: (*a, 1e-6, result))
RMS_NORM_BACKWARD = Operation(
    "fused_rms_norm",
    lambda a, result: (*a[:2], 1e-6, a[2], result, a[3]),
    kernel=lambda module: _backward(module.kernel),
    chained=2,
)
ROPE_IN_PLACE = Operation("rope_in_place", lambda a, result: tuple(a), in_place=True)
MAX_POOL2D, AVG_POOL2D = _pooling("max_pool2d"), _pooling("more.pool2d", "avg_kernel")
ADDMM = Operation("addmm", lambda a, result: (*a, 1.0, 1.0, result), chained=1)
CONV2D, PADDED = _convolution(_PLAIN), _convolution(_PADDED)
SDPA, CAUSAL = _attention(False), _attention(True)


# The tasks.


def task(name: str, size: str, operation: Operation, build: Builder, segments: int = 4) -> Task:
    """One operation, timed in all three settings."""
    step = Step(operation, build)
    return Task(name, size, (step,), step, segments)


def _product(name: str, m: int, k: int, segments: int) -> Task:
    build = _scaled(normal((m, k), (k, k)), 1, k)
    return task(name, f"{m} × {k} × {k}", MM, build, segments)


def _heads(name: str, shape: tuple[int, ...], is_causal: bool = False) -> Task:
    size = f"{shape}{', causal' if is_causal else ''}"
    return task(name, size, CAUSAL if is_causal else SDPA, normal(*[shape] * 3), 1)


_WIDE = normal((4096, 4096))
_WEIGHTS = _scaled(normal((4096, 4096), (4096, 4096)), 1, 4096)
_IMAGES = normal((32, 64, 112, 112))
_PAIR = normal((4096, 4096), (4096, 4096))
_FILTERS = _scaled(BUILDERS["conv2d"], 1, 512 * 9)

#: The memory-bound ones first: they take the least time. In a chain, what weights multiply stays as
#: large as it was.
TASKS = (
    task("add", f"{ELEMENTS}", ADD, BUILDERS["add"]),
    task("silu", f"{ELEMENTS}", SILU, BUILDERS["silu"]),
    task("softmax", "(4096, 4096)", SOFTMAX, BUILDERS["softmax"]),
    task("rms_norm", "(4096, 4096)", RMS_NORM, BUILDERS["rms_norm"]),
    task("rms_norm_backward", "(8192, 4096)", RMS_NORM_BACKWARD, _rows_and_gradients, 1),
    task("rope", "(4, 1024, 48, 64)", ROPE, BUILDERS["rope"]),
    task("rope_", "(4, 1024, 48, 64), in place", ROPE_IN_PLACE, BUILDERS["rope_"]),
    Task(
        "chain",
        "silu, rms_norm, add, softmax of (4096, 4096)",
        (Step(SILU, _WIDE), Step(RMS_NORM, _WIDE), Step(ADD, _PAIR), Step(SOFTMAX, _WIDE)),
        None,
    ),
    Task(
        "layer",
        "rms_norm, mm, silu, mm, add of (4096, 4096)",
        (
            Step(RMS_NORM, _WIDE),
            Step(MM, _WEIGHTS),
            Step(SILU, _WIDE),
            Step(MM, _WEIGHTS),
            Step(ADD, _PAIR),
        ),
        None,
        segments=1,
    ),
    Task(
        "conv2d",
        "(4, 512, 14, 14) * (512, 512, 3, 3)",
        # Padded, so that the result is as large as the input.
        (Step(PADDED, _FILTERS),),
        Step(CONV2D, _FILTERS),
    ),
    _heads("sdpa", (4, 48, 1024, 64)),
    _heads("sdpa_causal", (4, 48, 1024, 64), is_causal=True),
    _heads("sdpa_4k_causal", (4, 32, 4096, 64), is_causal=True),
    _heads("sdpa_128", (16, 16, 1024, 128)),
    _heads("sdpa_128_causal", (16, 16, 1024, 128), is_causal=True),
    _heads("sdpa_4k", (4, 32, 4096, 64)),
    _product("mm_skinny", 16, 4096, segments=4),
    _product("mm_small", 512, 512, segments=4),
    _product("mm", 4096, 4096, segments=1),
    task("addmm", "4096³", ADDMM, _scaled(BUILDERS["addmm"], 2, 4096), 1),
    task("bmm", "4 × 2048³", BMM, _scaled(BUILDERS["bmm"], 1, 2048), 1),
    # Rows of multiples of 8 and not of 16, rows of which a program has several, an odd size.
    task("softmax_1000", "(16384, 1000)", SOFTMAX, normal((16384, 1000))),
    task("softmax_256", "(65536, 256)", SOFTMAX, normal((65536, 256))),
    task("silu_odd", f"{ELEMENTS - 7}", SILU, normal((ELEMENTS - 7,))),
    *(
        Task(name, "(32, 64, 112, 112), windows of 2 × 2", (), Step(operation, _IMAGES))
        for name, operation in (("max_pool2d", MAX_POOL2D), ("avg_pool2d", AVG_POOL2D))
    ),
)

BY_NAME = {task.name: task for task in TASKS}
