"""Attention, and programs like it that the pipeline does not understand."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from examples import sdpa  # noqa: E402
from ninetoothed.backends.triton.planning.choices import choices  # noqa: E402
from ninetoothed.backends.triton.planning.space import settled  # noqa: E402
from ninetoothed.backends.triton.specialization.target import Target  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of, specialize  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402
from tests.triton.emitted import given_by  # noqa: E402

HOPPER = Target("cuda", 90, 32)


def attention(
    kernel=TEN["sdpa"],
    queries=1000,
    keys=1000,
    width=64,
    dtype=torch.float16,
    is_causal=False,
    heads=6,
    make=torch.empty,
):
    """A kernel like sdpa's and a call of it."""
    query = make(2, heads, queries, width, dtype=dtype)
    key, value = (make(2, heads // 2, keys, width, dtype=dtype) for _ in range(2))
    return kernel, kernel.call_of(query, key, value, 0.125, is_causal, query)


def tried(kernel, call, rows=64, columns=64, device=HOPPER, given=None):
    """The values of the option that are tried."""
    config = Config((("BLOCK_SIZE_M", rows), ("BLOCK_SIZE_N", columns)), 4, 3)
    found = choices(
        given_by(kernel, call),
        call,
        environment_of(given_by(kernel, call), call, config),
        device,
        given or {},
    )
    return {dict(chosen).get("tma_pipeline", 0) for chosen in found}


def specialized(kernel, call, rows=64, columns=64, **options):
    """A specialized kernel, and its configuration."""
    config = Config((("BLOCK_SIZE_M", rows), ("BLOCK_SIZE_N", columns)), 4, 3)
    environment = environment_of(given_by(kernel, call), call, config)
    chosen, *_ = choices(given_by(kernel, call), call, environment, HOPPER, options)
    config = settled(Config(config.values, 4, 3, chosen))
    return specialize(given_by(kernel, call), call, config), config


def frame_bytes(machine_code):
    """The memory of a thread's own (``EIATTR_FRAME_SIZE`` in ``.nv.info``)."""
    return _attribute(machine_code, 0x11)


def register_count(machine_code):
    """The registers of a thread (``EIATTR_REGCOUNT``)."""
    return _attribute(machine_code, 0x2F)


def _attribute(machine_code, number):
    place = machine_code.index(bytes((4, number, 8, 0))) + 8
    return int.from_bytes(machine_code[place : place + 4], "little")


def scaled_first(query, key, value, scale, is_causal, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for i in range(key.shape[0]):
        scores = ntl.dot(query, ntl.trans(key[i]))
        scores = scores * scale
        is_seen = key[i].offsets(-2)[None, :] <= query.offsets(-2)[:, None]
        weights = ntl.exp(ntl.where(is_seen, scores, float("-inf")))
        total += ntl.dot(ntl.cast(weights, value.dtype.dtype), value[i])
    output = total


# Programs that are not understood.


def looped(query, key, value, scale, is_causal, output):
    """What the others are a change of."""
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for i in range(key.shape[0]):
        scores = ntl.dot(query, ntl.trans(key[i]))
        total += ntl.dot(ntl.cast(ntl.exp(scores), value.dtype.dtype), value[i])
    output = total


def stores_as_it_goes(query, key, value, scale, is_causal, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for i in range(key.shape[0]):
        scores = ntl.dot(query, ntl.trans(key[i]))
        total += ntl.dot(ntl.cast(scores, value.dtype.dtype), value[i])
        output = total


def reads_a_tile_itself(query, key, value, scale, is_causal, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for i in range(key.shape[0]):
        scores = ntl.dot(query, ntl.trans(key[i]))
        total += ntl.dot(ntl.cast(scores, value.dtype.dtype), value[i]) + ntl.sum(value[i])
    output = total


def sorts(query, key, value, scale, is_causal, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for i in range(key.shape[0]):
        scores = ntl.sort(ntl.dot(query, ntl.trans(key[i])))
        total += ntl.dot(ntl.cast(scores, value.dtype.dtype), value[i])
    output = total


def begins_later(query, key, value, scale, is_causal, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for i in range(1, key.shape[0]):
        scores = ntl.dot(query, ntl.trans(key[i]))
        total += ntl.dot(ntl.cast(scores, value.dtype.dtype), value[i])
    output = total


def goes_twice(query, key, value, scale, is_causal, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for i in range(key.shape[0]):
        scores = ntl.dot(query, ntl.trans(key[i]))
        total += ntl.dot(ntl.cast(scores, value.dtype.dtype), value[i])
    for i in range(key.shape[0]):
        scores = ntl.dot(query, ntl.trans(key[i]))
        total += ntl.dot(ntl.cast(scores, value.dtype.dtype), value[i])
    output = total


def decides_as_it_goes(query, key, value, scale, is_causal, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for i in range(key.shape[0]):
        scores = ntl.dot(query, ntl.trans(key[i]))
        if i > scale:
            scores = scores * 2
        total += ntl.dot(ntl.cast(scores, value.dtype.dtype), value[i])
    output = total


def multiplies_with_registers(query, key, value, scale, is_causal, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for i in range(key.shape[0]):
        scores = ntl.dot(query, ntl.trans(key[i] * 2))
        total += ntl.dot(ntl.cast(scores, value.dtype.dtype), value[i])
    output = total


def changes_its_end(query, key, value, scale, is_causal, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    count = ntl.minimum(key.shape[0], 3)
    for i in range(count):
        scores = ntl.dot(query, ntl.trans(key[i]))
        total += ntl.dot(ntl.cast(scores, value.dtype.dtype), value[i])
        count = count - 1
    output = total


def goes_where_the_last_round_says(query, key, value, scale, is_causal, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    place = 0
    for i in range(key.shape[0]):
        scores = ntl.dot(query, ntl.trans(key[place]))
        total += ntl.dot(ntl.cast(scores, value.dtype.dtype), value[i])
        place = place + 1
    output = total


def made(application):
    return ninetoothed.make(sdpa.arrangement, application, sdpa.tensors)


def names_things_as_we_do(query, key, value, scale, is_causal, output):
    output_buffer = ntl.zeros(output.shape, dtype=ntl.float32)
    for i in range(key.shape[0]):
        scores = ntl.dot(query, ntl.trans(key[i]))
        output_buffer += ntl.dot(ntl.cast(scores, value.dtype.dtype), value[i])
    output = output_buffer
