"""Parts that wait for one another: which kernels, who does what whenever they come, the same results."""

from __future__ import annotations

import random
import re
import threading
import types
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from ninetoothed.backends.triton import library  # noqa: E402
from ninetoothed.backends.triton.options import cooperative_reduction as shares  # noqa: E402
from ninetoothed.backends.triton.planning.choices import are_right, choices, defaults  # noqa: E402
from ninetoothed.backends.triton.planning.planner import compiled_for  # noqa: E402
from ninetoothed.backends.triton.specialization.target import Target  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of, specialize  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402
from tests.triton.options.cases.cooperative_reduction import KERNELS, SHARED, WHOLE  # noqa: E402
from tests.triton.options.test_split_k import convolution, half, product  # noqa: E402
from tests.tuning.machines import H200  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")


def config(m, n, k, **options):
    blocks = {"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k}
    return Config(tuple(blocks.items()), 8, 3, tuple(sorted(options.items())))


def tried(kernel, call, blocks, parts, multiprocessors=132):
    environment = environment_of(kernel.definition, call, config(*blocks))
    return shares.choices(kernel.definition, environment, parts, multiprocessors)


def is_possible(name, parts=4, value=1):
    kernel = KERNELS[name]
    call = kernel.call_of(half(64, 64), half(64, 64), 1.0, half(64, 64))
    return shares.is_possible(kernel.definition, kernel.definition.environment(call), parts, value)


@pytest.mark.parametrize("name", SHARED)
def test_what_is_done_to_each_element_may_be_shared(name):
    assert is_possible(name)


@pytest.mark.parametrize("name", WHOLE)
def test_anything_else_may_not(name):
    assert not is_possible(name)


def test_of_the_ten_kernels_the_products_that_load_nothing_more_may_be():
    environment = dict.fromkeys(("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K"), 64)
    found = {
        name
        for name, kernel in TEN.items()
        if shares.is_possible(
            kernel.definition, {s: environment.get(kernel.names[s], 64) for s in kernel.names}, 4, 1
        )
    }

    assert found == {"mm", "bmm", "conv2d"}


def test_a_tile_has_a_piece_for_each_part():
    # Tiles of 16 x 16.
    assert is_possible("product", 16) and is_possible("product", 9, 2)
    assert not is_possible("product", 17)
    assert not is_possible("product", 4, 3)
    assert not is_possible("product", 1)


def test_windows_are_shared_where_lines_of_sums_are_long_enough():
    # The result's neighbours are in rows; 256 columns in eight pieces are lines of 32.
    assert tried(*convolution(), (64, 256, 64), 7) == (2,)
    assert tried(*convolution(), (64, 128, 64), 7) == (1, 0)


def test_rows_are_shared_where_the_result_s_neighbours_are_in_columns():
    assert tried(*product(64, 4096, 4096), (64, 64, 64), 2) == (1,)


def test_nothing_is_shared_where_programs_run_one_after_another():
    assert tried(*product(64, 4096, 4096), (64, 64, 64), 5) == ()
    assert tried(*product(64, 4096, 4096), (64, 64, 64), 2, multiprocessors=0) == ()


def test_it_is_on_where_all_programs_run_at_once(monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "split_k=7,register_prefetch=1")
    kernel, call = convolution()
    found = {
        n: {
            dict(chosen).get("cooperative_reduction", 0)
            for chosen in choices(
                kernel.definition,
                call,
                environment_of(kernel.definition, call, config(64, n, 64)),
                H200,
            )
        }
        for n in (128, 256)
    }

    assert found == {128: {1, 0}, 256: {2}}


def test_nothing_is_shared_where_tiles_come_by_descriptor(monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "split_k=2")
    found = {
        k: {
            dict(chosen).get("cooperative_reduction", 0)
            for chosen in choices(
                kernel.definition,
                call,
                environment_of(kernel.definition, call, config(64, 64, 64)),
                H200,
            )
        }
        for k in (4096, 4099)
        for kernel, call in [product(64, k, 4096)]
    }

    # Rows of 4099 elements begin anywhere.
    assert found == {4096: {0}, 4099: {1}}


def test_it_goes_with_parts_alone():
    kernel, call = product(64, 4096, 4096)
    environment = environment_of(kernel.definition, call, config(64, 64, 64))
    target = Target("cuda", 90, 32)

    assert are_right(
        kernel.definition, call, environment, target, (("cooperative_reduction", 2), ("split_k", 5))
    )
    assert are_right(kernel.definition, call, environment, target, (("split_k", 5),))
    assert not are_right(
        kernel.definition, call, environment, target, (("cooperative_reduction", 1),)
    )
    assert defaults()["cooperative_reduction"] == 0


@pytest.mark.parametrize("value", [1, 2])
def test_a_piece_is_stored_where_it_is_this_part_s(value):
    kernel, call = convolution()
    emitted = specialize(
        kernel.definition, call, config(64, 256, 64, split_k=7, cooperative_reduction=value)
    ).emitted
    lines = emitted.text.splitlines()
    place = lines.index("        if mine >> share % 7 & 1:")

    assert lines[place - 2 : place] == [
        "    mine = shares_of_part(arrivals_ptr + tile, part, 7)",
        "    for share in range(8):",
    ]
    assert [line for line in lines if "tl.store(" in line] == [lines[-1]]
    assert f"BLOCK_SIZE_{'MN'[value - 1]} // 8" in lines[-3] + lines[-4] + lines[-5]


@pytest.mark.parametrize("value", [1, 2])
@pytest.mark.parametrize("name", ["conv2d", "bmm"])
def test_shares_are_compiled(name, value, monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", f"split_k=5,cooperative_reduction={value}")
    shapes = {
        "conv2d": [(2, 64, 14, 14), (64, 64, 3, 3), (2, 64, 12, 12)],
        "bmm": [(2, 100, 500), (2, 500, 100), (2, 100, 100)],
    }[name]
    blocks = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 64}
    compiled = TEN[name].compile(
        *map(lambda shape: half(*shape), shapes),
        target=("cuda", 90),
        configuration=blocks,
        num_warps=4,
        num_stages=3,
    )

    # Stored before it is counted, counted before it is loaded; no load from a cache of one's own.
    assert "atom.global.gpu.acq_rel.add.u32" in compiled.asm["ptx"]
    assert re.search(r"(ld|atom)\.global\.gpu\.acquire\.", compiled.asm["ptx"])
    assert "ld.global.cg" in compiled.asm["ptx"]


def test_offsets_past_32_bits_are_compiled():
    kernel, near = product(64, 500, 64)
    far = replace(near.arguments["output"], strides=(2**26, 1))
    call = replace(near, arguments={**near.arguments, "output": far})
    chosen = config(64, 64, 64, split_k=5, cooperative_reduction=1)
    specialized = specialize(kernel.definition, call, chosen)

    assert "tl.cast(share, tl.int64)" in specialized.emitted.text
    assert compiled_for(kernel.definition, specialized, Target("cuda", 90, 32), chosen)


@pytest.mark.parametrize(
    "options", ["split_k=2,cooperative_reduction=1", "split_k=5,cooperative_reduction=2"]
)
def test_one_that_has_waited_in_vain_leaves_its_share_to_the_last(options):
    """In the interpreter one program runs after the other."""
    assert failures("tests.triton.options.cases.cooperative_reduction", options) == {}


@pytest.mark.parametrize("value", [1, 2])
def test_the_ten_kernels_give_the_same(value):
    assert (
        failures("tests.triton.options.cases.split_k", f"split_k=5,cooperative_reduction={value}")
        == {}
    )


# Who does what, whenever they come.


class Int32(int):
    """A whole number of 32 bits."""


def _wrapping(operation):
    def compute(left, right):
        result = getattr(int(left), operation)(int(right))
        return Int32((result + 2**31) % 2**32 - 2**31)

    return compute


for _operation in "add sub mul and or lshift rshift".split():
    setattr(Int32, f"__{_operation}__", _wrapping(f"__{_operation}__"))
for _operation in "add sub mul and lshift".split():
    setattr(Int32, f"__r{_operation}__", _wrapping(f"__r{_operation}__"))


class Meeting:
    """Parts of a tile that run `library.shares_of_part` at once; one step of one of them at a time."""

    def __init__(self, count: int, looks: int) -> None:
        self.counter, self.arrived, self.found = Int32(0), 0, {}
        self._running, self._turn = list(range(count)), threading.Condition()
        self._whose: int | None = None
        language = types.SimpleNamespace(
            atomic_add=self._atomic_add,
            debug_barrier=lambda: None,
            static_range=lambda stop: map(Int32, range(stop)),
            where=lambda condition, one, other: Int32(one if condition else other),
        )
        scope = {"tl": language, "_MOST_LOOKS": looks}
        for function in (library._step, library.shares_of_part):
            plain = types.FunctionType(function.fn.__code__, scope)
            scope[function.fn.__name__] = plain
        self._run = scope["shares_of_part"]
        self._threads = [threading.Thread(target=self._part, args=(n, count)) for n in range(count)]

    def held(self, choose) -> None:
        """Runs all to their ends; ``choose`` says who goes on."""
        for thread in self._threads:
            thread.start()
        while self._running:
            with self._turn:
                self._whose = choose(self._running)
                self._turn.notify_all()
                self._turn.wait_for(lambda: self._whose is None, timeout=20)
        for thread in self._threads:
            thread.join(timeout=20)

    def _part(self, number: int, count: int) -> None:
        found = self._run(number, Int32(number), count)
        with self._turn:
            self._turn.wait_for(lambda: self._whose == number, timeout=20)
            # Whoever has a share may read what all have stored.
            assert not found or self.arrived == count
            self.found[number] = found
            self._running.remove(number)
            self._whose = None
            self._turn.notify_all()

    def _atomic_add(self, number: int, value: int, sem: str, scope: str) -> Int32:
        with self._turn:
            self._turn.wait_for(lambda: self._whose == number, timeout=20)
            before, self.counter = self.counter, self.counter + value
            # The first thing that each does.
            self.arrived += number not in self.found
            self.found.setdefault(number, None)
            self._whose = None
            self._turn.notify_all()
            return before


def meet(count: int, looks: int, choose) -> dict[int, int]:
    """The shares that each part did; each share was done once, and the counter is 0 again."""
    meeting = Meeting(count, looks)
    meeting.held(choose)

    assert meeting.counter == 0
    assert sum(meeting.found.values()) == (1 << count) - 1
    done = [part for found in meeting.found.values() for part in range(count) if found >> part & 1]
    assert sorted(done) == list(range(count))
    return meeting.found


@pytest.mark.parametrize("count", [2, 3, 7, 16])
def test_all_do_their_own_where_all_have_come(count):
    def in_turns(running):
        turns.append(running[len(turns) % len(running)])
        return turns[-1]

    turns: list[int] = []
    assert meet(count, 1000, in_turns) == {part: 1 << part for part in range(count)}


@pytest.mark.parametrize("count", [2, 3, 7, 16])
def test_the_last_does_all_where_none_has_met_another(count):
    found = meet(count, 3, lambda running: running[0])

    assert found == {**dict.fromkeys(range(count - 1), 0), count - 1: (1 << count) - 1}


@pytest.mark.parametrize("count", [2, 3, 5])
def test_every_share_is_done_once_however_they_come(count):
    kinds = set()
    for seed in range(60):
        chance = random.Random(seed)
        found = meet(count, chance.choice([0, 1, 3]), chance.choice)
        kinds.add(tuple(sorted(bin(shares).count("1") for shares in found.values())))

    # Some shared, some left.
    assert len(kinds) > 1
