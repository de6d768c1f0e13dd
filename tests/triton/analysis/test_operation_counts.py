"""What a program is counted to move and compute, and what an option changes of it."""

from __future__ import annotations

from dataclasses import replace

import ninetoothed
import ninetoothed.language as ntl
from examples import addmm, conv2d, jagged_to_padded, mm, rms_norm, sdpa, silu, softmax
from ninetoothed import Tensor
from ninetoothed.backends.base import Argument, Call, Device
from ninetoothed.backends.triton.analysis.operation_counts import Counts, count
from ninetoothed.backends.triton.planning.cost_features import Estimator
from ninetoothed.backends.triton.translation import environment_of
from ninetoothed.language import dtypes
from ninetoothed.tuning.estimate import Product
from ninetoothed.tuning.space import Config
from tests.tuning.machines import H200


def tensor(*shape: int, dtype=dtypes.float16, aligned: bool = True) -> Argument:
    strides = [1]
    for size in shape[:0:-1]:
        strides.insert(0, strides[0] * size)
    return Argument(shape, tuple(strides), dtype, 16 if aligned else dtype.itemsize)


def call_of(constants=None, **arguments: Argument) -> Call:
    return Call(arguments, constants=constants or {}, device=Device("cuda"))


def config(warps: int = 4, stages: int = 3, **blocks: int) -> Config:
    return Config(tuple((f"BLOCK_SIZE_{n}", v) for n, v in blocks.items()), warps, stages)


def counted(kernel, call: Call, chosen: Config) -> Counts:
    definition = kernel.specializations.of(call.constants)
    return count(definition, call, environment_of(definition, call, chosen))


def product(m: int, n: int, k: int) -> Call:
    return call_of(input=tensor(m, k), other=tensor(k, n), output=tensor(m, n))


TILES = config(M=128, N=64, K=32)


def test_a_product_is_counted_once_a_round() -> None:
    counts = counted(mm.kernel, product(512, 512, 512), TILES)
    assert counts.products == [Product(128, 64, 32, times=16.0)]
    assert counts.rounds == 16
    assert counts.loaded == {"input": 16 * 128 * 32 * 2, "other": 16 * 32 * 64 * 2}
    assert counts.stored == {"output": 128 * 64 * 2}
    assert counts.streamed == {"input": 128 * 32 * 2, "other": 32 * 64 * 2}
    assert counts.held == {} and counts.flops == 0


def test_what_a_round_takes_twice_is_loaded_in_each_round_too() -> None:
    """Then it has a name in the round, of which a view is a factor as well."""

    def application(input, other, output):
        accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
        for k in range(input.shape[0]):
            loaded = input[k]
            accumulator += ntl.dot(loaded, other[k])
            accumulator += ntl.dot(ntl.trans(ntl.trans(loaded)), other[k])
        output = accumulator  # noqa: F841

    kernel = ninetoothed.make(mm.arrangement, application, [Tensor(2) for _ in range(3)])
    names = {s: kernel.names[s] for s in kernel.definition.meta_symbols}
    known = {"M": mm.BLOCK_SIZE_M, "N": mm.BLOCK_SIZE_N, "K": mm.BLOCK_SIZE_K}
    sizes = {"M": 128, "N": 64, "K": 32}
    blocks = tuple((names[symbol], sizes[key]) for key, symbol in known.items())
    counts = counted(kernel, product(512, 512, 512), Config(blocks, 4, 3))

    assert counts.streamed == {"input": 128 * 32 * 2, "other": 32 * 64 * 2} and not counts.held


def test_what_follows_a_product_is_counted() -> None:
    arguments = {name: tensor(512, 512) for name in ("input", "mat1", "mat2", "output")}
    counts = counted(addmm.kernel, call_of(**arguments), TILES)
    assert counts.loaded["input"] == 128 * 64 * 2 and "input" not in counts.streamed
    assert counts.flops == 3 * 128 * 64


def attention(constants) -> Counts:
    arguments = {name: tensor(2, 4, 1024, 64) for name in ("query", "key", "value", "output")}
    return counted(sdpa.kernel, call_of(constants, **arguments), config(M=128, N=32))


def test_attention_is_two_products_and_a_softmax() -> None:
    counts = attention({"is_causal": False})
    first, second = counts.products
    assert first == Product(128, 32, 64, times=32.0)
    assert second == Product(128, 64, 32, times=32.0, in_registers=True)
    assert counts.held == {"query": 128 * 64 * 2}
    assert set(counts.streamed) == {"key", "value"}
    # exp2 of the scores and of the correction, and a division at the end.
    assert counts.special == 32 * (128 * 32 + 128) + 128 * 64


def test_a_causal_mask_leaves_half_of_the_rounds() -> None:
    full, causal = attention({"is_causal": False}), attention({"is_causal": True})
    assert causal.rounds == full.rounds / 2
    assert causal.loaded["key"] == full.loaded["key"] / 2


def test_a_row_is_loaded_once_and_reduced() -> None:
    call = call_of(input=tensor(99, 1000), output=tensor(99, 1000))
    counts = counted(softmax.kernel, call, config())
    # Tiles are padded to a power of two.
    assert counts.loaded == {"input": 2048} and counts.stored == {"output": 2048}
    assert counts.reductions == 2 and counts.largest == 1024
    assert counts.special == 2 * 1024
    assert counted(rms_norm.kernel, call, config()).reductions == 1


def test_loops_and_conditions_of_all_kinds() -> None:
    def arrangement(x, y):
        return x.tile((16, 16)), y.tile((16, 16))

    def application(x, y):
        total = ntl.zeros((x.shape[0],), dtype=ntl.float32)
        for i in range(3):
            total += ntl.sum(x * i, axis=1)
        while ntl.max(total) > 1:
            total = total / 2
        if ntl.min(total) > 0:
            total = total + 1
        y = x + ntl.trans(ntl.exp(x)) * total[:, None]  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))
    counts = counted(kernel, call_of(x=tensor(64, 64), y=tensor(64, 64)), config())
    assert counts.reductions == 3 + 8 + 1
    tile, row = 16 * 16, 16
    # x * i, its padding kept out, its sum and the addition; the maximum, its comparison and the
    # halving; the condition and what stands under it; the last line.
    loop = 3 * (tile + tile + tile + row)
    halving = 8 * (row + 1 + row)
    assert counts.flops == loop + halving + (row + 1 + row) + 3 * tile
    assert counts.special == tile + 8 * row


def test_a_method_counts_as_the_function_that_it_is() -> None:
    def functions(x, y):
        y = ntl.sum(ntl.exp(ntl.cast(x, ntl.float32)), 1)  # noqa: F841

    def methods(x, y):
        y = x.to(ntl.float32).exp().sum(1)  # noqa: F841

    found = []
    for application in (functions, methods):
        kernel = ninetoothed.make(
            lambda x, y: (x.tile((16, 64)).squeeze(1), y.tile((16,))),
            application,
            (Tensor(2, shape=(None, 64)), Tensor(1)),
        )
        call = call_of(x=tensor(1024, 64), y=tensor(1024))
        found.append(counted(kernel, call, config()))

    assert found[0] == found[1]
    assert found[1].reductions == 1 and found[1].flops + found[1].special >= 2 * 16 * 64


def test_a_constant_condition_counts_one_side() -> None:
    def arrangement(x, fast, y):
        return x.tile((16,)), fast, y.tile((16,))

    def application(x, fast, y):
        if fast:
            y = x  # noqa: F841
        else:
            y = ntl.exp(x)  # noqa: F841

    tensors = (Tensor(1), Tensor(0, constexpr=True), Tensor(1))
    kernel = ninetoothed.make(arrangement, application, tensors)
    for fast, special in ((True, 0), (False, 16)):
        call = call_of({"fast": fast}, x=tensor(64), y=tensor(64))
        assert counted(kernel, call, config()).special == special


# Cost features.


def features(kernel, call: Call, chosen: Config):
    return Estimator(kernel.specializations.of(call.constants), call, H200).features(chosen)


def test_rows_of_half_a_cache_line_take_longer() -> None:
    def share(by_columns: bool, k: int) -> float:
        call = product(512, 512, 512)
        if by_columns:
            other = replace(call.arguments["other"], strides=(1, 512))
            call = replace(call, arguments={**call.arguments, "other": other})
        return features(mm.kernel, call, config(M=128, N=128, K=k)).share

    # By rows only the left tile has rows of k; by columns both do.
    assert share(False, 64) == share(True, 64) == 1
    assert 1 < share(False, 32) < share(True, 32) < 1.25
    assert share(True, 32) - 1 == 2 * (share(False, 32) - 1)
    assert share(True, 16) > share(True, 32)


def test_wide_rows_are_copied_ahead_and_odd_ones_are_not() -> None:
    wide = features(mm.kernel, product(512, 512, 512), TILES)
    assert wide.stages == 3 and not wide.is_waiting
    assert wide.copies == 16 * (128 * 32 + 32 * 64) / 8 and wide.accesses == 128 * 64 / 8
    odd = features(mm.kernel, product(511, 511, 511), TILES)
    assert odd.stages == 1 and odd.is_waiting and odd.copies == 0
    assert odd.accesses == 16 * (128 * 32 + 32 * 64) + 128 * 64
    assert odd.registers > wide.registers and odd.shared_bytes < wide.shared_bytes


def test_unaligned_tensors_are_loaded_an_element_at_a_time() -> None:
    call = call_of({"BLOCK_SIZE": 1024}, input=tensor(4096), output=tensor(4096))
    aligned = features(silu.kernel, call, config())
    unaligned = tensor(4096, aligned=False)
    call = call_of({"BLOCK_SIZE": 1024}, input=unaligned, output=unaligned)
    assert features(silu.kernel, call, config()).accesses == 8 * aligned.accesses


def test_sequences_that_begin_anywhere_are_estimated() -> None:
    constants = {"BLOCK_SIZE_L": 16, "BLOCK_SIZE_D": 64}
    call = call_of(constants, input=tensor(3, 20, 64), output=tensor(3, 20, 64))
    estimated = features(jagged_to_padded.kernel, call, config())
    assert estimated.accesses == 2 * 16 * 64 / 8


def test_a_thread_loads_no_more_than_it_holds() -> None:
    call = call_of({"BLOCK_SIZE": 256}, input=tensor(4096), output=tensor(4096))
    assert features(silu.kernel, call, config(warps=8)).accesses == 2 * 256
    assert features(silu.kernel, call, config(warps=1)).accesses == 2 * 256 / 8


def test_windows_are_gathered() -> None:
    call = call_of(
        input=tensor(4, 64, 14, 14), other=tensor(64, 64, 3, 3), output=tensor(4, 64, 12, 12)
    )
    found = features(conv2d.kernel, call, TILES)
    assert found.is_waiting and found.products[0].rows == 128
    assert found.programs == 5


def test_a_tensor_that_is_read_and_written_is_touched_twice() -> None:
    def arrangement(x):
        return (x.tile((16,)),)

    def application(x):
        x = x + 1  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, (Tensor(1),))
    assert features(kernel, call_of(x=tensor(64)), config()).distinct_bytes == 2 * 64 * 2


def test_what_is_broadcast_is_touched_once() -> None:
    call = call_of(
        input=Argument((512, 512), (0, 1), dtypes.float16),
        other=tensor(512, 512),
        output=tensor(512, 512),
    )
    assert features(mm.kernel, call, TILES).distinct_bytes == 2 * (512 + 2 * 512 * 512)


# Options.


def changed(name: str, value: int, chosen: Config = TILES):
    call = product(512, 512, 512)
    plain = features(mm.kernel, call, chosen)
    return plain, features(mm.kernel, call, replace(chosen, options=((name, value),)))


def test_what_a_mask_leaves_out_is_not_loaded_but_filled_in_by_descriptors() -> None:
    """One row of 64 is loaded."""
    estimator = Estimator(mm.kernel.definition, product(1, 4096, 4096), H200)
    chosen = config(M=64, N=64, K=64)
    plain = estimator.features(chosen)
    assert plain.bytes_moved == 64 * (4096 + 1) * 2 + 4096 * 2
    described = estimator.features(replace(chosen, options=(("descriptors", 1),)))
    assert described.bytes_moved == plain.bytes_moved + 4 * 63 * 4096 * 2


def test_parts_share_a_reduction() -> None:
    plain, split = changed("split_k", 4)
    assert split.programs == 4 * plain.programs and split.iterations == plain.iterations / 4
    assert split.products[0].times == plain.products[0].times / 4
    # The sums are written by all, and read by the last to arrive while nobody else works.
    assert split.bytes_moved == plain.bytes_moved / 4 + 4 * 128 * 64
    assert split.ending > plain.ending + 4


def test_descriptors_save_instructions_and_registers() -> None:
    plain, described = changed("descriptors", 1)
    assert described.copies < plain.copies and described.registers < plain.registers
    odd = features(mm.kernel, product(511, 511, 511), TILES)
    described = features(
        mm.kernel, product(511, 511, 511), replace(TILES, options=(("descriptors", 1),))
    )
    assert odd.is_waiting and not described.is_waiting and described.stages == 3


def test_loops_that_follow_one_another_need_registers_in_turn() -> None:
    def in_two_loops(input, other, output):
        total = ntl.zeros(output.shape, dtype=ntl.float32)
        for k in range(2):
            total += ntl.dot(input[k], other[k])
        for k in range(2, input.shape[0]):
            total += ntl.dot(input[k], other[k])
        output = total

    kernel = ninetoothed.make(mm.arrangement, in_two_loops, mm.tensors)
    call = product(512, 512, 512)
    found = features(kernel, call, TILES)
    assert len(found.products) == 2
    assert found.registers == features(mm.kernel, call, TILES).registers


def test_a_loop_of_many_products_is_split_only_where_descriptors_load() -> None:
    def three(input, other, output):
        total = ntl.zeros(output.shape, dtype=ntl.float32)
        for k in range(input.shape[0]):
            total += ntl.dot(input[k], other[k])
            total += ntl.dot(input[k] * 2, other[k])
            total += ntl.dot(input[k] + 1, other[k])
        output = total

    kernel = ninetoothed.make(mm.arrangement, three, mm.tensors)
    call = product(512, 512, 511)
    split = replace(TILES, options=(("loop_splitting", 1),))
    described = replace(TILES, options=(("descriptors", 1), ("loop_splitting", 1)))
    plain = features(kernel, call, TILES).flops
    assert features(kernel, call, described).flops < plain < features(kernel, call, split).flops


def test_a_persistent_grid_is_told() -> None:
    plain, persistent = changed("persistent", 1)
    assert persistent.is_persistent and not plain.is_persistent


def test_tiles_that_are_loaded_ahead_are_not_waited_for() -> None:
    call = product(511, 511, 511)
    ahead = features(mm.kernel, call, replace(TILES, options=(("register_prefetch", 1),)))
    plain = features(mm.kernel, call, TILES)
    assert plain.is_waiting and not ahead.is_waiting and ahead.registers > plain.registers


def test_several_elements_of_the_grid_are_one_program() -> None:
    call = call_of(input=tensor(4096, 64), output=tensor(4096, 64))
    plain = features(softmax.kernel, call, config())
    coarsened = features(
        softmax.kernel, call, replace(config(), options=(("program_coarsening", 8),))
    )
    assert coarsened.programs == plain.programs / 8
    assert coarsened.bytes_moved == 8 * plain.bytes_moved and coarsened.registers > plain.registers


def test_an_option_without_a_cost_is_ranked_beside_the_plain_configuration() -> None:
    plain, hinted = changed("eviction_policy", 0)
    assert hinted == plain


def test_copies_that_a_mask_may_leave_out_cost_more() -> None:
    whole, odd = (features(mm.kernel, product(*3 * (size,)), TILES) for size in (512, 520))
    assert odd.copies / odd.bytes_moved > 4 * whole.copies / whole.bytes_moved
