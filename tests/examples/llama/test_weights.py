"""Weights and configurations as `transformers` writes them."""

from __future__ import annotations

import json

import pytest
import torch

from examples.llama.config import Config
from examples.llama.model import Session
from examples.llama.weights import assembled, file_tensors, names_and_shapes, random_tensors
from tests.examples.llama.models import WITH_BIASES

NAMES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}


def write(path, tensors):
    """A safetensors file: the length of its JSON, that, and the tensors' bytes."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        place = [end, end + tensor.nbytes]
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": place,
        }
        end = place[1]
    text = json.dumps(header).encode()
    content = [t.view(torch.uint8).numpy().tobytes() for t in tensors.values()]
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(content))


@pytest.fixture
def folder(tmp_path):
    """A Qwen2 in two files, with its configuration."""
    tensor = random_tensors(WITH_BIASES, torch.float32, "cpu")
    names = list(names_and_shapes(WITH_BIASES))
    for place, part in enumerate((names[::2], names[1::2])):
        write(tmp_path / f"model-{place}.safetensors", {name: tensor(name) for name in part})
    written = {
        "model_type": "qwen2",
        "vocab_size": WITH_BIASES.vocab_size,
        "hidden_size": WITH_BIASES.hidden_size,
        "intermediate_size": WITH_BIASES.intermediate_size,
        "num_hidden_layers": WITH_BIASES.num_hidden_layers,
        "num_attention_heads": WITH_BIASES.num_attention_heads,
        "num_key_value_heads": WITH_BIASES.num_key_value_heads,
        "head_dim": WITH_BIASES.head_dim,
        "rms_norm_eps": WITH_BIASES.rms_norm_eps,
        "rope_theta": 10000.0,
        "torch_dtype": "float32",
        "use_sliding_window": False,
    }
    (tmp_path / "config.json").write_text(json.dumps(written))
    return tmp_path


def generated(config, tensor):
    session = Session(config, assembled(config, tensor), 1, 16)
    return session.generate(torch.arange(4)[None], 4)


def test_what_files_hold_generates_as_what_was_written(folder):
    config = Config.from_json(folder / "config.json")
    tensor = file_tensors(folder, torch.float32, "cpu")

    assert config == WITH_BIASES
    own = random_tensors(WITH_BIASES, torch.float32, "cpu")
    assert torch.equal(generated(config, tensor), generated(WITH_BIASES, own))


@pytest.mark.parametrize("dtype", NAMES, ids=str)
def test_an_element_type_becomes_another(tmp_path, dtype):
    values = torch.randn(3, 5).to(dtype)
    write(tmp_path / "a.safetensors", {"x": torch.zeros(7), "y": values})

    assert torch.equal(file_tensors(tmp_path, torch.float64, "cpu")("y"), values.double())


def test_a_weight_that_no_file_has_is_named(folder):
    with pytest.raises(KeyError, match=r"no safetensors file in .* has 'model\.other'"):
        file_tensors(folder, torch.float32, "cpu")("model.other")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model_type", "gpt2"),
        ("hidden_act", "gelu"),
        ("use_sliding_window", True),
        ("attention_bias", True),
    ],
)
def test_what_this_decoder_does_not_do_is_an_error(folder, name, value):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))

    with pytest.raises(ValueError, match=rf"has {name}={value!r}; this decoder has"):
        Config.from_json(path)
