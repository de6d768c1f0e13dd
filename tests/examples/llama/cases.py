"""The kernels of `examples.llama` on tensors of odd sizes, each with what it should give, in float64.

A case is a function of an element type and a device. It gives pairs: a result, and what it should be.
"""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from examples.llama import attention, products, sampling
from examples.llama.replace import turn_kernel

EPS = 1e-5


class Maker:
    """Random tensors of one element type on one device."""

    def __init__(self, dtype, device):
        self.dtype, self.device = dtype, device
        self.generator = torch.Generator(device).manual_seed(11)

    def __call__(self, *shape, scale=1.0):
        values = torch.randn(shape, generator=self.generator, device=self.device)
        return (values * scale).to(self.dtype)

    def unwritten(self, *shape, dtype=None):
        return torch.full(shape, torch.nan, dtype=dtype or self.dtype, device=self.device)

    def angles(self, positions, pairs):
        turns = 6 * torch.rand(positions, pairs, generator=self.generator, device=self.device)
        return turns.sin(), turns.cos()

    def integers(self, *values):
        return torch.tensor(values, dtype=torch.int32, device=self.device)


def normalized(x, scale):
    return F.rms_norm(x.double(), scale.shape, scale.double(), EPS)


def product_of_rows(rows):
    def case(make):
        x, scale = make(rows, 72), make(72)
        weight, parts = make(37, 72, scale=0.1), make(2, 37, 72, scale=0.1)
        residual = make(rows, 37)
        normal = normalized(x, scale)
        if rows > products.FEW:
            # It is rounded on the way there.
            normal = normal.to(make.dtype).double()
        before = residual.double()

        def gated(x):
            gate, up = (x @ part.double().T for part in parts)
            if rows > products.FEW:
                # They are one product, which is rounded before the halves meet.
                gate, up = (half.to(make.dtype).double() for half in (gate, up))
            return F.silu(gate) * up

        yield products.linear(x, weight), x.double() @ weight.double().T
        yield products.linear(x, weight, scale, EPS), normal @ weight.double().T
        bias = make(37)
        biased = products.linear(x, weight, scale, EPS, make.unwritten(rows, 37), bias)
        yield biased, normal @ weight.double().T + bias.double()
        yield products.swiglu(x, parts), gated(x.double())
        yield products.swiglu(x, parts, scale, EPS), gated(normal)
        added = before + x.double() @ weight.double().T
        yield products.add_linear(residual, x, weight, make.unwritten(rows, 37)), added
        yield products.add_linear(residual, x, weight), added

    return case


def turned(x, sin, cos):
    """(…, heads, size), at the positions whose angles these are."""
    first, second = x.double().chunk(2, -1)
    sin, cos = (table.double().unsqueeze(-2) for table in (sin, cos))
    return torch.cat((first * cos - second * sin, first * sin + second * cos), -1)


#: Requests, heads, heads of keys, size of a head, positions of a page, pages of a request.
REQUESTS, HEADS, KEY_HEADS, SIZE, PAGE, PAGES = 2, 6, 2, 32, 16, 4
SCALE = 1 / math.sqrt(SIZE)


class Caches:
    """A cache of random keys and values, all in one page for each request, or in pages by a table."""

    def __init__(self, make, is_paged):
        self.is_paged, length = is_paged, PAGE * PAGES
        shape = (REQUESTS * PAGES, KEY_HEADS, PAGE) if is_paged else (REQUESTS, KEY_HEADS, length)
        self.keys, self.values = make(*shape, SIZE), make(*shape, SIZE)
        order = torch.tensor([3, 0, 6, 2, 7, 1, 5, 4], dtype=torch.int32, device=make.device)
        self.table = order.view(REQUESTS, PAGES)

    def of(self, pages):
        """The rows (requests, heads, positions, size) that pages hold."""
        if not self.is_paged:
            return pages
        rows = pages[self.table.long()].transpose(1, 2)
        return rows.reshape(REQUESTS, KEY_HEADS, -1, SIZE)


def reference(query, keys, values, positions):
    """Attention of queries (requests, n, heads, size), the first at `positions`, over rows of a cache."""
    keys, values = (
        rows.double().repeat_interleave(HEADS // KEY_HEADS, 1) for rows in (keys, values)
    )
    places = positions[:, None] + torch.arange(query.shape[1], device=query.device)
    is_seen = torch.arange(keys.shape[2], device=query.device) <= places[:, :, None]
    return F.scaled_dot_product_attention(
        query.double().transpose(1, 2), keys, values, is_seen[:, None], scale=SCALE
    ).transpose(1, 2)


def decoding(is_paged):
    def case(make):
        caches = Caches(make, is_paged)
        before, values = caches.of(caches.keys).clone(), caches.of(caches.values).clone()
        qkv = make(REQUESTS, HEADS + 2 * KEY_HEADS, SIZE)
        query, key, value = qkv.split([HEADS, KEY_HEADS, KEY_HEADS], 1)
        positions = make.integers(53, 5)
        sin, cos = make.angles(PAGE * PAGES, SIZE // 2)
        splits = 3
        partial = make.unwritten(REQUESTS, HEADS, splits, SIZE, dtype=torch.float32)
        maximum, total = (
            make.unwritten(REQUESTS, HEADS, splits, dtype=torch.float32) for _ in range(2)
        )
        output = make.unwritten(REQUESTS, HEADS, SIZE)
        turns = [table[positions.long()] for table in (sin, cos)]
        attention.decode_kernel(
            *(query, key, value, positions, *turns),
            *(caches.keys, caches.values, caches.keys, caches.values, caches.table),
            *(SCALE, is_paged, partial, maximum, total),
            BLOCK_SIZE=16,
        )
        attention.combine_kernel(partial, maximum, total, output)

        rows = torch.arange(REQUESTS, device=make.device)
        before[rows, :, positions.long()] = turned(key, *turns).to(make.dtype)
        values[rows, :, positions.long()] = value
        query = turned(query, *turns).to(make.dtype)
        yield caches.of(caches.keys), before.double()
        yield caches.of(caches.values), values.double()
        yield output, reference(query[:, None], before, values, positions)[:, 0]

    return case


def prefilling(is_paged):
    def case(make):
        caches, count = Caches(make, is_paged), 7
        keys, values = caches.of(caches.keys).clone(), caches.of(caches.values).clone()
        qkv = make(REQUESTS, count, HEADS + 2 * KEY_HEADS, SIZE)
        given = qkv.clone()
        starts = make.integers(41, 3)
        sin, cos = make.angles(PAGE * PAGES, SIZE // 2)
        sizes = [HEADS, KEY_HEADS, KEY_HEADS]
        query, key, value = qkv.split(sizes, 2)
        attention.write_kernel(
            *(query, key, value, starts, sin, cos),
            *(caches.keys, caches.values, caches.table, is_paged),
        )
        output = make.unwritten(REQUESTS, count, HEADS, SIZE)
        attention.prefill_kernel(
            *(query.transpose(1, 2), caches.keys, caches.values, starts, caches.table),
            *(SCALE, is_paged, output.transpose(1, 2)),
        )

        places = (starts[:, None] + torch.arange(count, device=make.device)).long()
        old_query, old_key, _ = given.split(sizes, 2)
        wanted_query = turned(old_query, sin[places], cos[places])
        wanted_key = turned(old_key, sin[places], cos[places])
        rows = torch.arange(REQUESTS, device=make.device)[:, None]
        keys[rows, :, places] = wanted_key.to(make.dtype)
        values[rows, :, places] = value
        yield query, wanted_query
        yield key, wanted_key
        yield caches.of(caches.keys), keys.double()
        yield caches.of(caches.values), values.double()
        yield output, reference(query, keys, values, starts)

    return case


def turning(make):
    heads = make(2, 5, 3, 32)
    given = heads.clone()
    sin, cos = make.angles(10, 16)
    sin, cos = sin.view(2, 5, 16), cos.view(2, 5, 16)
    turn_kernel(heads, sin, cos)
    yield heads, turned(given, sin, cos)


def greedy(make):
    logits = make(3, 9001)
    positions = make.integers(4, 0, 7)
    tokens, history = torch.zeros_like(positions), make.integers(*[0] * 30).view(3, 10)
    draw(logits, positions, tokens, history, None)
    best = logits.double().argmax(1)
    wanted = torch.zeros(3, 10, dtype=torch.float64, device=make.device)
    wanted[[0, 1, 2], [5, 1, 8]] = best.double()
    yield tokens, best
    yield positions, make.integers(5, 1, 8)
    yield history, wanted


def draw(logits, positions, tokens, history, least, temperature=1.0):
    """The next tokens; random ones of those that are `least` likely, where that is given."""
    blocks = -(-logits.shape[1] // sampling.BLOCK_SIZE)
    values = torch.empty(logits.shape[0], blocks, device=logits.device)
    indices = torch.empty_like(values, dtype=torch.int32)
    is_random = least is not None
    sampling.best_kernel(
        *(logits, values[:, 0] if least is None else least, temperature, tokens * 0 + 5),
        *(positions, is_random, values, indices),
    )
    sampling.choose_kernel(values, indices, tokens, positions, history)


def nucleus(make):
    logits, temperature = make(3, 9001, scale=3.0).float(), 0.7
    falling = logits.sort(1, descending=True).values
    ordered = (falling.double() / temperature).softmax(1)
    before = ordered.cumsum(1) - ordered
    for top_p in (0.1, 0.5, 0.9):
        least = make.unwritten(3, dtype=torch.float32)
        sampling.nucleus_kernel(logits, temperature, top_p, least)
        kept = (logits >= least[:, None]).sum(1)
        # Of tokens that are as likely as the last one, all are in it.
        last = falling.gather(1, (before < top_p).sum(1, keepdim=True) - 1)
        yield kept, (falling >= last).sum(1)


#: name -> a function of a maker that yields results and what they should be.
CASES = {
    **{f"product of {rows} rows": product_of_rows(rows) for rows in (1, 2, 3, 4, 7)},
    "decoding": decoding(False),
    "decoding, paged": decoding(True),
    "prefilling": prefilling(False),
    "prefilling, paged": prefilling(True),
    "turning": turning,
    "greedy": greedy,
    "nucleus": nucleus,
}

#: What an element may differ by, of sums of products of numbers rounded to this type.
BOUNDS = {torch.float32: 2e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def check(name, dtype, device="cpu"):
    """Run a case, and compare."""
    for got, wanted in CASES[name](Maker(dtype, device)):
        assert not got.isnan().any()
        bound = BOUNDS[dtype] * max(1.0, wanted.double().abs().max().item())
        assert (got.double() - wanted.double()).abs().max() <= bound
