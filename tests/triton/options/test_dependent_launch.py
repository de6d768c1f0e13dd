"""Launches that begin while the kernel before ends: only of kernels that wait for it themselves."""

from __future__ import annotations

import re

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from ninetoothed.backends.triton.options.dependent_launch import OPTION  # noqa: E402
from ninetoothed.backends.triton.printers.triton import WAIT, emit  # noqa: E402
from ninetoothed.backends.triton.specialization.target import Target  # noqa: E402
from ninetoothed.backends.triton.translation import generic  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402
from tests.triton.options.test_descriptors import BLOCKS  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")

HOPPER, AMPERE, AMD = ("cuda", 90), ("cuda", 80), ("hip", "gfx942")


@pytest.fixture(autouse=True)
def nothing_is_fixed(monkeypatch):
    monkeypatch.delenv("NINETOOTHED_OPTIONS", raising=False)


def compiled(name="add", target=HOPPER):
    constants = {"BLOCK_SIZE": 1024} if name == "add" else {}
    tensor = torch.empty(4096, dtype=torch.float16)
    if name != "add":
        tensor = torch.empty(256, 256, dtype=torch.float16)
        constants = {"configuration": BLOCKS} if name == "mm" else {}
    tensors = [tensor] * (2 if name == "softmax" else 3)
    return TEN[name].compile(*tensors, target=target, **constants)


@pytest.mark.parametrize(
    ("target", "is_served"),
    [(HOPPER, True), (("cuda", 100), True), (AMPERE, False), (AMD, False)],
    ids=str,
)
def test_where_it_is_served(target, is_served):
    assert OPTION.serves(Target.parse(target)) == is_served


def test_where_the_device_is_not_known_it_is_not():
    assert not OPTION.serves(None)


@pytest.mark.parametrize("name", TEN)
def test_to_wait_is_the_first_that_a_program_does(name):
    emitted = emit(generic(TEN[name].definition, dependent_launch=1))
    text = emitted.text

    assert emitted.waits
    assert text.count(WAIT) == 1
    assert text.partition("\n):\n")[2].startswith(f"    {WAIT}\n")
    assert WAIT not in emit(generic(TEN[name].definition)).text


@pytest.mark.parametrize("name", ["add", "softmax", "mm"])
def test_nothing_is_read_before_the_wait(name):
    found = compiled(name)
    text = found.asm["ptx"]
    (wait,) = re.finditer(r"griddepcontrol\.wait", text)
    first = re.search(r"\b(ld|st|cp|atom|red)\.\S*global", text)

    assert found.metadata.launch_pdl
    assert first and wait.start() < first.start()


@pytest.mark.parametrize("target", [AMPERE, AMD], ids=str)
def test_other_devices_launch_as_ever(target):
    found = compiled(target=target)

    assert not getattr(found.metadata, "launch_pdl", False)
    assert "griddepcontrol" not in "".join(map(str, found.asm.values()))


def test_a_kernel_that_does_not_wait_is_not_launched_so(monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "dependent_launch=0")
    found = compiled()

    assert not found.metadata.launch_pdl
    assert "griddepcontrol" not in found.asm["ptx"]
