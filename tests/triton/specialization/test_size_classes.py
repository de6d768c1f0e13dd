"""Sizes of one class share a compiled kernel, and are bound to it without planning. No device."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from types import SimpleNamespace

import pytest

pytest.importorskip("triton")

import ninetoothed
from examples import layer_norm, mm, rms_norm, sdpa, silu, softmax
from ninetoothed.backends.base import Argument, Call, Device
from ninetoothed.backends.triton.planning import planner as planning
from ninetoothed.backends.triton.planning.planner import Planner
from ninetoothed.backends.triton.specialization.size_classes import (
    classes_for,
    facts_for,
    general_call,
)
from ninetoothed.backends.triton.translation import specialize
from ninetoothed.kernels.call_types import fitting
from ninetoothed.language import dtypes
from ninetoothed.launch.warm_up import _compiled
from ninetoothed.symbols.expr import as_symbol
from ninetoothed.tuning.space import Config
from tests.tuning.machines import H200

pytestmark = pytest.mark.fixes_options("its tests fix what is compiled")

#: So many of the lengths from 1 to 4096; `benchmarks.lengths` has them all, on a device.
COUNT = 384

LENGTHS = random.Random(0).sample(range(1, 4097), COUNT)


def tensor(*shape: int, dtype=dtypes.float16) -> Argument:
    strides = [1]
    for size in shape[:0:-1]:
        strides.insert(0, strides[0] * size)
    return Argument(shape, tuple(strides), dtype, 16)


def rows(length: int, module=softmax) -> Call:
    names = [p.name for p in module.kernel.definition.tensor_parameters]
    scalars = {
        p.name: dtypes.float32 for p in module.kernel.definition.parameters if p.kind == "scalar"
    }
    wide = {"input", "output"}
    shapes = {name: (512, length) if name in wide else (length,) for name in names}
    return Call({n: tensor(*shapes[n]) for n in names}, scalars, device=Device("cuda"))


def elements(length: int) -> Call:
    pair = dict.fromkeys(("input", "output"), tensor(length))
    return Call(pair, constants={"BLOCK_SIZE": 1024}, device=Device("cuda"))


def product(rows: int) -> Call:
    arguments = {"input": tensor(rows, 512), "other": tensor(512, 512), "output": tensor(rows, 512)}
    return Call(arguments, device=Device("cuda"))


def attention(length: int) -> Call:
    names = ("query", "key", "value", "output")
    arguments = dict.fromkeys(names, tensor(1, 8, length, 64))
    scalars, constants = {"scale": dtypes.float32}, {"is_causal": True}
    return Call(arguments, scalars, constants, Device("cuda"))


class Launchable:
    """What launches nothing, and says what it was given."""

    scratch_size, resident, index, backend, bind = 0, 264, 0, "cuda", None

    def __init__(self, compiled, index) -> None:
        self.launched: list[tuple[int, ...]] = []
        self.names = {"launch": lambda *given: self.launched.append(given)}

    def call(self, programs: str, stream: str, arguments: list[str]) -> str:
        return f"launch({programs}, {stream}, {', '.join(arguments)})"

    def describing(self, name):
        return lambda *described: (name, *described)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path) -> list[object]:
    """What was given to the compiler."""
    given: list[object] = []
    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    monkeypatch.delenv("NINETOOTHED_OPTIONS", raising=False)
    monkeypatch.setattr(planning.driver, "device_limits", lambda *_: H200)
    monkeypatch.setattr(planning.driver, "Launchable", Launchable)
    monkeypatch.setattr(planning, "runtime", lambda _: SimpleNamespace(device_count=lambda: 1))
    monkeypatch.setattr(planning, "compiled_for", lambda *known: given.append(known))
    monkeypatch.setattr(
        planning.binaries,
        "Binaries",
        lambda: SimpleNamespace(get=lambda key: None, put=lambda key, code: None),
    )
    return given


def made(module):
    """A kernel that has seen no call."""
    kernel = ninetoothed.make(module.arrangement, module.application, module.tensors)
    return kernel.specializations


def numbers_of(call: Call):
    return tuple((argument.shape, argument.strides) for argument in call.arguments.values())


def planned(specializations, call: Call):
    definition = specializations.of(
        {n: v for n, v in call.constants.items() if n in specializations.declaration.constants}
    )
    return fitting(definition, call, lambda given: Planner(given, call).plan(None))


def compilations(module, call_of, compiled, lengths=LENGTHS) -> Counter[int]:
    """How often each power of two is compiled for; the second time nothing is."""
    specializations, family, counts = made(module), None, Counter()
    for length in lengths:
        call, before = call_of(length), len(compiled)
        if family is None or family(numbers_of(call)) is None:
            family = planned(specializations, call).family or family
        counts[(length - 1).bit_length()] += len(compiled) - before
    assert all(family(numbers_of(call_of(length))) is not None for length in lengths)
    return counts


@pytest.mark.parametrize("module", [softmax, rms_norm, layer_norm])
def test_a_rows_length_is_compiled_for_four_times_at_most_between_two_powers_of_two(
    module, compiled
) -> None:
    counts = compilations(module, lambda length: rows(length, module), compiled)

    assert 0 < max(counts.values()) <= 4
    assert sum(counts.values()) == len(compiled) <= 44


@pytest.mark.parametrize("step", [1, 512])
def test_where_no_width_matters_there_are_four_in_all(step, compiled) -> None:
    compilations(silu, lambda length: elements(step * length), compiled)

    assert 0 < len(compiled) <= 4


@pytest.mark.parametrize(("module", "call_of"), [(mm, product), (sdpa, attention)])
def test_products_and_attention_share_what_is_compiled(module, call_of, compiled) -> None:
    lengths = [1, 5, 8, 17, 64, 100, 129, 130, 500, 511, 777, 1000, 1024, 3001, 4095]
    counts = compilations(module, call_of, compiled, lengths)

    assert max(counts.values()) <= 4
    assert sum(counts.values()) <= 12


def test_a_new_length_of_a_known_class_asks_for_nothing(compiled, monkeypatch) -> None:
    specializations = made(softmax)
    family = planned(specializations, rows(3001)).family
    for name in ("specialize", "compiled_for", "Planner", "Results", "first_working"):
        monkeypatch.setattr(planning, name, None)

    assert family(numbers_of(rows(2999))) is not None
    assert family(numbers_of(rows(3000))) is None
    assert family(numbers_of(rows(1999))) is None


def test_what_was_warmed_up_is_not_compiled_again(compiled) -> None:
    specializations = made(softmax)
    calls = [rows(length) for length in (100, 101, 1001, 1008, 3001)]

    assert _compiled((specializations.of({}), call) for call in calls) == 5
    assert len(compiled) == 5
    for length in (101, 103, 1003, 1016, 2999):
        planned(specializations, rows(length))
    assert len(compiled) == 5


def test_what_is_bound_launches_with_the_sizes_of_the_call(compiled) -> None:
    specializations = made(softmax)
    first = planned(specializations, rows(3001))
    launched = first.details["launchable"].launched
    first.family(numbers_of(rows(2999)))(7, 1 << 30, 1 << 31)
    planned(specializations, rows(2999)).run(7, 1 << 30, 1 << 31)

    assert launched[0] == launched[1]
    assert launched[0][0] == 512 and 2999 in launched[0]


def test_sizes_that_do_not_fit_the_arrangement_are_left_to_planning(compiled) -> None:
    family = planned(made(mm), product(1000)).family
    call = product(1008)
    apart = {**call.arguments, "output": tensor(1016, 512)}

    assert family(numbers_of(call)) is not None
    assert family(tuple((a.shape, a.strides) for a in apart.values())) is None


def test_calls_of_a_class_have_one_text() -> None:
    definition = softmax.kernel.definition
    config = Config((), 4, 3)
    texts = set()
    for length in (513, 601, 777, 1001, 1023):
        call = rows(length)
        specialized = specialize(definition, call, config, general_call(definition, call))
        texts.add(specialized.emitted.text)
        assert specialized.integers["input_size_1"] == length
        assert specialized.constants["input_size_1_widened"] == 1024
    (text,) = texts
    assert "for quarter in tl.static_range(4):" in text


def test_a_power_of_two_is_a_class_of_its_own_with_nothing_left_out() -> None:
    definition, call = softmax.kernel.definition, rows(1024)
    config = Config((), 4, 3)
    general = general_call(definition, call)
    text = specialize(definition, call, config, general).emitted.text

    assert text == specialize(definition, call, config).emitted.text
    assert "mask" not in text


def test_rows_of_different_lengths_share_no_quarter() -> None:
    definition, call = softmax.kernel.definition, rows(777)
    apart = Call({**call.arguments, "output": tensor(512, 778)}, device=call.device)

    assert general_call(definition, call) is not None
    assert general_call(definition, apart) is None


def test_a_kernel_may_be_compiled_for_each_size(compiled) -> None:
    kernel = ninetoothed.make(
        softmax.arrangement, softmax.application, softmax.tensors, specialize="sizes"
    )
    for length in (777, 779):
        assert planned(kernel.specializations, rows(length)).family is None

    assert len(compiled) == 2
    with pytest.raises(ninetoothed.errors.ArgumentError, match="specialize must be"):
        ninetoothed.make(softmax.arrangement, softmax.application, softmax.tensors, specialize="x")


@pytest.mark.parametrize("length", [1, 2, 3, 255, 256, 257, 4095, 4096])
def test_the_numbers_that_stand_for_a_class_stand_for_themselves(length) -> None:
    call = rows(length)
    standing = classes_for(softmax.kernel.definition, call).standing_for(numbers_of(call))

    assert classes_for(softmax.kernel.definition, call).standing_for(standing) == standing
    assert all(s >= n for (a, _), (b, _) in zip(standing, numbers_of(call)) for s, n in zip(a, b))


def test_a_call_whose_sizes_overflow_in_what_is_computed_of_them_is_of_no_class():
    def arrangement(input, output):
        return input.tile((-1, -1)), output.tile((1,)).expand((1,))

    def application(input, output):
        output = input.source.shape[0] * 100000  # noqa: F841

    tensors = (ninetoothed.Tensor(2), ninetoothed.Tensor(1))
    kernel = ninetoothed.make(arrangement, application, tensors)

    def general(length: int) -> Call | None:
        arguments = {"input": tensor(length, 1), "output": tensor(1, dtype=dtypes.int64)}
        return general_call(kernel.definition, Call(arguments, device=Device("cuda")))

    assert general(5001) is not None
    # 32 bits hold 20,001 times as much, and not what stands for its class, 32,767 times.
    assert general(20001) is None and general(70001) is None


def test_a_class_for_which_a_number_of_tiles_is_another_is_left_to_each_size():
    def general(rows: int, length: int) -> Call | None:
        def arrangement(input, output):
            return input.tile((rows, 16)).squeeze(0), output.tile((rows, 16)).squeeze(0)

        def application(input, output):
            output = input  # noqa: F841

        tensors = (ninetoothed.Tensor(2), ninetoothed.Tensor(2))
        kernel = ninetoothed.make(arrangement, application, tensors)
        pair = dict.fromkeys(("input", "output"), tensor(length, 64))
        return general_call(kernel.definition, Call(pair, device=Device("cuda")))

    # Of 11 rows there is one tile of 12, and of the 15 that stand for them there are two.
    assert general(12, 11) is None
    assert general(16, 11) is not None


@pytest.mark.parametrize(
    ("rows", "standing"), [(100, 127), (512, 512), (600, 639), (3000, 3071), (3072, 3072)]
)
def test_products_have_eight_classes_between_two_powers_of_two(rows, standing) -> None:
    """How many tiles there are decides which are chosen."""
    general = general_call(mm.kernel.definition, product(rows))
    assert general.arguments["output"].shape == (standing, 512)


def test_elements_have_one_class_between_two_powers_of_two() -> None:
    general = general_call(silu.kernel.definition, elements(3072))
    assert general.arguments["output"].shape == (4096 - 256,)


@pytest.mark.parametrize("padding", (1, 9))
def test_no_end_of_a_tile_stands_for_the_end_of_a_tensor_that_others_of_a_class_have_earlier(
    padding,
):
    def arrangement(output):
        arranged = output.tile((7,)).squeeze(0)
        arranged.dtype = arranged.dtype.pad(((0, padding),))
        return arranged

    def application(output):
        output = 1.0  # noqa: F841

    definition = ninetoothed.make(arrangement, application, (ninetoothed.Tensor(1),)).definition
    call = Call({"output": tensor(5)}, device=Device("cuda"))
    general = general_call(definition, call)
    assert general is not None and general.arguments["output"].shape == (7,)
    text = specialize(definition, call, Config((), 4, 3), general).emitted.text

    assert "< output_size_0" in text


@pytest.mark.parametrize("step", (1, 2, 3, 4, 6, 8, 12, 32))
def test_what_holds_for_a_class_holds_for_all_of_it_where_a_part_of_each_tile_is_used(step):
    def arrangement(output, first, last):
        arranged = output.tile((step,))
        arranged.dtype = arranged.dtype[first:last]
        return arranged

    def application(output):
        output = 1.0  # noqa: F841

    held = 0
    for first, last in {(0, step), (0, -(-step // 2)), (step // 2, step), (step - 1, step)}:
        part = partial(arrangement, first=first, last=last)
        definition = ninetoothed.make(part, application, (ninetoothed.Tensor(1),)).definition
        size = as_symbol(definition.tensor_parameters[0].source.shape[0])
        asked = {
            ("output", place)
            for place, condition in enumerate(definition.arrangement.accesses["output"].conditions)
            if size in condition.leaves()
        }
        for length in range(1, 140):
            general = general_call(
                definition, Call({"output": tensor(length)}, device=Device("cuda"))
            )
            if general is None:
                continue
            environment = definition.environment(general)
            grid = definition.verified_grid(environment)
            facts = facts_for(definition, environment, grid, True)
            if not asked <= facts.holding:
                continue
            held += 1
            assert (length - 1) // step * step + last <= length, (first, last, length)
    assert held, "no class of which it holds"


def test_offsets_have_one_type_in_a_class():
    def application(x, y):
        y = x.offsets(0)  # noqa: F841

    kernel = ninetoothed.make(
        lambda x, y: (x.tile((1000,)), y.tile((1000,))),
        application,
        (ninetoothed.Tensor(1), ninetoothed.Tensor(1)),
    ).definition
    for size, has_class in ((2**31 - 3001, False), (2**29 + 1, True)):
        call = Call(dict.fromkeys(("x", "y"), tensor(size)), device=Device("cuda"))
        assert (general_call(kernel, call) is not None) is has_class
