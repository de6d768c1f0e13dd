"""Checks of launches on a frontend's tensors: kernels, element types, scalars, threads, errors."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy

from ninetoothed.errors import ArgumentError, NineToothedError
from ninetoothed.language import dtypes
from ninetoothed.testing.expectations import ConformanceError, Expectations, expect
from ninetoothed.testing.kernels import TASKS, Task

_THREADS = 8
_LAUNCHES_OF_A_THREAD = 25


class LaunchChecks(Expectations):
    """What kernels make of the tensors."""

    def _check_task(self, task: Task) -> None:
        """A kernel on contiguous tensors, and on views where there are any."""
        random = numpy.random.default_rng(0)
        arrays = [random.standard_normal(shape).astype(numpy.float32) for shape in task.shapes]
        for layout in ("contiguous", "transposed", "sliced"):
            inputs = [self._laid_out(array, layout) for array in arrays]
            if all(tensor is None for tensor in inputs):
                continue
            given = [
                self.made(array) if tensor is None else tensor
                for tensor, array in zip(inputs, arrays)
            ]
            self._check_result(task, layout, arrays, given)

    def _check_result(
        self, task: Task, layout: str, arrays: list[numpy.ndarray], inputs: list[Any]
    ) -> None:
        dtype = dtypes.bool if task.is_bool else dtypes.float32
        # What is never written stays a value that no result has.
        output = self.made(numpy.full(task.result, task.is_bool or -77, dtype.numpy))
        result = self.launched(
            self.kernels[task.name],
            *inputs,
            *task.scalars,
            output,
            **task.constants(self.block_size),
        )
        expected = task.reference(*(a.astype(numpy.float64) for a in arrays), *task.scalars)
        found = self.found(result, dtype)
        expect(
            found.shape == task.result,
            f"the kernel {task.name!r} gave a tensor of shape {found.shape}, not {task.result}",
        )
        wrong = numpy.abs(found.astype(numpy.float64) - expected) > 1e-2 * (1 + numpy.abs(expected))
        expect(
            not wrong.any(),
            f"the kernel {task.name!r} on {layout} tensors is wrong in {int(wrong.sum())} of "
            f"{wrong.size} elements, the first at {tuple(map(int, numpy.argwhere(wrong)[:1].ravel()))}",
        )

    def _laid_out(self, array: numpy.ndarray, layout: str) -> Any:
        """A tensor with these elements; None where the framework has no such view."""
        if layout == "contiguous":
            return self.made(array)
        if layout == "transposed":
            return self.transposed(self.made(array.T)) if array.ndim > 1 else None
        larger = numpy.full(tuple(2 * size + 1 for size in array.shape), 99, array.dtype)
        slices = tuple(slice(1, None, 2) for _ in array.shape)
        larger[slices] = array
        return self.sliced(self.made(larger), slices)

    def test_stores_to_views(self) -> None:
        """Only the view's elements are written."""
        self.needs_addresses()
        base = self.made(numpy.zeros((41,), numpy.float32))
        view = self.sliced(base, (slice(1, None, 2),))
        if view is None:
            self.skip("`sliced` gives no view")
        ones = self.made(numpy.ones((20,), numpy.float32))
        self.launched(self.kernels["copy"], ones, view, BLOCK_SIZE=self.block_size)
        expected = numpy.zeros((41,), numpy.float32)
        expected[1::2] = 1
        expect(
            numpy.array_equal(self.found(base), expected),
            "a store to a view of every second element wrote other elements of the tensor, or not "
            "these",
        )

    def test_every_element_type_is_copied_bit_by_bit(self) -> None:
        for dtype in self.element_types:
            array = self.values((100,), dtype)
            output = self.made(numpy.zeros((100,), dtype.numpy))
            try:
                result = self.launched(
                    self.kernels["copy"], self.made(array), output, BLOCK_SIZE=self.block_size
                )
            except NineToothedError as error:
                raise ConformanceError(f"a tensor of {dtype} was refused: {error}") from error
            expect(
                self.found(result, dtype).tobytes() == array.tobytes(),
                f"the copy of a tensor of {dtype} differs from it: the wrong dtype or pointer",
            )

    def test_scalars(self) -> None:
        """Numbers by value: Python's, NumPy's, and tensors of no dimensions."""
        array = self.values((50,))
        sources: list[Any] = [2, 2.0, True + 1, numpy.float32(2), numpy.int64(2)]
        sources.append(self.from_numpy(numpy.array(2, numpy.float32)))
        for factor in sources:
            output = self.made(numpy.zeros((50,), numpy.float32))
            result = self.launched(
                self.kernels["scale"],
                self.made(array),
                factor,
                0.5,
                output,
                BLOCK_SIZE=self.block_size,
            )
            expect(
                numpy.array_equal(self.found(result), array * 2 + numpy.float32(0.5)),
                f"the scalar 2, given as {factor!r}, did not arrive as 2",
            )

    def test_none_stands_for_what_is_not_touched(self) -> None:
        """Of two vectors a constant leaves out the second, and it may be None."""
        array = self.values((50,))
        for other in (None, array, None):
            given = None if other is None else self.made(other)
            adds, output = other is not None, self.made(numpy.zeros((50,), numpy.float32))
            result = self.launched(
                self.kernels["add where"],
                *(self.made(array), given, adds, output),
                BLOCK_SIZE=self.block_size,
            )
            expect(
                numpy.array_equal(self.found(result), array * (1 + adds)),
                f"a constant chose to add {adds}, and the result is not that",
            )

    def test_empty_tensors_launch_nothing(self) -> None:
        tensor = self.tensor((0,))
        result = self.launched(self.kernels["copy"], tensor, tensor, BLOCK_SIZE=self.block_size)
        expect(self.found(result).shape == (0,), "an empty tensor did not stay empty")

    def test_empty_makes_tensors(self) -> None:
        for dtype in self.element_types:
            made = self.frontend.empty((3, 5), dtype, self.device)
            expect(
                tuple(self.read("shape", made)) == (3, 5),
                f"`empty` of shape (3, 5) gave shape {tuple(self.read('shape', made))}",
            )
            found = self.frontend.dtype_of(self.read("dtype", made))
            expect(found is dtype, f"`empty` of {dtype} gave a tensor of {found}")
            device = self.frontend.device_of(self.read("device", made))
            expect(device == self.device, f"`empty` on {self.device} gave a tensor on {device}")
            if not self.takes_over_launches:
                strides = tuple(self.read("strides", made))
                expect(strides == (5, 1), f"`empty` gave strides {strides}; it is contiguous")

    def test_one_plan_for_tensors_of_one_sort(self) -> None:
        self.needs_addresses()

        def run() -> None:
            for _ in range(10):
                self._copy_once(80)

        plans = self._plans_of_copies(run)
        expect(
            plans <= 1,
            f"10 launches on new tensors of one sort made {plans} plans; what is read of them "
            "must compare equal",
        )

    def test_threads(self) -> None:
        """Tensors of their own in each thread, one kernel."""
        failed: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for _ in range(_LAUNCHES_OF_A_THREAD):
                    self._copy_once(90, number)
            except BaseException as error:
                failed.append(error)

        def run() -> None:
            threads = [threading.Thread(target=work, args=(n,)) for n in range(_THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        plans = self._plans_of_copies(run)
        if failed:
            raise ConformanceError(f"a launch from a thread failed: {failed[0]}") from failed[0]
        expect(plans <= 1, f"{_THREADS} threads with tensors of one sort made {plans} plans")

    def _copy_once(self, size: int, value: int = 1) -> None:
        array = numpy.full((size,), value, numpy.float32)
        output = self.made(array - 1)
        # Made and held here, so that each launch has memory of its own.
        source = self.made(array)
        result = self.launched(self.kernels["copy"], source, output, BLOCK_SIZE=self.block_size)
        expect(
            numpy.array_equal(self.found(result), array),
            f"a copy of {value} holds {self.found(result)[:1]}",
        )

    def _plans_of_copies(self, run: Callable[[], None]) -> int:
        """How many plans the kernel `copy` has after this that it had not before."""
        known = set(self._plans())
        run()
        return len(set(self._plans()) - known)

    def _plans(self) -> list[Any]:
        if self.takes_over_launches:
            return []
        launch = self.kernels["copy"].launch_function(self.frontend)
        return list(launch.__globals__["plans_"])

    def test_arguments_are_not_kept(self) -> None:
        """A launch takes no hold of the tensors: their memory goes when the user lets go."""
        self.before_launching()
        source, output = self.tensor((70,)), self.tensor((70,))
        self.kernels["copy"](source, output, BLOCK_SIZE=self.block_size)
        gc.collect()
        before = sys.getrefcount(source), sys.getrefcount(output)
        for _ in range(3):
            self.kernels["copy"](source, output, BLOCK_SIZE=self.block_size)
        gc.collect()
        after = sys.getrefcount(source), sys.getrefcount(output)
        expect(after == before, "a launch keeps references to its arguments")

    def test_errors(self) -> None:
        """What is no tensor of the kernel's is refused, by name."""
        self.before_launching()
        good = self.tensor((8,))
        cases: list[tuple[Any, str]] = [([1.0, 2.0], "`output`"), (None, "`output`")]
        cases.append((self.tensor((2, 4)), "2 dimensions"))
        for wrong, words in cases:
            try:
                self.kernels["copy"](good, wrong, BLOCK_SIZE=self.block_size)
            except ArgumentError as error:
                expect(words in str(error), f"the error does not say {words}: {error}")
            except Exception as error:
                raise ConformanceError(
                    f"a wrong argument raised {type(error).__name__} and no ArgumentError: {error}"
                ) from error
            else:
                raise ConformanceError(f"{type(wrong)} was taken for an output")

    def test_a_launch_after_an_error(self) -> None:
        with contextlib.suppress(ArgumentError):
            self.kernels["copy"](self.tensor((8,)), None, BLOCK_SIZE=self.block_size)
        self._copy_once(60)


def _checking(task: Task) -> Callable[[LaunchChecks], None]:
    return lambda checks: checks._check_task(task)


for _task in TASKS:
    setattr(LaunchChecks, f"test_the_kernel_{_task.name}", _checking(_task))
