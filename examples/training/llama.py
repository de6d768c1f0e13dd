"""A small decoder as Llama has it, to be trained with these operators or with PyTorch's.

Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023. Its data is a language of
sums, "12+7=19;", which a small model learns to a low loss in some hundred steps.

python -m examples.training.llama [--operators ours|torch] [--layers 2] [--width 64] [--steps 50]
"""

import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F

from examples import training

CHARACTERS = "0123456789+=;"


class Ours:
    """The operators of this package."""

    rms_norm = staticmethod(lambda x, weight: training.rms_norm(x, weight, 1e-6))
    linear = staticmethod(training.linear)
    embedding = staticmethod(training.embedding)
    rope = staticmethod(lambda x, sin, cos: training.rope(x, sin, cos, interleaved=False))
    attention = staticmethod(lambda q, k, v: training.attention(q, k, v, is_causal=True))
    swiglu = staticmethod(training.swiglu)
    cross_entropy = staticmethod(training.cross_entropy)


class PyTorch:
    """PyTorch's own."""

    rms_norm = staticmethod(lambda x, weight: F.rms_norm(x, weight.shape, weight, 1e-6))
    linear = staticmethod(F.linear)
    embedding = staticmethod(F.embedding)
    swiglu = staticmethod(lambda gate, value: F.silu(gate) * value)
    cross_entropy = staticmethod(lambda logits, target: F.cross_entropy(logits.float(), target))

    @staticmethod
    def attention(*tensors):
        """Of (batch, sequence, heads, size)."""
        by_head = (tensor.transpose(1, 2) for tensor in tensors)
        return F.scaled_dot_product_attention(*by_head, is_causal=True).transpose(1, 2)

    @staticmethod
    def rope(x, sin, cos):
        """Pairs of the halves of (batch, sequence, heads, size), turned."""
        sin, cos = (table[: x.shape[1], None, :].to(x.dtype) for table in (sin, cos))
        first, second = x.chunk(2, -1)
        return torch.cat((first * cos - second * sin, first * sin + second * cos), -1)


class Layer(nn.Module):
    """Attention and a gated product, each after a normalisation and added to what came in."""

    def __init__(self, operators, width, heads):
        super().__init__()
        self.operators, self.heads = operators, heads
        inner = 8 * width // 3 // 16 * 16
        self.before_attention, self.before_product = (
            nn.Parameter(torch.ones(width)) for _ in range(2)
        )
        self.query, self.key, self.value, self.out = (weight(width, width) for _ in range(4))
        self.gate, self.up = weight(inner, width), weight(inner, width)
        self.down = weight(width, inner)

    def forward(self, x, length, sin, cos):
        """(tokens, width), as it comes in; sequences of a length lie one after another."""
        do, dtype = self.operators, x.dtype

        def project(x, weight):
            return do.linear(x, weight.to(dtype))

        def by_head(x):
            return x.view(-1, length, self.heads, x.shape[-1] // self.heads)

        normal = do.rms_norm(x, self.before_attention.to(dtype))
        query = do.rope(by_head(project(normal, self.query)), sin, cos)
        key = do.rope(by_head(project(normal, self.key)), sin, cos)
        value = by_head(project(normal, self.value))
        x = x + project(do.attention(query, key, value).reshape_as(x), self.out)
        normal = do.rms_norm(x, self.before_product.to(dtype))
        gated = do.swiglu(project(normal, self.gate), project(normal, self.up))

        return x + project(gated, self.down)


class Llama(nn.Module):
    """A decoder of characters. Weights are float32; it computes in ``dtype``."""

    def __init__(self, operators, layers, width, heads, length, dtype=torch.float32):
        super().__init__()
        self.operators, self.dtype = operators, dtype
        self.table = weight(len(CHARACTERS), width)
        self.layers = nn.ModuleList(Layer(operators, width, heads) for _ in range(layers))
        self.last = nn.Parameter(torch.ones(width))
        half = width // heads // 2
        angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(half) / half)
        self.register_buffer("sin", angles.sin())
        self.register_buffer("cos", angles.cos())

    def forward(self, tokens, targets):
        """The loss of tokens (batch, sequence) and those that follow them."""
        x = self.operators.embedding(tokens.flatten(), self.table.to(self.dtype))
        for layer in self.layers:
            x = layer(x, tokens.shape[1], self.sin, self.cos)
        x = self.operators.rms_norm(x, self.last.to(self.dtype))
        logits = self.operators.linear(x, self.table.to(self.dtype))

        return self.operators.cross_entropy(logits, targets.flatten())


def weight(*shape):
    """A matrix of small random numbers."""
    return nn.Parameter(torch.randn(shape) / math.sqrt(shape[-1]))


def batches(count, size, length, seed=0):
    """Tokens and those that follow, of random sums."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        rows = []
        for _ in range(size):
            text = ""
            while len(text) <= length:
                a, b = torch.randint(0, 100, (2,), generator=generator).tolist()
                text += f"{a}+{b}={a + b};"
            rows.append([CHARACTERS.index(character) for character in text[: length + 1]])
        tokens = torch.tensor(rows)
        yield tokens[:, :-1], tokens[:, 1:].contiguous()


def train(model, data, rate=1e-3):
    """The losses of steps of Adam over batches."""
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    for tokens, targets in data:
        loss = model(tokens.to(device), targets.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def main():
    """Trains, and prints the loss every ten steps."""
    parser = argparse.ArgumentParser("python -m examples.training.llama", description=__doc__)
    parser.add_argument("--operators", choices=("ours", "torch"), default="ours")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    torch.manual_seed(0)
    operators = Ours if options.operators == "ours" else PyTorch
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Llama(operators, options.layers, options.width, options.heads, options.length)
    data = batches(options.steps, options.batch, options.length)
    for step, loss in enumerate(train(model.to(device), data)):
        if step % 10 == 0 or step == options.steps - 1:
            print(f"step {step:4}  loss {loss:.3f}")


if __name__ == "__main__":
    main()
