"""What is wrong in an application is told at the line and the program where it is met."""

from __future__ import annotations

import numpy as np
import pytest

import ninetoothed.language as ntl
from ninetoothed.backends.numpy.values.tile import Tile
from ninetoothed.errors import ApplicationError, ArgumentError, CompilationError, OutOfBoundsError
from tests.numpy.execution.running import floats, run


def test_a_tile_without_an_attribute_says_so_at_the_line():
    def application(x, out):
        out = x.sums(0)

    with pytest.raises(
        CompilationError, match="A tile has no 'sums'. Did you mean 'sum'"
    ) as raised:
        run(application, floats(4), np.zeros(4, np.float32))
    assert raised.value.location.file == __file__
    assert "out = x.sums(0)" in str(raised.value)
    assert not hasattr(Tile.of(1.0), "sums")


def unknown_keyword(x, out):
    out = ntl.sum(x, dim=0)  # noqa: F841


def missing_argument(x, out):
    out = x + ntl.zeros(x.shape)  # noqa: F841


def not_the_language(x, out):
    ntl = x
    out = ntl.exp(x)  # noqa: F841


@pytest.mark.parametrize(
    ("application", "words"),
    [
        (unknown_keyword, r"keyword argument 'dim'. `ntl.sum` takes \(input, axis=None"),
        (missing_argument, r"'dtype'. `ntl.zeros` takes \(shape, dtype\)"),
        (not_the_language, r"exp\(\) takes 1 positional .* `ntl.exp` takes \(x\)"),
    ],
)
def test_a_call_with_the_wrong_arguments_says_what_the_function_takes(application, words):
    with pytest.raises(CompilationError, match=words) as raised:
        run(application, floats(4), np.zeros(4, np.float32))
    assert raised.value.location.file == __file__


def test_an_attribute_that_is_like_a_private_one_alone_names_no_other():
    def application(x, out):
        out = x.isinstance()

    with pytest.raises(CompilationError, match=r"A tile has no 'isinstance'. It has what Triton"):
        run(application, floats(4), np.zeros(4, np.float32))


def test_the_program_and_the_line_stand_in_an_error():
    def application(x, out):
        if ntl.program_id(0) == 1:
            raise ValueError("told so")
        out = x

    with pytest.raises(ValueError, match="told so") as raised:
        run(application, floats(8), np.zeros(8, np.float32))
    last = raised.traceback[-1]
    assert str(last.path) == __file__
    assert "told so" in str(last.statement)
    if hasattr(raised.value, "__notes__"):
        assert raised.value.__notes__ == ["in program (1,) of (2,) of kernel 'kernel'"]


def test_an_error_of_the_package_shows_the_users_line():
    def application(x, out):
        out = ntl.arange(0, 8)

    with pytest.raises(ApplicationError, match=r"(?s)shape \(8,\).*`tensor`.*out = ntl.arange"):
        run(application, floats(8), np.zeros(8, np.float32))


def test_a_level_must_be_selected_before_it_is_assigned():
    def application(x):
        x = 1

    with pytest.raises(ApplicationError, match=r"(?s)Select one with `tensor\[\.\.\.\]`.*x = 1"):
        run(application, floats(8), middle=(2,))


def test_too_many_indices_are_refused():
    def application(x):
        x[0, 1] = 1

    with pytest.raises(ApplicationError, match=r"(?s)takes 1 indices.*got 2.*x\[0, 1\] = 1"):
        run(application, floats(8), middle=(2,))


def test_an_index_must_be_an_integer():
    def application(x):
        x["k"] = 1

    with pytest.raises(ArgumentError, match="must be an integer, got str 'k'"):
        run(application, floats(8), middle=(2,))


def test_a_tile_is_not_iterable():
    def application(x):
        for row in x:
            pass

    with pytest.raises(ApplicationError, match="is not iterable"):
        run(application, floats(8), middle=(2,))


def test_a_name_that_does_not_resolve_fails_only_where_it_is_read():
    """`make` refuses it, located, before a kernel gets here: here it is a branch not taken."""

    def application(x, out):
        if False:
            out = undefined_double(x)  # noqa: F821
        else:
            out = x

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)

    assert np.array_equal(out, floats(4))


def test_a_generator_is_refused():
    def application(x):
        yield x

    with pytest.raises(ApplicationError, match="cannot yield"):
        run(application, floats(4))


def test_a_pointer_that_leaves_its_tensor_is_an_error():
    def application(x, out):
        out = ntl.load(x.data_ptr() + x.offsets() + 1)

    with pytest.raises(OutOfBoundsError, match=r"(?s)leaves `tensor`: offset 8.*0 to 7.*ntl.load"):
        run(application, floats(8), np.zeros(8, np.float32))
