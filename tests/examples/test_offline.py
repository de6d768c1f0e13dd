"""Every example compiled for devices that are not here, down to their machine code."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ninetoothed.launch.kernel import Kernel
from tests.examples.cases import EXAMPLES, Maker
from tests.examples.checking import BY_NAME
from tests.examples.more_cases import MORE

pytest.importorskip("triton", reason="needs Triton")

#: The stage that is the machine's own, by target.
TARGETS = {("cuda", 80): "cubin", ("cuda", 90): "cubin", ("cuda", 100): "cubin"}
TARGETS["hip", "gfx942"] = "hsaco"


CASES = [
    (example.name, target, dtype)
    for example in EXAMPLES
    for target in TARGETS
    for dtype in (torch.float32, torch.float16)
]
CASES += [(example.name, ("cuda", 90), torch.float16) for example in MORE]


@pytest.mark.parametrize(("name", "target", "dtype"), CASES, ids=str)
def test_example(
    name: str, target: tuple[str, Any], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = []

    def compile_instead(kernel: Kernel, *arguments: Any, **keywords: Any) -> None:
        compiled.append(kernel.compile(*arguments, target=target, **keywords))

    monkeypatch.setattr(Kernel, "__call__", compile_instead)
    example = BY_NAME[name]
    example.actual(example.arguments(Maker(dtype), example.small["odd"]))
    assert compiled
    assert all(len(result.asm[TARGETS[target]]) > 0 for result in compiled)
