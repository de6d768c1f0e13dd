"""Paddle's tensors that a kernel cannot be given as they are, and what its autograd is told of stores."""

from __future__ import annotations

import pytest

import ninetoothed
from ninetoothed import Tensor
from ninetoothed.errors import ArgumentError, NineToothedError

paddle = pytest.importorskip("paddle", reason="needs PaddlePaddle")


@pytest.fixture(autouse=True)
def on_the_cpu():
    before = paddle.get_device()
    paddle.set_device("cpu")
    yield
    paddle.set_device(before)


def doubled(x, y):
    y = x * 2  # noqa: F841


def make():
    return ninetoothed.make(
        lambda x, y: (x.tile((4,)), y.tile((4,))), doubled, (Tensor(1), Tensor(1))
    )


def ones():
    return paddle.ones([6])


def cleared():
    tensor = ones()
    tensor._clear_data()
    return tensor


def emptied():
    tensor = ones()
    tensor._clear()
    return tensor


def divided():
    """The first half of it is here; the rest would be another process's."""
    mesh = paddle.distributed.ProcessMesh([0, 1])
    return paddle.distributed.shard_tensor(ones(), mesh, [paddle.distributed.Shard(0)])


def leaf():
    tensor = ones()
    tensor.stop_gradient = False
    return tensor


INPUTS = {
    "coo": (lambda: paddle.sparse.sparse_coo_tensor([[0, 1]], [1.0, 2.0], [6]), "sparse"),
    "cleared": (cleared, "has no memory"),
    "emptied": (emptied, "has no memory"),
    "distributed": (divided, "distributed.*local part"),
    "complex": (lambda: paddle.ones([6], dtype="complex64"), "complex64 cannot be passed"),
    "not initialized": (paddle.Tensor, "no memory|outermost shapes"),
    "static": (lambda: "a name", "must be a tensor"),
}


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("kind", INPUTS)
def test_an_input_that_is_no_plain_tensor_is_refused_by_name(kind, is_known):
    (tensor, message), kernel = INPUTS[kind], make()
    for _ in range(2 if is_known else 0):
        kernel(ones(), ones())

    with pytest.raises(NineToothedError, match=message):
        kernel(tensor(), ones())


OUTPUTS = {
    "overlapping": (lambda: paddle.as_strided(ones(), [6], [0]), "stored to, and several"),
    "leaf": (leaf, "a leaf that requires grad"),
    "distributed": (divided, "distributed.*local part"),
    "parameter": (lambda: paddle.create_parameter([6], "float32"), "a leaf that requires grad"),
}


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("kind", OUTPUTS)
def test_an_output_that_cannot_be_written_is_refused_by_name(kind, is_known):
    kernel, (tensor, message) = make(), OUTPUTS[kind]
    if is_known:
        kernel(ones(), ones())

    with pytest.raises(ArgumentError, match=message):
        kernel(ones(), tensor())


def test_a_leaf_is_written_without_gradients():
    kernel, out = make(), leaf()

    with paddle.no_grad():
        kernel(ones(), out)
        kernel(ones(), out)

    assert out.numpy().tolist() == [2.0] * 6


@pytest.mark.parametrize("calls_before", [0, 1, 3])
def test_what_autograd_keeps_is_known_to_have_changed(calls_before):
    kernel = make()
    for _ in range(calls_before):
        kernel(ones(), ones())
    x = leaf()
    y = x * x
    z = (y * y).sum()

    with paddle.no_grad():
        kernel(ones(), y)

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_an_input_that_requires_grad_warns_once():
    kernel = make()

    with pytest.warns(
        UserWarning, match="`x` requires grad, and what the kernel computes is cut off"
    ):
        kernel(leaf(), ones())
