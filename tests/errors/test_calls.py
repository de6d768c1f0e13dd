"""Calls with arguments that are not taken: one error at `make`, for all backends, used or not."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

import torch  # noqa: E402

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from tests.errors.making import refusal, whole  # noqa: E402


def unused(x, y):
    ntl.sum(x, keepdims=True)
    y = x


def where_nothing_is_run(x, y):
    if ntl.program_id(0) < 0:
        ntl.exp(x, x)
    y = x


def a_place_and_a_name(x, y):
    y = x + ntl.sum(x, 0, axis=0)


def too_little(x, y):
    ntl.rand(1)
    y = x


def a_method_with_more(x, y):
    x.sum(0, False, None, 1)
    y = x


def a_method_with_less(x, y):
    y = x + (x + 1).gather(x)


def an_unknown_method(x, y):
    x.sums(0)
    y = x


def of_the_library(x, y):
    ntl.libdevice.pow(x)
    y = x


def nothing_at_all(x, y):
    ntl.debug_barrier(1)
    y = x


def a_combination_of_one(x, y):
    ntl.reduce(x, 0, lambda a: a)
    y = x


def a_map_of_two(x, y):
    ntl.map_elementwise(lambda a, b: a, x)
    y = x


def helper(a, b):
    return a + b


def named_twice(x, y):
    both = {"a": x, "b": x}
    y = helper(**both, b=x)


def least_of_nothing(x, y):
    min()
    y = x


def numbers_of_nothing(x, y):
    enumerate()
    y = x


def four_bounds(x, y):
    range(1, 2, 3, 4)
    y = x


def counted_with_a_misspelt_hint(x, y):
    for _ in ntl.range(3, num_stagse=2):
        y = x


def a_function_as_a_method(x, y):
    y = x.fdiv(2.0)


def in_any_order(x, y):
    ntl.atomic_add(y, x, sem="relaxd")


def seen_by_many(x, y):
    ntl.atomic_cas(y.source[0, 0], 0.0, 1.0, None, "grid")


def cached_anywhere(x, y):
    y = x + ntl.load(x.source.data_ptr(), cache_modifier=".wt")


def rounded_anyhow(x, y):
    y = x.to(ntl.float16, "rtn")


def multiplied_anyhow(x, y):
    y = ntl.dot(x, y, input_precision="fp32")


def separated(x, y):
    print("a", sep="b")
    y = x


def called_shape(x, y):
    (x + 1).T(1)
    y = x


def of_a_variable(x, y):
    v = x
    y = v.offsets(0) + x


def of_an_item(x, y):
    tiles = {"x": x}
    y = x + tiles["x"].source.shape[0]


@pytest.mark.parametrize(
    ("application", "said"),
    [
        (unused, "`dtype`, but got `keepdims`. Did you mean 'keep_dims'?"),
        (where_nothing_is_run, "`ntl.exp` takes `x`, but got 2 arguments."),
        (a_place_and_a_name, "`ntl.sum` got `axis` twice"),
        (too_little, "`ntl.rand` needs `seed`, `offset`, but got no `offset`."),
        (a_method_with_more, "`x.sum` takes `axis`, `keep_dims`, `dtype`, but got 4 arguments."),
        (a_method_with_less, "`(x + 1).gather` needs `index`, `axis`, but got no `axis`."),
        (an_unknown_method, "A tile has no 'sums'. Did you mean 'sum'?"),
        (of_a_variable, "Ask the tile itself by its parameter's name, as in `x.offsets`."),
        (of_an_item, "A value has no 'source': a variable, or an item of a list, holds"),
        (of_the_library, "`ntl.libdevice.pow` needs `arg0`, `arg1`, but got no `arg1`."),
        (nothing_at_all, "`ntl.debug_barrier` takes no arguments, but got 1 argument."),
        (a_combination_of_one, "`ntl.reduce` calls its function with 2 values, and it takes 1."),
        (a_map_of_two, "`ntl.map_elementwise` calls its function with 1 value, and it takes 2."),
        (named_twice, "`helper` got `b` twice."),
        (least_of_nothing, "`min` takes at least 1 argument, but got 0."),
        (numbers_of_nothing, "`enumerate` takes at least 1 argument, but got 0."),
        (four_bounds, "`range` takes at most 3 arguments, but got 4."),
        (counted_with_a_misspelt_hint, "but got `num_stagse`. Did you mean 'num_stages'?"),
        (a_function_as_a_method, "A tile has no 'fdiv'. Did you mean 'cdiv'?"),
        (in_any_order, "`sem` of `ntl.atomic_add` is one of 'relaxed', 'acquire', "),
        (
            seen_by_many,
            "`scope` of `ntl.atomic_cas` is one of 'gpu', 'cta', 'sys', but got 'grid'.",
        ),
        (
            cached_anywhere,
            "`cache_modifier` of `ntl.load` is one of '.ca', '.cg', '.cv', but got '.wt'.",
        ),
        (rounded_anyhow, "is one of 'rtne', 'rtz', but got 'rtn'. Did you mean 'rtne'?"),
        (multiplied_anyhow, "`input_precision` of `ntl.dot` is one of 'tf32', 'tf32x3', 'ieee'"),
        (separated, "`print` takes no keywords here"),
        (called_shape, "This cannot be called."),
    ],
)
def test_what_is_not_taken_is_an_error_at_make(application, said):
    assert said in refusal(application)


def test_functions_of_triton_are_asked_too():
    triton = pytest.importorskip("triton", reason="needs Triton")

    @triton.jit
    def own(a, b):
        return a + b

    def application(x, y):
        own(x)
        y = x

    assert "'own' cannot be called so: missing a required argument: 'b'" in refusal(application)


def by_name(x, y):
    total = ntl.zeros(x.shape, ntl.float32)
    for k in ntl.range(arg1=0, arg2=9, step=2):
        total += k
    for k in ntl.static_range(1, step=1):
        total += 10 * k + 100
    y = x + total


def test_the_bounds_of_a_loop_may_be_named():
    kernel = ninetoothed.make(whole, by_name, (Tensor(2), Tensor(2)))
    y = torch.zeros(2, 4)
    kernel(torch.ones(2, 4), y)
    assert torch.equal(y, torch.full((2, 4), 1.0 + 20 + 100))
