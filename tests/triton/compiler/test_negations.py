"""A negated integer among those that a maximum or minimum is taken of is negated in two steps."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("triton", reason="needs Triton's compiler")
torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from ninetoothed.backends.triton.compiler.negations import spelled_out  # noqa: E402

_NEGATION = re.compile(r"\bneg\.s(16|32)\b|\bsub\.s(16|32)\s+%\w+, 0,")


def greatest(x, y):
    y = ntl.max(ntl.max(-x, axis=0), axis=0)  # noqa: F841


def least(x, y):
    y = ntl.min(ntl.minimum(ntl.minimum(x, 0 - x), x * -1))  # noqa: F841


def plain(x, y):
    y = -x  # noqa: F841


def compiled(application, dtype):
    def arrangement(x, y):
        return x.tile((-1, -1)), y.tile((1, 1)) if application is not plain else y.tile((-1, -1))

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)), num_warps=1)
    x = torch.zeros(6, 11, dtype=dtype)
    y = x if application is plain else torch.zeros(1, 1)
    return kernel.compile(x, y, target=("cuda", 90)).asm["ptx"]


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32])
@pytest.mark.parametrize("application", [greatest, least])
def test_no_negation_is_left_to_be_lost(application, dtype):
    text = compiled(application, dtype)
    assert re.search(r"\b(max|min)\.s(16|32)\b", text)
    assert re.search(r"\bnot\.b(16|32)\b", text)
    assert not _NEGATION.search(text)


def test_where_nothing_is_compared_it_stays():
    assert _NEGATION.search(compiled(plain, torch.int32))


def test_what_it_is_written_as():
    text = "\tneg.s32 \t%r5, %r2;\n\tsub.s16 \t%h1, 0, %h2;\n\tsub.s32 \t%r6, %r5, 0;\n"
    assert spelled_out(text) == text
    assert spelled_out(f"{text}\tmax.s32 \t%r1, %r5, %r6;\n") == (
        "\tnot.b32 \t%r5, %r2;\n\tadd.s32 \t%r5, %r5, 1;\n"
        "\tnot.b16 \t%h1, %h2;\n\tadd.s16 \t%h1, %h1, 1;\n"
        "\tsub.s32 \t%r6, %r5, 0;\n\tmax.s32 \t%r1, %r5, %r6;\n"
    )


def test_absolute_values_where_lanes_exchange_values():
    text = "\tabs.s32 \t%r5, %r2;\n\tabs.f32 \t%f5, %f2;\n"
    assert spelled_out(text) == text
    assert spelled_out(f"{text}\tshfl.sync.up.b32 \t%r2, %r1, 1, 0, -1;\n") == (
        "\tnot.b32 \t%r5, %r2;\n\tadd.s32 \t%r5, %r5, 1;\n\tmax.s32 \t%r5, %r5, %r2;\n"
        "\tabs.f32 \t%f5, %f2;\n\tshfl.sync.up.b32 \t%r2, %r1, 1, 0, -1;\n"
    )
