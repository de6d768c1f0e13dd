"""LANGUAGE.md, "make and jit"."""

from __future__ import annotations

import copy
import functools
from pathlib import Path

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor, block_size
from ninetoothed.errors import ApplicationError, ArgumentError, ArrangementError, PluginError
from tests.contract.kernels import B, arange, empty, tiles, vectors
from tests.tuning.machines import H200


def add(x, y, out):
    out = x + y  # noqa: F841


def test_calls_the_arrangement_once():
    """calls `arrangement(*tensors)` once"""
    calls = []

    def arrangement(*tensors):
        calls.append(tensors)
        return tiles(*tensors)

    tensors = vectors(3)
    kernel = ninetoothed.make(arrangement, add, tensors)
    kernel(arange(5), arange(5), empty(5), B=4)
    kernel(arange(7), arange(7), empty(7), B=2)

    assert calls == [tensors]


def test_members_that_are_no_tensors_are_handed_through():
    """members of `tensors` that are not `Tensor`s are handed through as they are"""
    config = {"size": 2}

    def arrangement(x, y, config, doubles):
        assert config["size"] == 2
        return x.tile((config["size"],)), y.tile((config["size"],)), doubles

    def application(x, y, doubles):
        y = x * 2 if doubles else x  # noqa: F841

    for doubles in (True, False):
        kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1), config, doubles))
        y = empty(5)
        kernel(arange(5), y)
        assert torch.equal(y, arange(5) * (2 if doubles else 1))


def test_one_tensor_may_come_back():
    """one tensor or a tuple may come back"""

    def application(x):
        x = x + 1  # noqa: F841

    x = arange(5)
    ninetoothed.make(lambda x: x.tile((4,)), application, (Tensor(1),))(x)

    assert torch.equal(x, arange(5) + 1)


def test_pairs_the_result_with_the_parameters_of_application():
    """pairs the result with the parameters of `application`"""

    def arrangement(first, second):
        return second.tile((4,)), first.tile((4,))

    def application(destination, origin):
        destination = origin  # noqa: F841

    x, y = arange(5), empty(5)
    ninetoothed.make(arrangement, application, vectors(2))(y, x)

    assert torch.equal(y, x)


@pytest.mark.parametrize("fixed", [4, (2, 4), [1, 8]], ids=str)
def test_num_warps_and_num_stages_take_an_int_or_several(fixed):
    """`num_warps` and `num_stages` take an int or several to choose from."""
    kernel = ninetoothed.make(
        tiles, add, vectors(3), num_warps=fixed, num_stages=fixed, max_num_configs=3
    )
    out = empty(5)
    kernel(arange(5), arange(5), out, B=4)

    assert torch.equal(out, arange(5) * 2)


def test_what_the_tuner_may_choose_from():
    """`num_warps` and `num_stages` …, `max_num_configs`"""
    pytest.importorskip("triton")
    from ninetoothed.backends.triton.planning.space import space_of

    def chosen(**options):
        def arrangement(*tensors, BLOCK=block_size(32, 128)):
            return tuple(tensor.tile((BLOCK,)) for tensor in tensors)

        kernel = ninetoothed.make(arrangement, add, vectors(3), **options)
        call = kernel.call_of(arange(99), arange(99), empty(99))
        return space_of(kernel.definition, call, H200).ranked

    fixed = chosen(num_warps=2, num_stages=1)
    assert {(config.num_warps, config.num_stages) for config in fixed} == {(2, 1)}
    assert {config["BLOCK"] for config in fixed} == {32, 64, 128}
    several = chosen(num_warps=(4, 8), num_stages=(1, 2))
    assert {config.num_warps for config in several} == {4, 8}
    assert {config.num_stages for config in several} == {1, 2}
    assert len(chosen(num_warps=(4, 8), num_stages=(1, 2), max_num_configs=3)) == 3


@pytest.mark.parametrize("option", ["num_warps", "num_stages"])
@pytest.mark.parametrize("value", [0, -1, 2.5, "4", (), (4, "8")], ids=str)
def test_num_warps_and_num_stages_take_nothing_else(option, value):
    with pytest.raises(ArgumentError, match=option):
        ninetoothed.make(tiles, add, vectors(3), **{option: value})


def test_caller_names_a_frontend():
    """`caller` names a frontend (`"torch"`)"""
    out = empty(5)
    ninetoothed.make(tiles, add, vectors(3), caller="torch")(arange(5), arange(5), out, B=4)

    assert torch.equal(out, arange(5) * 2)
    with pytest.raises(PluginError, match="torhc.*torch"):
        ninetoothed.make(tiles, add, vectors(3), caller="torhc")


def test_none_finds_the_frontend_from_the_arguments():
    """None, the default, finds the frontend from the arguments."""
    kernel = ninetoothed.make(tiles, add, vectors(3), caller=None)
    out = empty(5)
    kernel(arange(5), arange(5), out, B=4)

    assert torch.equal(out, arange(5) * 2)
    with pytest.raises(ArgumentError, match="`x` must be a tensor, not"):
        ninetoothed.make(tiles, add, vectors(3))(3, arange(5), out, B=4)


x_tiles, y_tiles, out_tiles = (tensor.tile((4,)) for tensor in vectors(3))


def test_jit_does_the_same_for_annotated_parameters():
    """`@jit` does the same for a function whose parameters are annotated with arranged tensors."""
    x, y, out = (tensor.tile((B,)) for tensor in vectors(3))

    # The annotations must be the tensors themselves, whatever this module imports from __future__.
    def plus(x, y, out):
        out = x + y  # noqa: F841

    plus.__annotations__ = {"x": x, "y": y, "out": out}
    kernel, result = ninetoothed.jit(plus), empty(5)
    assert kernel(arange(5), arange(5), result, B=4) is None

    assert torch.equal(result, arange(5) * 2)
    assert kernel.name == "plus"


def test_jit_reads_annotations_that_are_strings_and_takes_makes_options():
    @ninetoothed.jit(num_warps=2, kernel_name="sum_of_two")
    def plus(x: x_tiles, y: y_tiles, out: out_tiles):
        out = x + y  # noqa: F841

    result = empty(5)
    plus(arange(5), arange(5), result)

    assert torch.equal(result, arange(5) * 2)
    assert plus.name == "sum_of_two"


def test_jit_says_that_annotations_that_are_strings_know_no_closure():
    def define(size):
        @ninetoothed.jit
        def plus(x: Tensor(1).tile((size,)), out: Tensor(1).tile((size,))):
            out = x + 1  # noqa: F841

    with pytest.raises(ArrangementError, match="annotations of `plus` are text.*'size'") as raised:
        define(4)
    assert raised.value.location.file == __file__


def test_arguments_come_in_the_order_of_the_arranged_tensors():
    """in the order of the arranged tensors that survive in `application`'s parameters, then constexpr
    symbols by keyword or position"""

    def arrangement(shape_only, x, out):
        return x.tile((B,)), out.tile((B,))

    def application(x, out):
        out = x  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, vectors(3))
    for given, named in (((4,), {}), ((), {"B": 4})):
        out = empty(5)
        kernel(arange(5), out, *given, **named)
        assert torch.equal(out, arange(5))


def test_tensors_may_be_given_by_the_applications_names():
    out = empty(5)
    ninetoothed.make(tiles, add, vectors(3))(out=out, y=arange(5), x=arange(5), B=4)

    assert torch.equal(out, arange(5) * 2)


def test_several_constexpr_symbols_are_given_in_the_order_of_the_arrangements_parameters():
    rows, columns = (Symbol(name, constexpr=True) for name in ("ROWS", "COLUMNS"))

    def arrangement(x, y, ROWS=rows, COLUMNS=columns):
        return x.tile((ROWS, COLUMNS)), y.tile((ROWS, COLUMNS))

    def application(x, y):
        y = x * y.shape[0] + y.shape[1]  # noqa: F841

    y = empty(3, 5)
    ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))(arange(3, 5), y, 2, 8)

    assert torch.equal(y, arange(3, 5) * 2 + 8)


@pytest.mark.parametrize(
    ("arguments", "keywords", "words"),
    [
        ((1, 1), {"B": 4}, "missing: out"),
        ((1, 1, 1), {}, "missing: B"),
        ((1, 1, 1, 4, 5), {}, "5 positional arguments"),
        ((1, 1, 1), {"B": 4, "C": 5}, "'C' is not one of them"),
        ((1, 1, 1), {"outt": 4}, "'outt' is not one of them.*Did you mean 'out'"),
        ((1, 1, 1), {"x": 1, "B": 4}, "'x' was given twice"),
        ((1, 1, 1), {"B": 2.5}, "`B` is an integer constant"),
    ],
)
def test_wrong_counts_and_names_are_errors_that_list_the_arguments(arguments, keywords, words):
    kernel = ninetoothed.make(tiles, add, vectors(3), kernel_name="add")
    tensors = [arange(5) if argument == 1 else argument for argument in arguments]
    given = {name: arange(5) if value == 1 else value for name, value in keywords.items()}

    with pytest.raises(ArgumentError, match=words) as caught:
        kernel(*tensors, **given)
    assert "kernel `add`" in caught.value.message


def test_returns_none_and_writes_in_place():
    """It returns None and writes in place."""
    out = empty(5)
    before = out.data_ptr()

    assert ninetoothed.make(tiles, add, vectors(3))(arange(5), arange(5), out, B=4) is None
    assert out.data_ptr() == before
    assert torch.equal(out, arange(5) * 2)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)], ids=str)
def test_an_empty_grid_launches_nothing(shape):
    """An empty grid launches nothing."""

    def arrangement(x, y):
        return x.tile((2, 2)), y.tile((2, 2))

    kernel = ninetoothed.make(
        arrangement, copied, (Tensor(2), Tensor(2)), kernel_name="empty_or_not"
    )
    kernel(empty(*shape), empty(*shape))
    x, y = arange(3, 3), empty(3, 3)
    kernel(x, y)

    assert torch.equal(x, y)


def copied(x, y):
    y = x  # noqa: F841


def test_exposes_the_generated_source():
    """It exposes the generated source (`kernel.source`, `kernel.source_path`)."""
    kernel = ninetoothed.make(tiles, add, vectors(3), kernel_name="add_vectors")

    assert "def add_vectors(" in kernel.source
    assert "@triton.jit" in kernel.source
    compile(kernel.source, "add_vectors", "exec")
    path = Path(kernel.source_path)
    assert path.read_text(encoding="utf-8") == kernel.source


def test_output_dir_is_where_the_source_is_written(tmp_path):
    kernel = ninetoothed.make(
        tiles, add, vectors(3), kernel_name="added", output_dir=tmp_path / "a"
    )

    assert Path(kernel.source_path) == tmp_path / "a" / "added.py"
    assert Path(kernel.source_path).read_text(encoding="utf-8") == kernel.source


def test_kernel_name_names_the_kernel():
    kernel = ninetoothed.make(tiles, add, vectors(3), kernel_name="vector_sum")

    assert kernel.name == "vector_sum"
    with pytest.raises(ArgumentError, match="identifier.*'vector sum'"):
        ninetoothed.make(tiles, add, vectors(3), kernel_name="vector sum")


def test_a_partial_of_an_arrangement_is_an_arrangement():
    def arrangement(x, y, size):
        return x.tile((size,)), y.tile((size,))

    y = empty(5)
    ninetoothed.make(functools.partial(arrangement, size=2), copied, vectors(2))(arange(5), y)

    assert torch.equal(y, arange(5))


def scaled(x, y, scale, *, shift=0):
    y = x * scale + shift  # noqa: F841


@pytest.mark.parametrize(
    "application",
    [
        functools.partial(scaled, scale=2, shift=1),
        functools.partial(functools.partial(scaled, scale=3, shift=1), scale=2),
    ],
    ids=["once", "twice"],
)
def test_a_partial_of_an_application_is_an_application(application):
    y = empty(5)
    ninetoothed.make(tiles, application, vectors(2))(arange(5), y, B=4)

    assert torch.equal(y, arange(5) * 2 + 1)


@pytest.mark.parametrize(
    ("application", "words"),
    [
        (functools.partial(scaled, 1), r"'scaled' \(x, y, scale, shift\).*positional"),
        (functools.partial(scaled, y=1), "'scale' open"),
        (functools.partial(scaled, factor=1), "This one has factor"),
        (scaled.__get__(3), "got method"),
        (print, "got builtin_function_or_method"),
        (None, "got NoneType None"),
    ],
    ids=["positional", "in between", "unknown", "method", "builtin", "None"],
)
def test_what_is_no_application_is_an_error(application, words):
    with pytest.raises(ApplicationError, match=words) as caught:
        ninetoothed.make(tiles, application, vectors(2))

    assert caught.value.location.file == __file__


def test_an_arrangement_that_returns_nothing_is_an_error():
    def arrangement(x, y):
        x.tile((4,)), y.tile((4,))

    with pytest.raises(ArrangementError, match="returned None.*one for each parameter") as caught:
        ninetoothed.make(arrangement, copied, vectors(2))

    assert caught.value.location.line == arrangement.__code__.co_firstlineno


def test_an_arrangement_may_return_a_generator():
    y = empty(5)
    ninetoothed.make(lambda *t: (each.tile((4,)) for each in t), copied, vectors(2))(arange(5), y)

    assert torch.equal(y, arange(5))


def test_one_kernel_serves_many_shapes_strides_and_element_types():
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((2, 4)), y.tile((2, 4))), copied, (Tensor(2), Tensor(2))
    )
    for dtype in (torch.float32, torch.int64, torch.float16):
        for x in (
            arange(5, 7, dtype=dtype),
            arange(7, 5, dtype=dtype).T,
            arange(5, 14, dtype=dtype)[:, ::2],
        ):
            y = empty(5, 7, dtype=dtype)
            kernel(x, y)
            assert torch.equal(y, x)


def test_the_users_functions_are_not_changed():
    code, names = add.__code__, dict(vars(add))
    ninetoothed.make(tiles, add, vectors(3))

    assert add.__code__ is code
    assert vars(add) == names
    assert add(1, 2, 3) is None


def test_several_meta_symbols_may_be_tuned():
    def arrangement(x, y, ROWS=block_size(16, 32), COLUMNS=block_size(16, 32)):
        return x.tile((ROWS, COLUMNS)), y.tile((ROWS, COLUMNS))

    def application(x, y):
        y = ntl.exp(x)  # noqa: F841

    x, y = torch.rand(20, 50), empty(20, 50)
    ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))(x, y)

    torch.testing.assert_close(y, x.exp())


def test_tensors_that_are_no_tuple():
    with pytest.raises(ArrangementError, match=r"takes the tensors as a tuple.*\(tensor,\)"):
        ninetoothed.make(tiles, copied, Tensor(1))

    y = empty(5)
    ninetoothed.make(tiles, copied, (Tensor(1) for _ in range(2)))(arange(5), y, B=4)
    assert torch.equal(y, arange(5))


def test_a_type_is_no_arranged_tensor():
    def application(x: int, y: Tensor(1).tile((4,))):
        y = x + 1  # noqa: F841

    with pytest.raises(ArrangementError, match="`x` .* type int; @jit needs .*Tensor"):
        ninetoothed.jit(application)


def test_a_module_that_holds_a_kernel_can_be_copied():
    module = torch.nn.Linear(2, 2)
    module.kernel = ninetoothed.make(tiles, copied, vectors(2))

    assert copy.deepcopy(module).kernel is copy.copy(module).kernel is module.kernel


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_warps": 3}, "num_warps must be a power of two.*3"),
        ({"num_warps": (4, 6)}, "num_warps must be a power of two"),
        ({"max_num_configs": 0}, "max_num_configs must be a positive int, got 0"),
    ],
    ids=str,
)
def test_options_that_no_device_can_have(options, words):
    with pytest.raises(ArgumentError, match=words):
        ninetoothed.make(tiles, copied, vectors(2), **options)
