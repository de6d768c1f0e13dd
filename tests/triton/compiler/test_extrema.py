"""An extremum of what LLVM's simplifier would end the process at is taken in two steps."""

from __future__ import annotations

import pytest

pytest.importorskip("triton", reason="needs Triton's compiler")
torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from ninetoothed.backends.triton.compiler.extrema import regrouped  # noqa: E402


def of_a_quotient(a, b, y):
    y = ntl.maximum(a / b, ntl.maximum(a, b))  # noqa: F841


def of_a_fused_product(a, b, y):
    y = ntl.minimum(ntl.minimum(b, a), ntl.fma(a, b, a))  # noqa: F841


def of_a_sign(a, b, y):
    y = ntl.maximum(ntl.libdevice.copysign(a, b), ntl.maximum(a, b))  # noqa: F841


@pytest.mark.parametrize("application", [of_a_quotient, of_a_fused_product, of_a_sign])
def test_it_is_compiled(application):
    # Where it is not, this test's process ends.
    def arrangement(*tensors):
        return tuple(tensor.tile((64,)) for tensor in tensors)

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1), Tensor(1)))
    vector = torch.empty(1000)
    assert kernel.compile(vector, vector, vector, target=("cuda", 90)).asm["cubin"]


def test_the_operands_are_taken_one_by_one():
    text = """
  tt.func @f(%a: f32, %b: f32) {
    %q = arith.divf %a, %b : f32 loc(#loc1)
    %m = arith.maxnumf %b, %a : f32 loc(#loc2)
    %r = arith.maxnumf %m, %q : f32 loc(#loc3)
"""
    assert regrouped(text) == text.replace(
        "    %r = arith.maxnumf %m, %q : f32 loc(#loc3)\n",
        "    %regrouped.0 = arith.maxnumf %q, %b : f32 loc(#loc3)\n"
        "    %r = arith.maxnumf %regrouped.0, %a : f32 loc(#loc3)\n",
    )


@pytest.mark.parametrize(
    "text",
    [
        # Of other operands, of the other extremum, of extrema alone.
        "%q = arith.divf %a, %c : f32\n%m = arith.maxnumf %a, %b : f32\n%r = arith.maxnumf %q, %m : f32\n",
        "%q = arith.divf %a, %b : f32\n%m = arith.minnumf %a, %b : f32\n%r = arith.maxnumf %q, %m : f32\n",
        "%q = arith.maxnumf %a, %b : f32\n%m = arith.maxnumf %b, %a : f32\n%r = arith.maxnumf %q, %m : f32\n",
        # What a region defined has its name there alone.
        "scf.if %c {\n%q = arith.divf %a, %b : f32\n} else {\n%q = math.exp %a : f32\n"
        "%m = arith.maxnumf %a, %b : f32\n%r = arith.maxnumf %q, %m : f32\n}\n",
    ],
)
def test_others_are_left_as_they_are(text):
    assert regrouped(text) == text
