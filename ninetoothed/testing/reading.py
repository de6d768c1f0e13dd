"""Checks of how a frontend reads one tensor: shape, strides, pointer, dtype, device, value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ninetoothed.language import dtypes
from ninetoothed.testing.expectations import ConformanceError, Expectations, Skipped, expect

SHAPES = ((), (5,), (2, 3), (4, 1, 3), (1, 1))
EMPTY_SHAPES = ((0,), (0, 5), (3, 0))

#: What a launch's key is made of, besides the alignment.
KEY_FIELDS = ("shape", "strides", "dtype", "device")


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides in elements of a contiguous tensor."""
    return tuple(int(numpy.prod(shape[dim + 1 :], dtype=int)) for dim in range(len(shape)))


class ReadingChecks(Expectations):
    """What the expressions say of tensors that are known."""

    _wrong_reading: str

    def before_launching(self) -> None:
        """See `Expectations`; asked once for a class."""
        kit = type(self)
        if "_wrong_reading" not in kit.__dict__:
            kit._wrong_reading = ""
            for check in (
                kit.test_shape,
                kit.test_strides,
                kit.test_pointer,
                kit.test_offset_views,
                # What is wrongly taken for alike is launched with sizes that it has not.
                kit.test_guard,
            ):
                try:
                    check(kit())
                except ConformanceError as error:
                    kit._wrong_reading = str(error)
                    break
                except Skipped:
                    continue
        expect(not kit._wrong_reading, f"nothing was launched, for {kit._wrong_reading}")

    def test_the_frontend_owns_its_tensors_and_nothing_else(self) -> None:
        from ninetoothed.plugins import find_frontend

        type_ = type(self.tensor((2,)))
        found = find_frontend(type_)
        expect(
            found is self.frontend,
            f"`owns` says no to {type_.__module__}.{type_.__qualname__}, which is what `from_numpy` "
            "makes; give the module and name of the class that tensors derive from",
        )
        for other in (object, int, float, list, type(None), type):
            expect(not self.frontend.owns(other), f"`owns` says yes to {other}, which is no tensor")

    def test_shape(self) -> None:
        for shape in (*SHAPES, *EMPTY_SHAPES):
            self._check_shape(shape, self.read("shape", self.tensor(shape)))

    def _check_shape(self, shape: tuple[int, ...], found: Any) -> None:
        self._check_hashable("shape", found)
        if tuple(found) != shape and tuple(found) == shape[::-1]:
            raise ConformanceError(
                f"`shape` of a tensor of shape {shape} is {tuple(found)}: the dimensions come in "
                "the wrong order; the first is the outermost"
            )
        expect(
            tuple(found) == shape,
            f"`shape` of a tensor of shape {shape} is {tuple(found)}, not that",
        )

    def _check_hashable(self, field: str, found: Any) -> None:
        try:
            hash(found)
        except TypeError:
            raise ConformanceError(
                f"`{field}` is {found!r}, a {type(found).__name__}, which is not hashable; every "
                "launch looks it up. Make it a tuple, as in `tuple(...)`"
            ) from None

    def test_strides(self) -> None:
        self.needs_addresses()
        for shape in ((5,), (2, 3), (4, 2, 3)):
            tensor = self.tensor(shape)
            self._check_strides(tensor, shape, contiguous_strides(shape), "contiguous")
            self._check_hashable("strides", self.read("strides", tensor))
        expect(
            tuple(self.read("strides", self.tensor(()))) == (),
            "`strides` of a tensor of no dimensions must be empty",
        )

    def _check_strides(
        self, tensor: Any, shape: tuple[int, ...], expected: tuple[int, ...], sort: str
    ) -> None:
        found = tuple(self.read("strides", tensor))
        itemsize = dtypes.float32.itemsize
        if found == tuple(itemsize * stride for stride in expected) and found != expected:
            raise ConformanceError(
                f"`strides` of a {sort} float32 tensor of shape {shape} is {found}: these are "
                f"bytes, and strides count elements, here {expected}. Divide by the item size"
            )
        expect(
            found == expected,
            f"`strides` of a {sort} tensor of shape {shape} is {found}, and must be {expected}, "
            "counted in elements",
        )

    def test_transposed_views(self) -> None:
        self.needs_addresses()
        base = self.tensor((4, 6))
        view = self.transposed(base)
        if view is None:
            self.skip("`transposed` gives no view")
        self._check_shape((6, 4), self.read("shape", view))
        self._check_strides(view, (6, 4), (1, 6), "transposed")
        expect(
            self.read("pointer", view) == self.read("pointer", base),
            "`pointer` of a transposed view is not that of the tensor it looks at; either "
            "`transposed` copies, or `pointer` does",
        )

    def test_offset_views(self) -> None:
        """Where a view begins, whatever its alignment."""
        self.needs_addresses()
        base = self.tensor((6, 8))
        address = self.read("pointer", base)
        for row, column in ((0, 0), (1, 0), (0, 1), (2, 3), (0, 5)):
            view = self.sliced(base, (slice(row, None), slice(column, None, 2)))
            if view is None:
                self.skip("`sliced` gives no view")
            shape = (6 - row, (8 - column + 1) // 2)
            self._check_shape(shape, self.read("shape", view))
            self._check_strides(view, shape, (8, 2), "sliced")
            distance, expected = self.read("pointer", view) - address, 4 * (8 * row + column)
            expect(
                distance == expected,
                f"`pointer` of the float32 view [{row}:, {column}::2] lies {distance} bytes after "
                f"the tensor's own, and must lie {expected} bytes after it: it is the address of "
                "the view's first element, exactly, however that is aligned",
            )

    def test_pointer(self) -> None:
        self.needs_addresses()
        tensors = [self.tensor((33,)) for _ in range(8)]
        pointers = [self.read("pointer", tensor) for tensor in tensors]
        for pointer in pointers:
            expect(
                type(pointer) is int and pointer > 0,
                f"`pointer` is {pointer!r}; it must be an address, an int",
            )
        expect(
            len(set(pointers)) == len(pointers),
            "`pointer` of several tensors alive at once is the same; it is stale, that of another "
            "tensor. Read it from the tensor each time",
        )
        again = [self.read("pointer", tensor) for tensor in tensors]
        expect(again == pointers, "`pointer` of a tensor changed though the tensor did not")

    def test_pointers_of_temporaries(self) -> None:
        """Memory that is given back and taken again, under objects that are new each time."""
        self.needs_addresses()
        # Not all of `before_launching`: a pointer that is stale fails there too, less clearly.
        self.test_shape()
        self.test_strides()
        kept = []
        for turn in range(24):
            array = numpy.full((64,), turn, dtype=numpy.float32)
            temporary, output = self.made(array), self.made(array - 1)
            self.kernels["copy"](temporary, output, BLOCK_SIZE=self.block_size)
            expect(
                numpy.array_equal(self.found(output), array),
                f"the copy of a new tensor holds {self.found(output)[0]} where the tensor holds "
                f"{array[0]}: `pointer` seems stale, that of a tensor that is gone. Read it from "
                "the tensor each time, and keep nothing by id or shape",
            )
            # Every second one stays, so that memory and objects are reused out of step.
            kept += [temporary] if turn % 2 else [output]
            del temporary, output

    def test_zero_size(self) -> None:
        self.needs_addresses()
        for shape in EMPTY_SHAPES:
            tensor = self.tensor(shape)
            pointer = self.read("pointer", tensor)
            expect(
                type(pointer) is int,
                f"`pointer` of an empty tensor, of shape {shape}, is {pointer!r}; it must be an "
                "int, 0 where there is no memory, as in `({x}.pointer or 0)`",
            )
            strides = self.read("strides", tensor)
            expect(
                len(strides) == len(shape),
                f"`strides` of an empty tensor of shape {shape} is {strides!r}; it needs one a "
                "dimension",
            )

    def test_dtypes(self) -> None:
        expect(
            bool(self.element_types),
            "`dtypes` lists no element type of NineToothed's: it gives the framework's dtypes, each with ours",
        )
        for dtype in self.element_types:
            native = self.read("dtype", self.tensor((4,), dtype))
            self._check_hashable("dtype", native)
            try:
                found = self.frontend.dtype_of(native)
            except Exception as error:
                raise ConformanceError(
                    f"`dtype` of a tensor of {dtype} is {native!r}, which `dtypes` does not "
                    f"have: {error}"
                ) from error
            expect(
                found is dtype,
                f"the element type of a tensor of {dtype} is read as {found}: the wrong dtype",
            )

    def test_dtypes_can_be_declared(self) -> None:
        owns_dtype = self.frontend.owns_dtype
        for native, dtype in self.frontend.dtypes().items():
            if isinstance(native, str):
                # As a name it means what it means to everybody.
                continue
            is_owned = owns_dtype is not None and owns_dtype(type(native))
            found = self.frontend.dtype_of(native) if is_owned else dtypes.element_type(native)
            expect(
                found is dtype,
                f"Tensor(dtype={native!r}) means {found}, and `dtypes` says {dtype}: `owns_dtype` "
                "must say yes to the type of the framework's dtypes",
            )

    def test_item(self) -> None:
        numbers: list[tuple[Any, dtypes.DType]] = [(-3, dtypes.int64), (2.5, dtypes.float32)]
        numbers += [(7, dtypes.int32), (True, dtypes.bool)]
        for number, dtype in numbers:
            if dtype not in self.element_types:
                continue
            found = self.read("item", self.from_numpy(numpy.array(number, dtype.numpy)))
            expect(
                type(found) is type(number) and found == number,
                f"`item` of a tensor of no dimensions that holds {number!r} is {found!r}, a "
                f"{type(found).__name__}; it must be its value as Python's own "
                f"{type(number).__name__}",
            )

    def test_device(self) -> None:
        native = self.read("device", self.tensor((4,)))
        self._check_hashable("device", native)
        found = self.frontend.device_of(native)
        expect(
            found == self.device,
            f"a tensor on {self.device} is read as on {found}: `device` or `device_of` says the "
            "wrong device",
        )

    def test_keys_are_equal_for_equal_tensors(self) -> None:
        """A launch finds its plan again: what is read compares by value."""
        first, second = self.tensor((3, 4)), self.tensor((3, 4))
        fields = KEY_FIELDS if not self.takes_over_launches else ("shape", "dtype", "device")
        for field in fields:
            one, other = self.read(field, first), self.read(field, second)
            expect(
                one == other and hash(one) == hash(other),
                f"`{field}` of two tensors of one sort, {one!r} and {other!r}, is not equal or has "
                "different hashes; each launch would be planned anew",
            )

    def test_guard(self) -> None:
        """What the guard of a tensor says of itself and of tensors that differ from it in one way."""
        if self.frontend.guard is None:
            self.skip("the frontend has no `guard`")
        tensor = self.tensor((4, 6))
        expect(
            self._alike([tensor], [self.tensor((4, 6))]),
            "`guard` of a tensor says no to another of its sort; it only costs time then",
        )
        differing = {
            "the shape": self.tensor((6, 4)),
            "the rank": self.tensor((24,)),
            "the dtype": self.tensor((4, 6), self._other_dtype()),
            "the strides": self.transposed(self.tensor((6, 4))),
        }
        for what, other in differing.items():
            if other is None:
                continue
            for one, two in ((tensor, other), (other, tensor)):
                expect(
                    not self._alike([one], [two]) and not self._alike([tensor, one], [tensor, two]),
                    f"`guard` says that two tensors are alike that differ in {what}; what was "
                    "planned for the one would be run on the other",
                )

    def _alike(self, ones: Sequence[Any], others: Sequence[Any]) -> bool:
        """Whether the guard of some tensors says that others are alike."""
        assert self.frontend.guard is not None
        try:
            return bool(self.frontend.guard(*self._guarded(ones))(*self._guarded(others)))
        except Exception as error:
            raise ConformanceError(
                "`guard` of some tensors must give a function of as many that says whether they are alike; "
                f"it raises {type(error).__name__}: {error}"
            ) from error

    def _guarded(self, tensors: Sequence[Any]) -> list[Any]:
        """What a guard is given for some tensors."""
        if not self.frontend.guard_addresses:
            return [*tensors]
        return [*tensors, *(self.frontend.evaluate("pointer", tensor) for tensor in tensors)]

    def _other_dtype(self) -> dtypes.DType:
        others = (each for each in self.element_types if each is not dtypes.float32)
        return next(others, dtypes.int32)
