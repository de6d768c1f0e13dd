"""Results that stay in the cache: which kernels keep some, how many, and that nothing else changes."""

from __future__ import annotations

import itertools
import math
import random

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from examples import add, rope_in_place, silu, softmax  # noqa: E402
from ninetoothed import Symbol, Tensor  # noqa: E402
from ninetoothed.backends.base import Argument, Call, Device  # noqa: E402
from ninetoothed.backends.triton.compiler.compile import Target  # noqa: E402
from ninetoothed.backends.triton.options import (  # noqa: E402
    l2_residency,
    registry,
)
from ninetoothed.backends.triton.options.l2_residency import (  # noqa: E402
    Keeping,
    _boxes,
    keeping,
    results,
    serves,
)
from ninetoothed.backends.triton.planning.planner import compiled_for  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of, specialize  # noqa: E402
from ninetoothed.language import dtypes  # noqa: E402
from ninetoothed.symbols.expr import as_symbol  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402
from tests.triton import keep_cases  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402
from tests.unit.machines import H200  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")


@pytest.fixture(autouse=True)
def nothing_is_fixed(monkeypatch):
    monkeypatch.delenv("NINETOOTHED_OPTIONS", raising=False)


def sum_of(size: int) -> Call:
    vector = Argument((size,), (1,), dtypes.float16, 16)
    names = ("input", "other", "output")
    return Call(dict.fromkeys(names, vector), constants={"BLOCK_SIZE": 1024}, device=Device("cuda"))


def kept(kernel, call: Call, device=H200) -> set[int]:
    """What is tried of the option."""
    found = registry.choices(
        kernel.definition, call, environment_of(kernel.definition, call, None), device
    )
    return {dict(chosen).get("keep", 0) for chosen in found}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add", {"output"}),
        ("softmax", {"output"}),
        ("rms_norm", {"output"}),
        ("rope", {"output"}),
        ("mm", set()),
        ("sdpa", set()),
        ("conv2d", set()),
    ],
)
def test_whose_results_are_kept(name, expected):
    assert results(TEN[name].definition) == expected


def test_what_was_loaded_is_no_result():
    assert not results(rope_in_place.kernel.definition)


def test_a_loop_keeps_nothing():
    def arrangement(values, sums, BLOCK=Symbol("BLOCK", constexpr=True)):
        return values.tile((1, BLOCK)).tile((1, -1)), sums.tile((1, 1))

    def application(values, sums):
        total = ntl.zeros((1, 1), dtype=ntl.float32)
        for block in range(values.shape[1]):
            total += ntl.sum(values[0, block])
        sums = total

    assert not results(ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2))))


@pytest.mark.parametrize(
    ("size", "mib"),
    [(1024, 0), (7 * 2**20, 0), (2**23, 10), (50 * 2**20, 10), (60 * 2**20, 0), (2**30, 0)],
)
def test_a_sixth_of_the_cache_unless_results_are_less_or_many_times_more(size, mib):
    assert kept(add.kernel, sum_of(size)) == {mib}


def test_a_device_whose_cache_is_not_known_keeps_nothing():
    assert kept(add.kernel, sum_of(2**24), None) == {0}
    assert kept(add.kernel, sum_of(2**24), Target.parse(("cuda", 90))) == {0}
    assert kept(add.kernel, sum_of(2**24), Target.parse(("hip", "gfx942"))) == {0}


@pytest.mark.parametrize(
    ("target", "is_served"),
    [(("cuda", 90), True), (("cuda", 80), True), (("cuda", 75), False), (("hip", "gfx942"), False)],
    ids=str,
)
def test_devices_that_mark_lines(target, is_served):
    assert serves(Target.parse(target)) == is_served
    assert not serves(None)


def test_nothing_is_kept_where_most_is_read():
    def arrangement(values, sums):
        return values.tile((1, -1)), sums.tile((1, 1))

    def application(values, sums):
        sums = ntl.sum(values)

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))
    matrix = Argument((4096, 4096), (4096, 1), dtypes.float16, 16)
    call = Call({"values": matrix, "sums": Argument((4096, 1), (1, 1), dtypes.float16, 16)})
    assert results(kernel.definition) == {"sums"}
    assert kept(kernel, call) == {0}


def test_without_hints_nothing_is_kept(monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "hints=0")
    assert kept(add.kernel, sum_of(2**24)) == {0}


def test_calls_of_other_sizes_share_the_source():
    config = Config((), 4, 3, (("keep", 10),))
    texts = {
        specialize(add.kernel.definition, sum_of(size), config).emitted.text
        for size in (2**23, 2**24)
    }
    (text,) = texts
    assert "    is_kept = tl.program_id(0) < 5120\n" in text
    assert text.endswith("    release_kept(output_ptr, 81920)\n")


def kept_rows(columns: int, strides: tuple[int, int], rows: int = 2**15) -> Keeping | None:
    """What of a softmax's results is kept."""
    matrix = Argument((rows, columns), (columns, 1), dtypes.float16, 16)
    output = Argument((rows, columns), strides, dtypes.float16, 16)
    call = Call({"input": matrix, "output": output})
    environment = environment_of(softmax.kernel.definition, call, None)
    return keeping(softmax.kernel.definition, call, environment, (rows, 1), 10)


@pytest.mark.parametrize("columns", [500, 1000, 1024])
def test_so_many_programs_have_the_results(columns):
    found = kept_rows(columns, (columns, 1))
    num_bytes = found.num_programs * columns * 2
    assert 0.75 < num_bytes / (10 * 2**20) <= 1
    # Beyond the last row the next power of two.
    ((parameter, lines),) = found.lines
    assert parameter == "output"
    assert num_bytes <= 128 * lines <= num_bytes + 128 + 2 * 24


@pytest.mark.parametrize(
    ("kernel", "size", "leaves_first"),
    [(add.kernel, 2**24, True), (add.kernel, 2**25, False), (silu.kernel, 2**24, False)],
)
def test_much_that_is_loaded_leaves_first_where_results_are_few(kernel, size, leaves_first):
    text = specialize(
        kernel.definition, sum_of(size), Config((), 4, 3, (("keep", 10),))
    ).emitted.text
    assert "store_kept(" in text and "evict_last" not in text
    assert ("load_streamed(" in text) == leaves_first


def test_one_program_keeps_no_part_of_its_results():
    assert kept_rows(2**24, (2**24, 1), rows=1) is None


def test_results_that_do_not_lie_together_are_not_kept():
    assert kept_rows(1000, (1200, 1)) is not None
    assert kept_rows(1000, (2000, 1)) is None
    assert kept_rows(1000, (1, 2**15)) is None
    assert kept_rows(1000, (-1000, 1)) is None


def in_tiles(x, y, rows, columns):
    return x.tile((rows, columns)), y.tile((rows, columns))


def in_tiles_of_columns(x, y, rows, columns):
    return in_tiles(x.permute((1, 0)), y.permute((1, 0)), rows, columns)


def in_rows(x, y, rows, columns):
    return x.tile((rows, -1)), y.tile((rows, -1))


def in_vectors(x, y, rows, columns):
    return x.flatten().tile((rows * columns,)), y.flatten().tile((rows * columns,))


def copy(x, y):
    y = x


@pytest.mark.parametrize("arranged", [in_tiles, in_tiles_of_columns, in_rows, in_vectors])
@pytest.mark.parametrize(("rows", "columns"), [(1, 16), (2, 8), (4, 4)])
def test_kept_results_lie_in_the_lines_and_no_line_beyond_the_tensor(
    arranged, rows, columns, monkeypatch
):
    """Of random sizes and strides, with some hundred bytes kept."""
    monkeypatch.setattr(l2_residency, "_MIB", 256)

    def arrangement(x, y):
        return arranged(x, y, rows, columns)

    kernel = ninetoothed.make(arrangement, copy, (Tensor(2), Tensor(2)))
    access = kernel.arrangement.accesses["y"]
    choose, kept_some = random.Random(rows), 0
    for _ in range(60):
        shape = choose.randint(1, 40), choose.randint(1, 40)
        strides = choose.choice([(shape[1], 1), (shape[1] + 5, 1), (1, shape[0])])
        if arranged is in_vectors:
            strides = (shape[1], 1)
        tensors = [Argument(shape, s, dtypes.float16, 16) for s in ((shape[1], 1), strides)]
        call = Call(dict(zip("xy", tensors)), device=Device("cuda"))
        known = environment_of(kernel.definition, call, None)
        grid = kernel.definition.verified_grid(known)
        found = keeping(kernel.definition, call, known, grid, choose.randint(1, 3))
        if found is None:
            continue
        kept_some += 1
        ((_, lines),) = found.lines
        last = sum((size - 1) * stride for size, stride in zip(shape, strides))
        assert 128 * (lines - 1) <= 2 * last
        sizes = kernel.program.parameter("y").tile_shape
        lanes = [range(int(as_symbol(size).evaluate(known))) for size in sizes]
        programs = itertools.product(*map(range, grid))
        for position in itertools.islice(programs, found.num_programs):
            for lane in itertools.product(*lanes):
                values = {
                    **known,
                    **dict(zip((*access.programs, *access.lanes), (*position, *lane))),
                }
                if all(condition.evaluate(values) for condition in access.conditions):
                    assert 2 * access.offset.evaluate(values) < 128 * lines
    assert kept_some > 3


@pytest.mark.parametrize("grid", [(7,), (3, 5), (2, 3, 4), (4, 1, 3), (1, 6)], ids=str)
def test_the_first_programs_as_boxes(grid):
    for count in range(1, math.prod(grid)):
        boxes = [
            itertools.product(*(range(low, high + 1) for low, high in box))
            for box in _boxes(count, grid)
        ]
        found = sorted(itertools.chain(*boxes))
        assert found == list(itertools.product(*map(range, grid)))[:count]


@pytest.mark.parametrize("capability", [80, 90, 100])
def test_what_the_machine_is_told(capability):
    config = Config((), 4, 3, (("keep", 10),))
    specialized = specialize(add.kernel.definition, sum_of(2**24), config)
    target = Target.parse(("cuda", capability))
    ptx = compiled_for(add.kernel.definition, specialized, target, config).asm["ptx"]
    for word in ("L2::evict_last", "L2::evict_first", "applypriority.global.L2::evict_normal"):
        assert word in ptx
    loads = [line for line in ptx.splitlines() if "ld.global" in line]
    assert len(loads) == 4
    assert all(".v4.b32" in line for line in loads)


@pytest.mark.parametrize("fixed", ["keep=0", "keep=1", "keep=10", "keep=1,programs=4"])
def test_the_results_are_the_same(fixed):
    assert failures(keep_cases.__name__, fixed) == {}
