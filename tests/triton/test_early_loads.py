"""Tiles of later products: loaded after the first product of a round, where nothing could tell."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from examples import sdpa  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from ninetoothed.backends.triton.compiler.compile import Target  # noqa: E402
from ninetoothed.backends.triton.options.load_scheduling import applies, run  # noqa: E402
from ninetoothed.backends.triton.options.registry import Options, choices  # noqa: E402
from ninetoothed.backends.triton.printers.triton import emit  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")


def kernel_of(application):
    def arrangement(left, right, output):
        return left.tile((16, -1)), *(t.tile((16, 16)).tile((1, -1)) for t in (right, output))

    tensors = (Tensor(2), Tensor(2), Tensor(2))
    return ninetoothed.make(arrangement, application, tensors)


def test_of_the_ten_only_attention_has_such_loads():
    assert [name for name, kernel in TEN.items() if applies(kernel.definition)] == ["sdpa"]


def test_values_are_loaded_right_after_the_scores():
    lines = [
        line.strip()
        for line in emit(sdpa.kernel.definition, options=Options(early=1)).text.splitlines()
    ]
    product = next(n for n, line in enumerate(lines) if line.startswith("scores = tl.dot"))
    following = [line for line in lines[product + 1 :] if line.endswith("tl.load(")]
    before_softmax = lines.index("new_maximum = tl.maximum(maximum, tl.max(scores, axis=1))")

    assert following == ["value_tile = tl.load("]
    assert product < lines.index("value_tile = tl.load(") < before_softmax


def test_what_depends_on_the_round_stays():
    def chosen_by_the_product(left, right, output):
        total = ntl.zeros((16, 16), dtype=ntl.float32)
        for k in range(right.shape[1]):
            scores = ntl.dot(left, right[0, k])
            best = ntl.max(ntl.max(scores, axis=1)).to(ntl.int32)
            total += ntl.dot(scores, right[0, best])
        output[0, 0] = total

    assert not applies(kernel_of(chosen_by_the_product))


def test_a_loop_that_stores_is_left():
    def stores(left, right, output):
        for k in range(right.shape[1]):
            scores = ntl.dot(left, right[0, k])
            scores = ntl.exp(scores)
            output[0, k] = ntl.dot(scores, right[0, k])

    assert not applies(kernel_of(stores))


def test_they_are_tried_with_descriptors():
    tensor = torch.empty(1, 2, 64, 32, dtype=torch.float16)
    call = sdpa.kernel.call_of(tensor, tensor, tensor, 1.0, False, tensor)
    config = Config((("BLOCK_SIZE_M", 64), ("BLOCK_SIZE_N", 64)), 4, 3)
    environment = environment_of(sdpa.kernel.definition, call, config)
    found = map(dict, choices(sdpa.kernel.definition, call, environment, Target("cuda", 90, 32)))
    pairs = {(each.get("descriptors", 0), each.get("early", 0)) for each in found}

    assert pairs == {(0, 0), (1, 0), (1, 1)}


def test_the_program_is_not_changed():
    program = sdpa.kernel.definition.optimized
    before = str(program)
    run(program)

    assert str(program) == before


def test_results():
    found = failures("tests.triton.peel_cases", "descriptors=1,early=1")

    assert not found, "\n".join(f"{case}: {error}" for case, error in found.items())
