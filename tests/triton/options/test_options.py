"""Options of a configuration: what is tried where, and what a person fixed."""

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from ninetoothed.backends.triton.options import OPTIONS  # noqa: E402
from ninetoothed.backends.triton.planning.choices import choices  # noqa: E402
from ninetoothed.backends.triton.specialization.target import Target  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of  # noqa: E402
from ninetoothed.errors import NineToothedError  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")

#: The block sizes of `mm`.
BLOCKS = {f"BLOCK_SIZE_{dim}": 64 for dim in "MNK"}


@pytest.fixture(autouse=True)
def nothing_is_fixed(monkeypatch):
    monkeypatch.delenv("NINETOOTHED_OPTIONS", raising=False)


def tried(name):
    kernel = TEN[name]
    constants = {"BLOCK_SIZE": 1024} if name == "add" else {}
    tensor = torch.empty(1 << 20) if name == "add" else torch.empty(1000, 1000)
    call = kernel.call_of(tensor, tensor, tensor, **constants)
    blocks = {} if name == "add" else BLOCKS
    return choices(
        kernel.definition,
        call,
        environment_of(kernel.definition, call, Config(tuple(blocks.items()), 4, 3)),
    )


def test_an_option_is_called_what_its_file_is():
    files = {type(option).__module__.rpartition(".")[2]: option.name for option in OPTIONS}

    assert len(files) == len(OPTIONS)
    assert all(file == name for file, name in files.items())


def test_the_plain_translation_is_tried_first():
    assert tried("mm")[0] == ()


def test_an_option_is_tried_where_it_applies():
    assert (("swizzle", 1),) in tried("mm")
    assert tried("add") == [()]


def test_the_environment_fixes_an_option(monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "swizzle=1")

    assert tried("mm") == [(("swizzle", 1),)]
    assert tried("add") == [()]


def test_the_environment_may_fix_what_is_right_and_not_worth_trying(monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "program_coarsening=4")

    assert tried("add") == [(("program_coarsening", 4),)]


@pytest.mark.parametrize("text", ["swizzles=1", "swizzle", "swizzle=on"])
def test_what_is_no_option_is_an_error(monkeypatch, text):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", text)

    with pytest.raises(NineToothedError, match="NINETOOTHED_OPTIONS.*swizzle"):
        tried("mm")


@pytest.mark.parametrize(
    ("device", "text", "values"),
    [
        (Target("cuda", 90, 32), "", {1}),
        (Target("cuda", 90, 32), "partial_reduction_sinking=0", {0}),
        (Target("hip", "gfx942", 64), "", {0}),
        (None, "", {0}),
    ],
)
def test_an_option_that_always_pays_is_on_where_it_is_served(monkeypatch, device, text, values):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", text)
    kernel, tensor = TEN["sdpa"], torch.empty(1, 2, 64, 32)
    call = kernel.call_of(tensor, tensor, tensor, 1.0, False, tensor)
    config = Config((("BLOCK_SIZE_M", 64), ("BLOCK_SIZE_N", 64)), 4, 3)
    found = choices(
        kernel.definition, call, environment_of(kernel.definition, call, config), device
    )

    assert {dict(chosen).get("partial_reduction_sinking", 0) for chosen in found} == values
