"""What is asserted and printed: odd arguments are one error at `make`, for all backends."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from tests.errors.making import refusal, whole  # noqa: E402


def prints_a_shape(x, y):
    ntl.device_print("x", x.shape)
    y = x


def prints_no_text(x, y):
    ntl.device_print(x)
    y = x


def prints_nothing(x, y):
    ntl.device_print("x", None)
    y = x


def prints_a_type(x, y):
    ntl.device_print("x", x.dtype)
    y = x


def prints_two_texts(x, y):
    ntl.device_print("x", "y")
    y = x


def hints_at_one_dimension(x, y):
    y = ntl.multiple_of(x, 4)


def hints_at_three_dimensions(x, y):
    y = ntl.max_contiguous(x, (4, 4, 4))


def hints_at_a_text(x, y):
    y = ntl.max_constancy(x, ("a", 4))


def asserts_elements(x, y):
    ntl.static_assert(ntl.sum(x) > -1e9)
    y = x


def asserts_a_tile(x, y):
    ntl.static_assert(x > 0)
    y = x


def asserts_no_condition(x, y):
    ntl.static_assert()
    y = x


def asserts_a_text(x, y):
    ntl.device_assert("x > 0")
    y = x


def asserts_none(x, y):
    ntl.device_assert(None, "x")
    y = x


def asserts_nothing(x, y):
    ntl.device_assert()
    y = x


@pytest.mark.parametrize(
    ("application", "said"),
    [
        (prints_a_shape, "but got a tuple: give its items one by one"),
        (prints_no_text, "`ntl.device_print` needs a text first"),
        (prints_nothing, "prints numbers and tiles, but got None"),
        (prints_a_type, "prints numbers and tiles, but got an element type"),
        (prints_two_texts, "prints numbers and tiles, but got y"),
        (hints_at_one_dimension, r"`ntl.multiple_of` needs one integer for each dimension, 2 here"),
        (hints_at_three_dimensions, "`ntl.max_contiguous` needs one integer for each dimension"),
        (hints_at_a_text, "`ntl.max_constancy` needs one integer for each dimension"),
        (asserts_elements, "`ntl.static_assert` needs what is known when a kernel is compiled"),
        (asserts_a_tile, "`ntl.static_assert` needs what is known when a kernel is compiled"),
        (asserts_no_condition, "`ntl.static_assert` needs `cond`"),
        (asserts_a_text, "`ntl.device_assert` needs a condition, but got 'x > 0'"),
        (asserts_none, "`ntl.device_assert` needs a condition, but got None"),
        (asserts_nothing, "`ntl.device_assert` needs `cond`"),
    ],
)
def test_odd_arguments_are_an_error_at_make(application, said):
    assert said in refusal(application)


def asserts_by_name(x, y):
    ntl.static_assert(cond=x.shape[0] == 4, msg="four")
    ntl.static_assert((x + 1).dtype == ntl.float32, msg="float32")
    ntl.device_print("x", *x.shape)
    y = x


def test_conditions_are_given_by_name_too():
    pytest.importorskip("triton", reason="needs Triton's compiler")
    kernel = ninetoothed.make(whole, asserts_by_name, (Tensor(2), Tensor(2)))
    x, y = torch.ones(4, 8), torch.zeros(4, 8)
    kernel(x, y)
    assert torch.equal(x, y)
    kernel.compile(x, y, target=("cuda", 90))
