"""Operators to train with: forward and backward are kernels, made operators by `ninetoothed.op`.

Each module has a function of PyTorch's tensors that autograd, `torch.compile` and `torch.func` know.
Statistics are float32, or float64 where the tensors are.
"""

from examples.training.attention import attention
from examples.training.cross_entropy import cross_entropy
from examples.training.dropout import dropout
from examples.training.embedding import embedding
from examples.training.layer_norm import layer_norm
from examples.training.linear import linear, mm
from examples.training.rms_norm import rms_norm
from examples.training.rope import rope
from examples.training.softmax import softmax
from examples.training.swiglu import swiglu

__all__ = [
    "attention",
    "cross_entropy",
    "dropout",
    "embedding",
    "layer_norm",
    "linear",
    "mm",
    "rms_norm",
    "rope",
    "softmax",
    "swiglu",
]
