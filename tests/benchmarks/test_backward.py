"""What `benchmarks.backward` times computes what PyTorch computes, in small."""

from __future__ import annotations

import pytest
import torch

from benchmarks.backward import contenders, tasks


@pytest.mark.parametrize(
    "name", ("rms_norm", "layer_norm", "softmax", "softmax-derived", "cross_entropy", "rope")
)
def test_what_is_timed_is_right(name):
    task = tasks(rows=16, columns=256, matrix=32)[name]
    task = type(task)(task.making, task.reference, task.shapes, task.others, {"eager": lambda f: f})

    assert [*contenders(task, "cpu", torch.float32)] == ["ours", "eager"]


def test_gradients_that_differ_are_told_for_every_peer():
    task = tasks(rows=4, columns=16)["softmax"]
    peers = {"eager": lambda f: f, "another": lambda f: lambda x: 1.1 * f(x)}
    task = type(task)(task.making, task.reference, task.shapes, task.others, peers)

    with pytest.raises(AssertionError, match=r"'eager': \[.*e-\d+\], 'another': \[0.09"):
        contenders(task, "cpu", torch.float32)
