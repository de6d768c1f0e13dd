"""Programs as people write them for the published package, each with PyTorch's answer.

`python -m tests.contract.on_interpreter` runs them in Triton's interpreter, `make gpu-test` on a device.
"""

from __future__ import annotations

import functools
import math
import os

import pytest
import torch
import torch.nn.functional as F

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor, block_size
from ninetoothed.launch.kernel import Kernel
from tests.contract.kernels import empty

CONSTANT = {"constexpr": True}
OPTIONS = {"num_warps": (4, 8), "num_stages": 2, "max_num_configs": 2}

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def random(*shape, dtype=torch.float32):
    generator = torch.Generator("cpu").manual_seed(sum(shape))
    values = torch.randn(shape, generator=generator, device="cpu")
    return values.to(torch.get_default_device(), dtype)


def tensors(*ranks, **keywords):
    return tuple(Tensor(rank, **keywords) for rank in ranks)


def flat(*given, size=32):
    return tuple(t.flatten().tile((size,)) if t.ndim else t for t in given)


def blocked(tensor, dim, size):
    """The blocks along a dimension, which one program walks over."""
    others = tuple(other for other in range(tensor.ndim) if other != dim)
    block = tuple(size if other == dim else 1 for other in range(tensor.ndim))
    arranged = tensor.tile(block).tile(tuple(-1 if s == size else 1 for s in block))
    arranged.dtype = arranged.dtype.squeeze(others)
    arranged.dtype.dtype = arranged.dtype.dtype.squeeze(others)
    return arranged


@program
def division_by_the_name_of_a_rounding():
    def application(input, other, rounding, output):
        if rounding == "trunc":
            ratio = input / other
            output = ntl.where(ratio >= 0, ntl.floor(ratio), ntl.ceil(ratio))
        elif rounding == "floor":
            output = ntl.floor(input / other)
        else:
            output = input / other  # noqa: F841

    kernel = ninetoothed.make(
        flat, application, (*tensors(2, 2), Tensor(0, constexpr=True), Tensor(2))
    )
    x, y = random(5, 9) * 10, random(9, 5).T.abs() + 1
    for rounding in (None, "trunc", "floor"):
        output = empty(5, 9)
        kernel(x, y, rounding, output)
        yield output, torch.div(x, y, rounding_mode=rounding)


@program
def gelu_by_a_partial_application():
    def application(input, output, approximate="none"):
        x = ntl.cast(input, ntl.float32)
        if approximate == "none":
            y = 0.5 * x * (1 + ntl.erf(x / math.sqrt(2)))
        else:
            inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
            y = x * ntl.sigmoid(2 * inner)
        output = ntl.cast(y, output.dtype)  # noqa: F841

    for approximate in ("none", "tanh"):
        for rank in (1, 2, 3):
            chosen = functools.partial(application, approximate=approximate)
            kernel = ninetoothed.make(flat, chosen, tensors(rank, rank, dtype=torch.float32))
            x = random(*(7, 5, 3)[:rank])
            output = empty(*x.shape)
            kernel(x, output)
            yield output, F.gelu(x, approximate=approximate)


@program
def tiles_that_meet_again_and_again():
    def application(input, other, output):
        value = input
        for _ in [0] * 15:
            value = (value + other) * (other + value) * 0.1
        output = value  # noqa: F841

    def whole(*given):
        return tuple(each.tile((-1,)) for each in given)

    kernel = ninetoothed.make(whole, application, tensors(1, 1, 1))
    value, other, output = random(5), random(5), empty(5)
    kernel(value, other, output)
    for _ in range(15):
        value = (value + other) * (other + value) * 0.1
    yield output, value


@program
def clamp_with_open_ends():
    def application(input, low, high, output):
        x = input
        if low is not None:
            x = ntl.maximum(x, low)
        if high is not None:
            x = min(x, high)
        output = x  # noqa: F841

    ends = (Tensor(0, constexpr=True, value=None), Tensor(0, constexpr=True, value=None))
    kernel = ninetoothed.make(flat, application, (Tensor(2), *ends, Tensor(2)))
    x = random(5, 9)
    for low, high in ((None, 0.5), (-0.5, None), (-0.5, 0.5)):
        output = empty(5, 9)
        kernel(x, low, high, output)
        yield output, x.clamp(low, high)


@program
def four_bits_unpacked_side_by_side():
    def arrangement(packed, output, size=32):
        return packed.tile((size,)), output.tile((2 * size,))

    def application(packed, output):
        bits = ntl.cast(packed, ntl.int32)
        both = ntl.join((bits & 0xF) - 8, ((bits >> 4) & 0xF) - 8)
        output = ntl.cast(ntl.reshape(both, output.shape), ntl.int8)  # noqa: F841

    packed = (torch.arange(37) * 41 % 256).to(torch.uint8)
    output = empty(74, dtype=torch.int8)
    ninetoothed.make(arrangement, application, tensors(1, 1))(packed, output)
    yield output, (torch.stack([packed & 15, packed >> 4], 1).flatten().to(torch.int8) - 8)


@program
def softmax_along_any_dimension_by_blocks():
    def application(input, output):
        largest = ntl.cast(float("-inf"), ntl.float32)
        total = ntl.cast(0, ntl.float32)
        for i in range(input.shape[0]):
            x = ntl.cast(input[i], ntl.float32)
            now = ntl.maximum(largest, ntl.max(x))
            total = total * ntl.exp(largest - now) + ntl.sum(ntl.exp(x - now))
            largest = now
        for i in range(input.shape[0]):
            output[i] = ntl.exp(ntl.cast(input[i], ntl.float32) - largest) / total

    x = random(5, 70, 3)
    for dim in range(3):
        arrangement = functools.partial(
            lambda *given, dim: [blocked(t, dim, 32) for t in given], dim=dim
        )
        output = empty(*x.shape)
        ninetoothed.make(arrangement, application, tensors(3, 3), **OPTIONS)(x, output)
        yield output, torch.softmax(x, dim)


@program
def variance_by_welford():
    def arrangement(x, *rest):
        arranged = x.tile((1, 1)).tile((1, -1))
        arranged.dtype = arranged.dtype.squeeze(0)
        arranged.dtype.dtype = arranged.dtype.dtype.squeeze(0)
        return (arranged, *(t.tile((1,)).unsqueeze(1) for t in rest))

    def application(x, mean, variance):
        average = ntl.zeros((1,), dtype=ntl.float32)
        squares = ntl.zeros((1,), dtype=ntl.float32)
        for k in range(x.shape[0]):
            difference = x[k] - average
            average += difference / (k + 1)
            squares += difference * (x[k] - average)
        mean = average  # noqa: F841
        variance = squares / x.shape[0]  # noqa: F841

    x, mean, variance = random(4, 13), empty(4), empty(4)
    ninetoothed.make(arrangement, application, tensors(2, 1, 1))(x, mean, variance)
    yield mean, x.mean(1)
    yield variance, x.var(1, unbiased=False)


@program
def batch_norm_of_channels_flattened():
    def arrangement(x, mean, variance, weight, bias, y, eps, size=32):
        of_x = x.flatten(start_dim=2).tile((1, 1, size))

        def of_channel(tensor):
            arranged = tensor.tile((1,)).unsqueeze(0).unsqueeze(2)
            return arranged.expand((of_x.shape[0], -1, of_x.shape[2]))

        channels = (of_channel(t) for t in (mean, variance, weight, bias))
        return (of_x, *channels, y.flatten(start_dim=2).tile((1, 1, size)), eps)

    def application(x, mean, variance, weight, bias, y, eps):
        y = (x - mean) * ntl.rsqrt(variance + eps) * weight + bias  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, tensors(4, 1, 1, 1, 1, 4, 0))
    x, y = random(2, 3, 5, 9), empty(2, 3, 5, 9)
    mean, variance, weight, bias = (random(3) + shift for shift in (0, 3, 0, 0))
    kernel(x, mean, variance, weight, bias, y, 1e-5)
    yield y, F.batch_norm(x, mean, variance, weight, bias)


@program
def embedding_by_positions_of_the_tile():
    def arrangement(table, index, y):
        return table, index.tile((1,)), y.tile((1, -1)).squeeze(1)

    def application(table, index, y):
        y = table.source[index, ntl.arange(0, y.shape[-1])]  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, (*tensors(2, 1), Tensor(2)))
    for width in (16, 21):
        table, index, y = random(9, width), torch.tensor([3, 0, 8, 3]), empty(4, width)
        kernel(table, index, y)
        yield y, table[index]


@program
def an_expert_for_each_block_of_tokens():
    def arrangement(x, weight, expert, y, size=16):
        of_x = x.tile((size, -1)).squeeze(1)
        of_weight = (
            weight.tile((1, -1, -1)).tile((-1, 1, 1)).squeeze((1, 2)).expand((of_x.shape[0],))
        )
        of_weight.dtype = of_weight.dtype.squeeze((1, 2))
        of_weight.dtype.dtype = of_weight.dtype.dtype.squeeze(0)
        return of_x, of_weight, expert.tile((1,)), y.tile((size, -1)).squeeze(1)

    def application(x, weight, expert, y):
        y = ntl.dot(x, weight[expert])  # noqa: F841

    x, weight, expert, y = random(48, 32), random(4, 32, 16), torch.tensor([2, 0, 3]), empty(48, 16)
    ninetoothed.make(arrangement, application, tensors(2, 3, 1, 2))(x, weight, expert, y)
    yield y, torch.cat([part @ weight[e] for part, e in zip(x.split(16), expert)])


@program
def grouped_convolution_by_arrangement():
    def arrangement(x, weight, y, groups):
        channels, filters = x.shape[1] // groups, weight.shape[0] // groups
        of_x = x.tile((1, channels, *weight.shape[2:]), strides=(-1, -1, 1, 1), floor_mode=True)
        of_x.dtype = of_x.dtype.squeeze(0)
        of_x.dtype = of_x.dtype.flatten()
        of_x = of_x.permute((0, 2, 3, 1)).tile((1, 1, -1, 1)).squeeze(2)
        of_x.dtype = of_x.dtype.squeeze((0, 1, 3))
        of_weight = weight.tile((filters, -1, -1, -1)).squeeze((1, 2, 3))
        of_weight.dtype = of_weight.dtype.flatten(start_dim=1)
        of_weight = of_weight.unsqueeze(0).unsqueeze(0).expand((*of_x.shape[:2], -1))
        of_y = y.tile((1, filters, 1, -1)).squeeze(3).permute((0, 2, 1))
        of_y.dtype = of_y.dtype.squeeze((0, 2))
        return of_x, of_weight, of_y

    def application(x, weight, y):
        for q in range(x.shape[0]):
            y[:, q] = ntl.sum(weight * x[q][None, :], 1)

    x, weight = random(2, 4, 6, 7), random(6, 2, 3, 3)
    expected = F.conv2d(x, weight, groups=2)
    y = empty(*expected.shape)
    grouped = functools.partial(arrangement, groups=2)
    kernel = ninetoothed.make(grouped, application, tensors(4, 4, 4, shape_options=CONSTANT))
    kernel(x, weight, y)
    yield y, expected


@program
def pooling_with_dilation_by_symbols():
    size = block_size()
    names = [f"{what}_{dim}" for what in ("WINDOW", "STEP", "PAD", "GAP") for dim in "hw"]
    symbols = [Symbol(name, constexpr=True, upper_bound=16) for name in names]

    def arrangement(input, output):
        pads = tuple((pad, pad) for pad in symbols[4:6])
        windows = input.pad(((0, 0), (0, 0), *pads)).tile(
            (1, 1, *symbols[:2]),
            strides=(-1, -1, *symbols[2:4]),
            dilation=(1, 1, *symbols[6:]),
            floor_mode=True,
        )
        windows = windows.ravel().flatten(end_dim=4).flatten(start_dim=1)
        return windows.tile((size, -1)), output.flatten().tile((size,))

    def application(input, output):
        output = ntl.max(input, axis=1)  # noqa: F841

    kernel = ninetoothed.make(
        arrangement, application, (Tensor(4, other=float("-inf")), Tensor(4)), **OPTIONS
    )
    x = random(2, 3, 9, 11)
    for given in ((2, 2, 2, 2, 0, 0, 1, 1), (3, 2, 2, 1, 1, 1, 1, 1), (3, 3, 2, 2, 1, 1, 2, 2)):
        expected = F.max_pool2d(x, given[:2], given[2:4], given[4:6], given[6:])
        output = empty(*expected.shape)
        kernel(x, output, **dict(zip(names, given)))
        yield output, expected


@program
def a_recurrence_over_time():
    def arrangement(x, first, y):
        return blocked_rows(x), first.tile((8,)), blocked_rows(y)

    def blocked_rows(tensor):
        arranged = tensor.tile((1, 8)).tile((-1, 1)).squeeze(0)
        arranged.dtype = arranged.dtype.squeeze(1)
        arranged.dtype.dtype = arranged.dtype.dtype.squeeze(0)
        return arranged

    def application(x, first, y):
        state = first
        for t in range(x.shape[0]):
            state = 0.5 * state + x[t]
            y[t] = state

    x, state, y = random(9, 13), random(13), empty(9, 13)
    ninetoothed.make(arrangement, application, tensors(2, 1, 2))(x, state, y)
    for t in range(9):
        state = 0.5 * state + x[t]
        yield y[t], state


@program
def attention_with_what_is_there():
    def arrangement(query, key, value, key_slot, mask, scale, output, has_mask, has_slot, size=16):
        def of_queries(tensor):
            arranged = tensor.tile((1, 1, size, -1))
            arranged.dtype = arranged.dtype.squeeze((0, 1))
            return arranged

        of_query = of_queries(query)

        def of_keys(tensor):
            arranged = tensor.tile((1, 1, size, -1)).tile((1, 1, -1, -1))
            arranged.dtype = arranged.dtype.squeeze((0, 1, 3))
            arranged.dtype.dtype = arranged.dtype.dtype.squeeze((0, 1))
            heads = query.shape[1] // key.shape[1]
            arranged = arranged.unsqueeze(2).expand((-1, -1, heads, of_query.shape[2], -1))
            return arranged.flatten(start_dim=1, end_dim=3)

        of_mask = mask.tile((1, 1, size, size)).tile((1, 1, 1, -1))
        of_mask.dtype = of_mask.dtype.squeeze((0, 1, 2))
        of_mask.dtype.dtype = of_mask.dtype.dtype.squeeze((0, 1))
        keys = (of_keys(key), of_keys(value), of_queries(key_slot))
        return of_query, *keys, of_mask, scale, of_queries(output), has_mask, has_slot

    def application(query, key, value, key_slot, mask, scale, output, has_mask, has_slot):
        if has_slot:
            key_slot = query
        total = ntl.full((query.shape[-2],), 1, dtype=ntl.float32)
        largest = ntl.full((query.shape[-2],), float("-inf"), dtype=ntl.float32)
        accumulator = ntl.zeros(query.shape, dtype=ntl.float32)
        for i in range(key.shape[0]):
            scores = ntl.dot((scale * query).to(query.dtype), ntl.trans(key[i]))
            scores = ntl.where(key[i].offsets(-2) < key.source.shape[-2], scores, float("-inf"))
            if has_mask:
                scores += mask[i]
            now = ntl.maximum(largest, ntl.max(scores, 1))
            weights = ntl.exp(scores - now[:, None])
            correction = ntl.exp(largest - now)
            accumulator = accumulator * correction[:, None]
            accumulator += ntl.dot(weights.to(value.dtype.dtype), value[i])
            total = total * correction + ntl.sum(weights, 1)
            largest = now
        output = accumulator / total[:, None]  # noqa: F841

    options = (None, None, None, {"constexpr": True, "upper_bound": 128})
    given = (*tensors(4, 4, 4, 4, shape_options=options), Tensor(4), Tensor(0))
    given += (Tensor(4, shape_options=options), *tensors(0, 0, constexpr=True))
    kernel = ninetoothed.make(arrangement, application, given)
    for heads, keys, has_mask, has_slot in ((2, 21, True, False), (4, 30, False, True)):
        query, key, value = random(2, heads, 21, 16), random(2, 2, keys, 16), random(2, 2, keys, 16)
        mask = random(21, keys).expand(2, heads, 21, keys) if has_mask else None
        slot = empty(*query.shape) if has_slot else None
        output = empty(*query.shape)
        kernel(query, key, value, slot, mask, 0.25, output, has_mask, has_slot)
        repeated = (t.repeat_interleave(heads // 2, 1) for t in (key, value))
        yield output, F.scaled_dot_product_attention(query, *repeated, mask, scale=0.25)
        if has_slot:
            yield slot, query


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name):
    for actual, expected in PROGRAMS[name]():
        torch.testing.assert_close(actual, expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_triton_compiles_it(name, monkeypatch):
    pytest.importorskip("triton")
    if os.environ.get("TRITON_INTERPRET"):
        pytest.skip("needs Triton's compiler, and its interpreter was chosen")
    compiled = []

    def compile_instead(kernel, *arguments, **keywords):
        compiled.append(kernel.compile(*arguments, target=("cuda", 90), **keywords))

    monkeypatch.setattr(Kernel, "__call__", compile_instead)
    for _ in PROGRAMS[name]():
        pass
    assert compiled and all(each.asm["cubin"] for each in compiled)
