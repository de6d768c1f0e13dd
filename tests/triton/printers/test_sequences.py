"""The lengths of a jagged tensor's sequences in the emitted text, and compiled for a GPU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from ninetoothed.backends.triton.translation import specialize  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")

LENGTH = "tl.load(x_offsets_ptr + program_0 + 1) - tl.load(x_offsets_ptr + program_0)"


def arrangement(x, y, z):
    """A sequence in blocks, those of a dense tensor as long as the longest, and a result each."""

    def blocks(tensor):
        arranged = tensor.tile((1, 4)).tile((1, -1))
        arranged.dtype = arranged.dtype.squeeze(0)
        return arranged

    return blocks(x), blocks(y), z.tile((1, 1))


def seen(x, y, z):
    """The mean of those elements of a dense tensor that a sequence has beside them."""
    total = ntl.zeros((1, 4), dtype=ntl.float32)
    for k in range(y.shape[0]):
        is_seen = y[k].offsets(1)[None, :] < x.source.shape[1]
        total += ntl.where(is_seen, y[k], 0.0)
    z = ntl.sum(total) / x.source.shape[1]  # noqa: F841


def bounded(x, y, z):
    """The same, with a loop that ends with the sequence."""
    total = ntl.zeros((1, 4), dtype=ntl.float32)
    for k in range(ntl.cdiv(x.source.shape[1], 4)):
        total += ntl.where(y[k].offsets(1)[None, :] < x.source.shape[1], y[k], 0.0)
    z = ntl.sum(total) / x.source.shape[1]  # noqa: F841


def made(application):
    return ninetoothed.make(
        arrangement, application, (Tensor(2, jagged_dim=1), Tensor(2), Tensor(2))
    )


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
