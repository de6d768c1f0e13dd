"""What is no value where one is needed, and several where one decides: one error for all backends."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from ninetoothed.errors import ApplicationError, ShapeError  # noqa: E402
from tests.errors.making import refusal, whole  # noqa: E402


def a_type_stored(x, y):
    y = x.dtype


def a_computed_type(x, y):
    y = (x + 1).dtype


def a_function_stored(x, y):
    y = ntl.exp


def a_method_stored(x, y):
    y = x.sum


def less_than_nothing(x, y):
    y = x < None


def more_than_a_text(x, y):
    y = ("a" > x) + x


def full_of_nothing(x, y):
    y = x + ntl.full((4, 8), None, ntl.float32)


def full_of_a_text(x, y):
    y = x + ntl.full((4, 8), "a", ntl.float32)


def a_tile_as_type(x, y):
    y = ntl.cast(x, x)


def root_of_a_text(x, y):
    ntl.sqrt("a")
    y = x


def greater_than_nothing(x, y):
    y = ntl.maximum(x, None)


def chosen_by_a_type(x, y):
    y = ntl.where(x.dtype, x, y)


def library_of_a_tuple(x, y):
    y = ntl.libdevice.tanh((x, x))


def several_decide(x, y):
    y = x if ntl.arange(0, 4) > 1 else y


def several_decide_a_branch(x, y):
    if ntl.arange(0, 4) > 1:
        y = x


def several_end_a_loop(x, y):
    while ntl.arange(0, 4) > 1:
        y = x


def several_rounds(x, y):
    for _ in range(ntl.arange(0, 4)):
        y = x


def bits_of_a_size(x, y):
    y = x + x.shape[0].bit_length()


@pytest.mark.parametrize(
    ("application", "said"),
    [
        (a_type_stored, "A tile or a number is needed here, but got an element type."),
        (a_computed_type, "A tile or a number is needed here, but got an element type."),
        (a_function_stored, "A tile or a number is needed here, but got `ntl.exp`."),
        (a_method_stored, "`sum` is a method: call it."),
        (less_than_nothing, "A tile or a number is needed here, but got None."),
        (more_than_a_text, "A tile or a number is needed here, but got 'a'."),
        (full_of_nothing, "`ntl.full` takes one value, but got None."),
        (full_of_a_text, "`ntl.full` takes one value, but got 'a'."),
        (a_tile_as_type, "An element type such as ntl.float32 is needed here, but got a tile of"),
        (root_of_a_text, "A tile or a number is needed here, but got 'a'."),
        (greater_than_nothing, "A tile or a number is needed here, but got None."),
        (chosen_by_a_type, "A tile or a number is needed here, but got an element type."),
        (library_of_a_tuple, "A tile or a number is needed here, but got a tuple."),
        (several_decide, "One number is needed here, but the tile's shape is [4]"),
        (several_decide_a_branch, "One number is needed here, but the tile's shape is [4]"),
        (several_end_a_loop, "One number is needed here, but the tile's shape is [4]"),
        (several_rounds, "One number is needed here, but the tile's shape is [4]"),
        (bits_of_a_size, "A tile has no 'bit_length'."),
    ],
)
def test_what_is_not_one_value_is_an_error_at_make(application, said):
    assert said in refusal(application)


def elements_decide(x, y):
    y = x if x > 0 else y


def elements_decide_a_branch(x, y):
    if x > 0:
        y = x


@pytest.mark.parametrize("application", [elements_decide, elements_decide_a_branch])
def test_elements_that_decide_are_an_error_at_the_call(application):
    pytest.importorskip("triton", reason="needs Triton's compiler")
    kernel = ninetoothed.make(whole, application, (Tensor(2), Tensor(2)))
    x, y = torch.ones(4, 8), torch.zeros(4, 8)
    for attempt in (kernel, lambda *given: kernel.compile(*given, target=("cuda", 90))):
        with pytest.raises(ShapeError, match="One number is needed here") as raised:
            attempt(x, y)
        assert raised.value.location.file == __file__


def counts_to_a_float(x, y):
    for _ in range(ntl.max(x)):
        y = x


def test_a_float_that_is_counted_to_is_an_error_at_the_call():
    kernel = ninetoothed.make(whole, counts_to_a_float, (Tensor(2), Tensor(2)))
    with pytest.raises(ApplicationError, match="A range takes integers, but got float32"):
        kernel(torch.ones(4, 8), torch.zeros(4, 8))


def asserts_a_text(x, y):
    assert "x > 0", x
    y = x


def test_a_text_that_is_asserted_is_true():
    kernel = ninetoothed.make(whole, asserts_a_text, (Tensor(2), Tensor(2)))
    x, y = torch.ones(4, 8), torch.zeros(4, 8)
    kernel(x, y)
    assert torch.equal(x, y)


def a_name_that_is_no_parameter(x, y):
    Y = x * 2


def doubled(x):
    for _ in range(2):
        x += x
    return x


def what_a_helper_returns(x, y):
    """A misspelled output."""
    Y = doubled(x)


@pytest.mark.parametrize("application", (a_name_that_is_no_parameter, what_a_helper_returns))
def test_an_application_that_stores_nothing_of_what_it_computes(application):
    message = refusal(application)
    assert "Nothing is stored" in message and "does not name `y`." in message


def only_loads(x, y):
    x + 1


def in_a_loop_without_a_round(x, y):
    twice = x * 2
    for _ in range(0):
        y = twice


def with_a_loop(x, y):
    total = 0.0
    for k in range(3):
        total += ntl.sum(x) * k


def by_a_helper(x, y):
    def store(to, value):
        for _ in range(0):
            to = value

    twice = x * 2
    store(x, twice)


@pytest.mark.parametrize(
    "application", (only_loads, in_a_loop_without_a_round, with_a_loop, by_a_helper)
)
def test_one_that_computes_for_no_variable_or_would_store_is_one(application):
    made = ninetoothed.make(whole, application, (Tensor(2), Tensor(2)))
    output = torch.ones(2, 2)
    made(torch.ones(2, 2), output)
    assert (output == 1).all()
