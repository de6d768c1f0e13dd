"""Runs a described program for real, and compares what it leaves in memory with the reference.

`numpy` is the backend for CPU tensors, `interpreter` and `plain` the emitted source in Triton's
interpreter, with and without what is known of the call; `options` has options that are drawn, `class`
other calls of the same classes of sizes, `ahead` every variant compiled ahead that a call may take. There
no access leaves its tensor unseen. `cuda` is the device, `cubin` only compiles.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib.util
import itertools
import os
import re
import signal
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ninetoothed import plugins
from ninetoothed.errors import DeclarationWarning, NineToothedError
from ninetoothed.program.verify import verify
from tests.hunt import reference
from tests.hunt.description import Program
from tests.hunt.memory import content, places, poison_of
from tests.hunt.spelling import respelled
from tests.hunt.text import module
from tests.hunt.values import FLOATS, is_float, unequal_meetings
from tests.triton.emitted import given_by

#: What runs in Triton's interpreter.
INTERPRETERS = ("interpreter", "plain", "options", "class", "ahead")

_UNEQUAL = "have not the same elements"

#: Refusals that the language asks for, of what is drawn here.
EXPECTED: tuple[str, ...] = (
    r"A tile's size must be 1 or more, but got 0|moves the elements of a tile that has none",
    r"it needs a size of at least 0\. No tile fits there",
    r"does not fit a tile of u?int|as it is given, does not hold",
    r"does not fit '\w+', whose elements are",
    r"Each round \w+ .* made of sizes: in a loop it is an int32",
)

#: What Triton says of numbers that a tile's type does not hold, which its interpreter hands on as it is.
OF_TRITON = re.compile(r"unsigned tensor and a negative scalar|Scalar \S+ is out of range for type")

#: What a program may take to be made and compiled, in seconds.
MOST_SECONDS = 10.0


@dataclass(frozen=True)
class Outcome:
    """What became of a program on a backend.

    Attributes:
        kind: ``"agrees"``, ``"differs"``, ``"refused"`` as it has to be,
            ``"unexpected"`` where it was refused and should not, ``"internal"`` by an error that
            is not the package's own, ``"slow"``; ``"undeclared"`` where sizes must be declared to be
            compiled ahead, ``"alone"`` where no other call is of the class.
        detail: what differs, or the error's class and text.
        seconds: what making it, compiling it and running it took.
    """

    kind: str
    detail: str = ""
    seconds: float = 0.0

    @property
    def is_right(self) -> bool:
        return self.kind in ("agrees", "refused", "undeclared", "alone")


class TooSlow(BaseException):
    """A program took longer than any may."""


@contextlib.contextmanager
def limited(seconds: float, most: float | None = None) -> Iterator[None]:
    """`TooSlow` is raised after so many seconds; after ``most``, the process ends: a compiler asks for no
    signals until it returns."""

    def stop(*_: Any) -> None:
        raise TooSlow

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    if most is not None:
        faulthandler.dump_traceback_later(most, exit=True)
    try:
        yield
    finally:
        if most is not None:
            faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@contextlib.contextmanager
def loaded(text: str, seed: int) -> Iterator[Any]:
    """The module of a program, in a file as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="hunt-") as folder:
        path = Path(folder, "program.py")
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(f"hunted_{seed}", path)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        yield made


def _buffers(program: Program, device: str) -> tuple[dict[str, torch.Tensor], list[torch.Tensor]]:
    """The buffers by the parameter that owns each, and the tensors in them."""
    buffers: dict[str, torch.Tensor] = {}
    tensors = []
    for parameter in program.parameters:
        owner = program.parameter(parameter.same_as or parameter.name)
        if owner.name not in buffers:
            held = torch.from_numpy(content(program, owner))
            buffers[owner.name] = held.to(getattr(torch, owner.dtype)).to(device)
        _, _, strides, first = places(owner)
        tensors.append(buffers[owner.name].as_strided(owner.shape, strides, first))
    return buffers, tensors


def outcome(program: Program, backend: str) -> Outcome:
    """What becomes of a program on a backend, against the reference."""
    expected = reference.executed(program).memory
    may_not_meet = unequal_meetings[0] > 0
    started, worked = time.perf_counter(), sum(os.times()[:4])
    try:
        # Of what is compiled ahead, each variant runs.
        most = 6 * MOST_SECONDS * (5 if backend == "ahead" else 1)
        is_compiled = backend not in ("numpy", *INTERPRETERS)
        with limited(most, 2 * most if is_compiled else None), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "view is deprecated")
            warnings.simplefilter("ignore", DeclarationWarning)
            # What Triton's interpreter computes in lanes that nobody asks for, it warns of.
            action = "ignore" if backend in INTERPRETERS else "error"
            warnings.simplefilter(action, RuntimeWarning)
            several = _run(program, backend)
    except TooSlow:
        return Outcome("slow", "still running", time.perf_counter() - started)
    except NineToothedError as error:
        seconds = time.perf_counter() - started
        text = f"{type(error).__name__}: {error}"
        if _UNEQUAL in text:
            # A tile that a number selects is taken to be smaller than those that a loop selects.
            is_right = may_not_meet or (
                "of a tile of" in text and "('number'" in repr(program.body)
            )
        else:
            if backend == "ahead" and "must be known when the kernel is compiled ahead" in text:
                return Outcome("undeclared", text, seconds)
            patterns = (*EXPECTED, *respelled.EXPECTED * bool(program.spelling))
            is_right = any(re.search(pattern, text) for pattern in patterns)
            if found := re.search(
                r"is indexed with (-?\d+), and that dimension has size (\d+)", text
            ):
                place, size = map(int, found.groups())
                is_right = not -size <= place < size
        return Outcome("refused" if is_right else "unexpected", text, seconds)
    except Exception as error:
        seconds = time.perf_counter() - started
        is_right = backend in INTERPRETERS and OF_TRITON.search(str(error)) is not None
        kind = "refused" if is_right else "internal"
        return Outcome(kind, f"{type(error).__name__}: {error}", seconds)
    seconds = time.perf_counter() - started
    for name, buffers in several.items():
        if found := difference(program, expected, buffers):
            return Outcome("differs", f"{name} {found}".strip(), seconds)
    worked = sum(os.times()[:4]) - worked
    if worked > MOST_SECONDS and backend not in INTERPRETERS:
        return Outcome("slow", f"{worked:.1f} s of work", seconds)
    return Outcome("agrees", "", seconds)


def _run(program: Program, backend: str) -> dict[str, dict[str, np.ndarray]]:
    """What is in the buffers afterwards, by the variant that ran: of most backends there is one."""
    if backend == "ahead":
        # What is compiled ahead has its element types declared.
        parameters = (replace(p, declared="ninetoothed.{}") for p in program.parameters)
        program = replace(program, parameters=tuple(parameters), declares_scalars=True)
    with loaded(module(program, backend in INTERPRETERS), program.seed) as made:
        if backend != "ahead":
            ran = _called(program, backend, made.kernel)
            return {} if ran is None else {"": ran}
        from tests.triton.variants import Ahead

        several: dict[str, dict[str, np.ndarray]] = {}
        for place in itertools.count():
            chosen = Ahead(place)
            made.kernel.forget_launches()
            ran = _called(program, backend, made.kernel, chosen)
            if chosen.has_run:
                several[chosen.name_of_variant] = ran
            if chosen.is_last:
                return several


def _called(
    program: Program, backend: str, kernel: Any, chosen: Any = None
) -> dict[str, np.ndarray] | None:
    constants = {f"S{size}": size for size in program.symbols}
    buffers, tensors = _buffers(program, "cuda" if backend == "cuda" else "cpu")
    arguments = [*tensors, *program.given]
    if backend != "numpy":
        # NumPy runs the application itself.
        call = kernel.call_of(*arguments, **constants)
        verify(given_by(kernel, call).optimized)
    if backend == "cubin":
        compiled = kernel.compile(*arguments, target=("cuda", 90), **constants)
        assert compiled.asm["cubin"]
        return None
    with on_backend(backend, program.seed, chosen), _fenced(program, backend, buffers):
        kernel(*arguments, **constants)
    if backend == "cuda":
        torch.cuda.synchronize()
    return {name: _numbers(buffer) for name, buffer in buffers.items()}


@contextlib.contextmanager
def _fenced(program: Program, backend: str, buffers: dict[str, torch.Tensor]) -> Iterator[None]:
    """In the interpreter an access to a buffer beside its tensor is an error, whatever becomes of it."""
    if backend not in INTERPRETERS:
        yield
        return
    from triton.runtime.interpreter import InterpreterBuilder

    beside = [
        address
        for name, buffer in buffers.items()
        for address in buffer.data_ptr()
        + buffer.itemsize * np.setdiff1d(np.arange(len(buffer)), places(program.parameter(name))[0])
    ]

    def checked(method: Any, mask_at: int) -> Any:
        def access(builder: Any, pointers: Any, *rest: Any, **named: Any) -> Any:
            reached = pointers.data[np.broadcast_to(rest[mask_at].data, pointers.data.shape)]
            assert not np.isin(reached, beside).any(), "an access beside the tensor"
            return method(builder, pointers, *rest, **named)

        return access

    masks = {"create_masked_load": 0, "create_masked_store": 1}
    original = {name: getattr(InterpreterBuilder, name) for name in masks}
    for name, mask_at in masks.items():
        setattr(InterpreterBuilder, name, checked(original[name], mask_at))
    try:
        yield
    finally:
        for name, method in original.items():
            setattr(InterpreterBuilder, name, method)


def _numbers(buffer: torch.Tensor) -> np.ndarray:
    buffer = buffer.cpu()
    return (buffer.double() if buffer.is_floating_point() else buffer).numpy()


@contextlib.contextmanager
def on_backend(name: str, seed: int, chosen: Any = None) -> Iterator[None]:
    """Kernels that are called on CPU tensors run on a backend of these."""
    if name not in INTERPRETERS:
        yield
        return
    from tests.examples.interpreter import Interpreter

    if chosen is None:
        chosen = Interpreter(name != "plain", seed if name == "options" else None)
    original = plugins.backend_for
    plugins.backend_for = lambda kind: chosen
    try:
        yield
    finally:
        plugins.backend_for = original


def difference(program: Program, expected: Any, actual: dict[str, np.ndarray]) -> str:
    """Where memory is not as expected; empty where it is."""
    for name, buffer in expected.buffers.items():
        parameter, got = program.parameter(name), actual[name]
        wanted = buffer.data
        inside = np.zeros(len(wanted), bool)
        inside[places(parameter)[0]] = True
        untouched = ~(inside & buffer.written)
        if is_float(parameter.dtype):
            same = np.isnan(got)
            bits = FLOATS[parameter.dtype][0]
            # Once more for the store, which rounds to the tensor's type.
            bound = 2 * buffer.error + np.abs(wanted) * 2.0 ** (1 - bits) + 1e-30
            bound = np.where(buffer.writer >= 0, bound, 0.0)
            with np.errstate(invalid="ignore"):
                near = np.abs(got - wanted) <= bound
        else:
            poison = np.array(poison_of(parameter.dtype)).astype(got.dtype)
            same = got == poison
            near = got == wanted.astype(got.dtype)
        wrong = np.where(untouched, ~same, ~near)
        if wrong.any():
            return _described(parameter, wanted, got, wrong, untouched)
    return ""


def _described(parameter: Any, wanted: Any, got: Any, wrong: Any, untouched: Any) -> str:
    index = places(parameter)[0]
    outside = wrong.copy()
    outside[index] = False
    text = f"{int(wrong.sum())} of {parameter.name}'s elements"
    if outside.any():
        text += f", {int(outside.sum())} beyond the tensor"
    shape = parameter.shape
    with np.printoptions(linewidth=160, threshold=200, precision=6):
        return f"{text}; expected\n{wanted[index].reshape(shape)}\ngot\n{got[index].reshape(shape)}"


#: What Triton's interpreter has not, in a program's description: bfloat16 (it computes on the bits),
#: `reduce` over all dimensions, the complement of unsigned integers, `umulhi` of negative ones.
_NOT_INTERPRETED = re.compile(
    r"bfloat16|'umulhi'|'reduce', \(\('axis', None|'~'.*uint|uint.*'~'|'not'.*uint|uint.*'not'"
)


def has(program: Program, backend: str) -> bool:
    """Whether a backend is for such programs."""
    if backend not in INTERPRETERS:
        return True
    text = repr([p.dtype for p in program.parameters]) + repr(program.body)
    # Of such an argument it says int64, and keeps 32 bits.
    is_cut = any(2**31 <= value < 2**32 for _, value in program.scalars)
    return not is_cut and not _NOT_INTERPRETED.search(text)
