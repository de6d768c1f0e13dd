"""Each variant's source in Triton's interpreter, with what its guard lets through; see `test_variants`."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import ninetoothed
from ninetoothed import Tensor, plugins
from ninetoothed.aot import compiling
from ninetoothed.aot.unit import Unit
from ninetoothed.backends.triton.ahead.default_config import large_call
from ninetoothed.backends.triton.ahead.variants import edition_of
from ninetoothed.backends.triton.compiler.compile import load
from ninetoothed.cache import write_source
from ninetoothed.kernels.ahead import Edition
from ninetoothed.tuning.space import Config
from tests.aot.kernels import DECLARED, JAGGED, PREMAKES, defined, defined_of
from tests.aot.making import tensor_map
from tests.aot.reference import View as Numbers
from tests.aot.reference import chosen as chosen_by
from tests.aot.reference import environment
from tests.aot.values import CASES, HOW, TOLERANCE, View, view
from tests.triton.variants import Ahead

# Nothing runs before.
tl.extra.cuda.gdc_wait = lambda: None

#: Sizes small enough for the interpreter: odd ones, and ones that tiles divide.
SIZES: dict[str, list[tuple[int, ...]]] = {
    "add": [(2500,), (2048,)],
    "silu": [(2500,), (2048,)],
    "softmax": [(3,)],
    "rms_norm": [(3,)],
    "mm": [(137, 70, 261), (128, 128, 256)],
    "addmm": [(137, 70, 261), (128, 128, 256)],
    "bmm": [(2, 137, 70, 261), (1, 128, 64, 256)],
    "conv2d": [(1, 5, 9, 11, 33)],
    "rope": [(1, 3)],
    "sdpa": [(1, 1, 2, 131), (1, 1, 1, 128)],
    "divided": [(70, 70, 130), (32, 64, 160)],
    "convolution": [(1, 512, 6, 6, 32)],
    "jagged": [(5, 0, 33), (16, 32)],
}


#: A product whose reduction is divided, whatever its sizes.
DIVIDED = Config(
    (("BLOCK_SIZE_K", 32), ("BLOCK_SIZE_M", 32), ("BLOCK_SIZE_N", 32)), 4, 3, (("split_k", 3),)
)


@functools.cache
def unit_of(name: str) -> tuple[Unit, Edition]:
    if name == "divided":
        kernel, fixed = defined_of(PREMAKES["mm"], name)
        edition = edition_of(kernel, fixed, "sm_90", None, (large_call(kernel, fixed), DIVIDED))
        return Unit(name, kernel, fixed, (edition,), ()), edition
    others = {**DECLARED, **JAGGED}
    kernel, fixed = defined_of(others[name], name) if name in others else defined(name)
    edition = compiling.backend().editions(kernel, fixed, "sm_90")[-1]
    return Unit(name, kernel, fixed, (edition,), ()), edition


def run(name: str, number: int, views: dict[str, Any]) -> None:
    """One variant, whether or not a launch would choose it."""
    unit, edition = unit_of(name)
    variant = edition.variants[number]
    numbers = {n: as_numbers(v) if isinstance(v, View) else v for n, v in views.items()}
    values = environment(unit, edition, numbers)
    path = write_source(name, variant.source)
    function = load(variant.source, name, path, dict(variant.work.externs))
    arguments: dict[str, Any] = dict(variant.work.constants)
    for argument in variant.arguments:
        if argument.in_workspace is not None:
            assert variant.workspace is not None
            # What is asked to be zeros, and what need not be.
            if argument.in_workspace == 0:
                arguments[argument.name] = torch.zeros(
                    variant.workspace.zeros // 4, dtype=torch.int32
                )
            else:
                rest = variant.workspace.size.evaluate(values) - argument.in_workspace
                arguments[argument.name] = torch.full((rest // 4,), math.nan)
        elif argument.described is not None:
            given = views[argument.parameter or ""]
            arguments[argument.name] = TensorDescriptor(
                torch.from_numpy(given.storage[given.offset :]),
                [size.evaluate(values) for size in argument.described.shape],
                [stride.evaluate(values) for stride in argument.described.strides],
                list(tensor_map(argument.type).extents),
            )
        elif argument.name not in function.arg_names:
            # What a launch has after a descriptor.
            continue
        elif argument.expression is not None:
            arguments[argument.name] = argument.expression.evaluate(values)
        else:
            given = views[argument.parameter or ""]
            # From the view's first element on, as its address is.
            is_view = isinstance(given, View)
            arguments[argument.name] = (
                torch.from_numpy(given.storage[given.offset :]) if is_view else given
            )
    programs = math.prod(unit.kernel.verified_grid(values))
    if variant.programs is not None:
        programs = variant.programs.evaluate(values)
    # As on a device that holds few at a time.
    function[(min(programs, 3) if variant.work.is_persistent else programs,)](**arguments)


def as_numbers(given: View) -> Numbers:
    """What a launch sees of a view. Its memory is taken to begin at a multiple of 16."""
    address = 0x1000 + given.offset * given.storage.itemsize
    return Numbers(given.values.shape, given.strides, address)


def check(name: str) -> None:
    unit, edition = unit_of(name)
    make, _ = CASES["mm" if name == "divided" else name]
    ran: set[str] = set()
    for place, size in enumerate(SIZES[name]):
        for how in HOW if place == 0 else HOW[:2]:
            arguments, expected = make(*size)
            views: dict[str, Any] = {}
            given = iter(arguments)
            for parameter in unit.parameters:
                if parameter.kind == "constexpr":
                    continue
                each = next(given)
                values = np.zeros(expected.shape, np.float16) if each is None else each
                is_number = isinstance(each, float)
                is_ready = is_number or isinstance(each, View)
                views[parameter.name] = each if is_ready else view(values, how, each is None)
            numbers = {n: as_numbers(v) if isinstance(v, View) else v for n, v in views.items()}
            strongest = chosen_by(edition, environment(unit, edition, numbers), numbers)
            # All weaker variants are right too.
            for number in range(strongest, len(edition.variants)):
                if "gluon" in edition.variants[number].source:
                    # Which Triton does not interpret.
                    continue
                for each in views.values():
                    if isinstance(each, View) and each.is_output:
                        each.storage.view(np.uint16)[:] = 0x7E7E
                run(name, number, views)
                ran.add(edition.variants[number].name)
                output = next(v for v in views.values() if isinstance(v, View) and v.is_output)
                compare(output, expected, f"{size} {how} {edition.variants[number].name}")
    # Where a sequence begins takes 64 bits in any.
    assert ran >= {"plain", "contiguous"} | (set() if name in JAGGED else {"narrow"}), ran


def compare(output: View, expected: np.ndarray, where: str) -> None:
    found = output.storage[output.places()].astype(np.float64)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert error <= TOLERANCE, (where, error)
    others = np.ones(output.storage.size, bool)
    others[output.places()] = False
    assert (output.storage.view(np.uint16)[others] == 0x7E7E).all(), where


def check_divided() -> None:
    """A product of sizes that nobody declared, whose reduction is divided."""
    _, edition = unit_of("divided")
    assert [v.name for v in edition.variants if v.workspace] == ["full", "divided"]
    check("divided")


case_divided = check_divided


def check_declared() -> None:
    """A convolution of declared sizes, whose reduction is divided."""
    _, edition = unit_of("convolution")
    assert edition.variants[0].workspace is not None
    check("convolution")


case_convolution = check_declared


def case_one_element_of_a_tile_beyond_its_level() -> None:
    """The tile's condition keeps the others in the tensor: the variant that relies on it takes no such call."""

    def arrangement(input, output):
        return input.tile((2,)).tile((-1,)), output.tile((4,))

    def application(input, output):
        for k in range(input.shape[0]):
            output += input[k + 2][0]

    tensors = tuple(Tensor(1, dtype=ninetoothed.float32) for _ in range(2))
    kernel = ninetoothed.make(arrangement, application, tensors)
    whole = torch.full((64,), torch.nan)
    whole[16:29] = 1
    for name, (output,) in by_variant(kernel, (whole[16:29],), torch.zeros(4)):
        assert bool((output == 5).all()), (name, output)


def case_sizes_strides_and_offsets_that_are_values_are_integers_of_32_bits() -> None:
    """Of which type they are does not depend on the variant that a launch chooses."""

    def arrangement(x, limits, less, unsigned, more, placed, counted):
        tensors = x, limits, less, unsigned, more, placed, counted
        return tuple(each.tile((4,)) for each in tensors)

    def application(x, limits, less, unsigned, more, placed, counted):
        less = x - x.source.shape[0]  # noqa: F841
        unsigned = limits - x.source.shape[0]  # noqa: F841
        more = x - x.source.stride(0) * 2  # noqa: F841
        placed = x - x.offsets()  # noqa: F841
        for k in range(x.source.shape[0]):
            counted = k - 2147483647 - x.source.shape[0] * 2  # noqa: F841

    dtypes = ninetoothed.int32, ninetoothed.uint32, *[ninetoothed.int64] * 5
    tensors = tuple(Tensor(1, dtype=dtype) for dtype in dtypes)
    kernel = ninetoothed.make(arrangement, application, tensors)
    least, most = -(2**31), 2**31
    given = torch.full((4,), least, dtype=torch.int32), torch.full((4,), 1, dtype=torch.uint32)
    expected = [
        *([most - 4] * 4, [2**32 - 3] * 4, [most - 2] * 4),
        *([least, *(most - n for n in (1, 2, 3))], [most - 4] * 4),
    ]
    outputs = [torch.zeros(4, dtype=torch.int64) for _ in expected]
    names = []
    for name, found in by_variant(kernel, given, *outputs):
        names.append(name)
        assert [each.tolist() for each in found] == expected, (name, found)
    assert names[0] == "valued", names


def by_variant(kernel: Any, given: tuple[torch.Tensor, ...], *outputs: torch.Tensor) -> Any:
    """What each variant that a call may take gives, after its name."""
    for place in itertools.count():
        chosen = Ahead(place)
        plugins.backend_for = lambda kind, chosen=chosen: chosen
        kernel.forget_launches()
        for output in outputs:
            output.zero_()
        kernel(*given, *outputs)
        if chosen.has_run:
            yield chosen.name_of_variant, outputs
        if chosen.is_last:
            return


for _name in SIZES:
    if _name in DECLARED or _name == "divided":
        continue
    globals()[f"case_{_name}"] = functools.partial(check, _name)
