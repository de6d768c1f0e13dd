"""The lengths of a jagged tensor's sequences in the emitted text, and compiled for a GPU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from ninetoothed.backends.triton.translation import specialize  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.corpus.kernels import bounded, seen, sequences  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")

LENGTH = "tl.load(x_offsets_ptr + program_0 + 1) - tl.load(x_offsets_ptr + program_0)"


def made(application):
    return ninetoothed.make(sequences, application, (Tensor(2, jagged_dim=1), Tensor(2), Tensor(2)))


def arguments(*lengths, dtype=torch.float32):
    x = torch.nested.nested_tensor([torch.empty(n) for n in lengths], layout=torch.jagged)
    return x, torch.empty(len(lengths), max(lengths), dtype=dtype), torch.empty(len(lengths), 1)


@pytest.mark.parametrize("options", [(), (("loop_splitting", 1),)], ids=str)
def test_a_comparison_with_a_length_is_made_though_it_holds_of_the_longest(options):
    kernel = made(seen)
    specialized = specialize(
        kernel.definition, kernel.call_of(*arguments(8, 3)), Config((), 4, 3, options)
    )

    text = " ".join(specialized.emitted.text.split())
    assert f"x_length = tl.cast( {LENGTH}, tl.int32, )" in text
    assert text.count("x_length = ") == 1
    assert "[None, :] < x_length" in text
    assert text.count("for k in") == 1


def test_the_loop_that_ends_with_a_sequence_is_split_where_its_tiles_are_whole():
    kernel = made(bounded)
    call = kernel.call_of(*arguments(9, 3))
    text = specialize(
        kernel.definition, call, Config((), 4, 3, (("loop_splitting", 1),))
    ).emitted.text

    assert "k_end = tl.cdiv(x_length, 4)" in text
    assert text.count("[None, :] < x_length") == text.count("for k in") == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("application", [seen, bounded])
def test_it_compiles(application, dtype):
    compiled = made(application).compile(*arguments(9, 0, 3, dtype=dtype), target=("cuda", 90))

    assert len(compiled.asm["cubin"]) > 0
