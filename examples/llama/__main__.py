"""Generates tokens with a Llama: a random one of some size, or that of a folder.

python -m examples.llama --layers 2 --width 256
python -m examples.llama --weights FOLDER --prompt 128000 9906 --tokens 32 [--temperature 0.7 --top-p 0.9]
torchrun --nproc-per-node 2 -m examples.llama --layers 2 --width 256

FOLDER has a `config.json` and safetensors files, as `transformers` writes them. Tokens are numbers: no
tokenizer is part of this.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist

from examples.llama.config import Config
from examples.llama.model import Session
from examples.llama.parallel import ALONE, Group
from examples.llama.weights import assembled, file_tensors, random_tensors


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser("python -m examples.llama", description=__doc__)
    parser.add_argument("--weights", type=Path, help="a folder; without it weights are random")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--key-heads", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=1000)
    parser.add_argument("--prompt", type=int, nargs="+", default=list(range(1, 9)))
    parser.add_argument("--requests", type=int, default=1, help="so many read the same prompt")
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--page-size", type=int, help="keep keys and values in pages")
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--top-p", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"))
    return parser.parse_args()


def random_config(options: argparse.Namespace) -> Config:
    """A Llama of the size that the options say."""
    return Config(
        vocab_size=options.vocabulary,
        hidden_size=options.width,
        intermediate_size=8 * options.width // 3 // 16 * 16,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        num_key_value_heads=options.key_heads,
        head_dim=options.width // options.heads,
        rope={"rope_theta": 10000.0},
    )


def join() -> tuple[str, Group]:
    """The device of this process, and the others that `torchrun` started, if it did."""
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    if "WORLD_SIZE" not in os.environ:
        return kind, ALONE
    dist.init_process_group("nccl" if kind == "cuda" else "gloo")
    if kind == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        kind = f"cuda:{os.environ['LOCAL_RANK']}"
    return kind, Group.here()


@torch.inference_mode()
def main() -> None:
    """Generate, and print the tokens and how long it took."""
    options = parse()
    device, group = join()
    plain = "float32" if device == "cpu" else "bfloat16"
    dtype = getattr(torch, options.dtype or plain)

    if options.weights:
        config = Config.from_json(options.weights / "config.json")
        tensor = file_tensors(options.weights, dtype, device)
    else:
        config = random_config(options)
        tensor = random_tensors(config, dtype, device, options.seed)

    length = len(options.prompt) + options.tokens
    session = Session(
        config,
        assembled(config, tensor, group),
        options.requests,
        length,
        options.page_size,
        options.temperature,
        options.top_p,
        options.seed,
        group,
    )
    prompt = torch.tensor([options.prompt]).expand(options.requests, -1)
    start = time.perf_counter()
    tokens = session.generate(prompt, options.tokens).tolist()
    seconds = time.perf_counter() - start

    if group.rank == 0:
        for row in tokens:
            print(*row)
        print(
            f"{options.requests * options.tokens / seconds:.1f} tokens/s, the first call included"
        )
    if group.size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
