"""The kernels of the examples are made in a process that has no framework."""

from __future__ import annotations

import pytest

from benchmarks.common.fresh import figures

_PROGRAM = """
import importlib, json, pkgutil, sys

for name in ("torch", "paddle", "triton"):
    sys.modules[name] = None  # importing it fails

import examples
from ninetoothed.launch.kernel import Kernel

made = {}
for module in pkgutil.iter_modules(examples.__path__):
    if not module.ispkg:
        names = vars(importlib.import_module("examples." + module.name)).items()
        made[module.name] = [name for name, value in names if isinstance(value, Kernel)]
print(json.dumps(made))
"""


def test_every_example_makes_its_kernel() -> None:
    made = figures(_PROGRAM)
    assert len(made) == 17
    assert all("kernel" in names for names in made.values()), made


_ONE = """
import json, sys

for name in sys.argv[1].split(","):
    sys.modules[name] = None

import numpy as np
from examples import silu

array = np.linspace(-3, 3, 100, dtype=np.float32)
if sys.argv[2] == "torch":
    import torch
    x, out = torch.from_numpy(array), torch.full((100,), float("nan"))
else:
    import paddle
    paddle.set_device("cpu")
    x, out = paddle.to_tensor(array), paddle.full([100], float("nan"))
silu.kernel(x, out, 64)
np.testing.assert_allclose(out.numpy(), array / (1 + np.exp(-array)), rtol=1e-5)
others = [name for name in sys.argv[1].split(",") if sys.modules[name] is not None]
print(json.dumps({"imported": others}))
"""


@pytest.mark.parametrize(
    ("without", "framework"), [("paddle,jax,triton", "torch"), ("torch,jax,triton", "paddle")]
)
def test_one_framework_is_enough(without, framework):
    pytest.importorskip(framework)
    assert figures(_ONE, without, framework) == {"imported": []}
