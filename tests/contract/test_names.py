"""LANGUAGE.md, "Names"."""

from __future__ import annotations

import inspect

import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor


@pytest.mark.parametrize("name", "Tensor Symbol block_size make jit build op eval subs".split())
def test_import_ninetoothed_gives(name):
    assert callable(getattr(ninetoothed, name))
    assert name in dir(ninetoothed)


@pytest.mark.parametrize(
    "name",
    "bfloat16 float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
    # "ours adds"
    + "bool float8_e4m3 float8_e5m2".split(),
)
def test_the_element_types(name):
    dtype = getattr(ninetoothed, name)

    assert str(dtype) == name
    assert Tensor(1, dtype=dtype).dtype is dtype


def test_a_star_import_leaves_pythons_bool_alone():
    names = {}
    exec("from ninetoothed import *", names)

    assert "bool" not in names
    assert names["Tensor"] is Tensor
    assert names["float16"] is ninetoothed.float16


def test_a_misspelt_name_is_an_error_with_the_near_one():
    with pytest.raises(AttributeError, match="Tenser.*Did you mean 'Tensor'"):
        ninetoothed.Tenser


def test_ninetoothed_language_is_used_as_ntl():
    """`ninetoothed.language` is used as `ntl`."""
    assert ninetoothed.language is ntl
    assert ntl.float16 is ninetoothed.float16


def test_simulate_arrangement_exists():
    """`ninetoothed.debugging.simulate_arrangement` exists."""
    (source,), (target,) = ninetoothed.debugging.simulate_arrangement(
        lambda x: x.tile((2,)), (Tensor(shape=(4,)),)
    )

    assert source.tolist() == [0, 1, 2, 3]
    assert target.tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (Symbol.__new__, "cls expr constexpr meta lower_bound upper_bound power_of_two"),
        (ninetoothed.block_size, "lower_bound upper_bound"),
        (
            Tensor.__init__,
            "self ndim shape dtype jagged_dim other shape_options constexpr value name",
        ),
        (Tensor.tile, "self tile_shape strides dilation floor_mode"),
        (Tensor.expand, "self shape"),
        (Tensor.squeeze, "self dim"),
        (Tensor.unsqueeze, "self dim"),
        (Tensor.permute, "self dims"),
        (Tensor.flatten, "self start_dim end_dim"),
        (Tensor.ravel, "self"),
        (Tensor.pad, "self pad"),
        (Tensor.eval, "self subs"),
        (Tensor.subs, "self subs"),
        (ninetoothed.eval, "tensor subs"),
        (ninetoothed.subs, "tensor subs"),
        (
            ninetoothed.make,
            "arrangement application tensors caller kernel_name output_dir num_warps num_stages "
            "max_num_configs "
            # "ours adds"
            "specialize",
        ),
        (
            ninetoothed.build,
            "premake configs meta_parameters caller kernel_name output_dir lazy "
            # "ours adds"
            "targets is_portable progress tuned device torch_library libraries",
        ),
        (ninetoothed.debugging.simulate_arrangement, "arrangement tensors subs"),
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)
def test_signatures(function, parameters):
    assert list(inspect.signature(function).parameters) == parameters.split()


def test_defaults():
    """`caller=None, kernel_name=None, output_dir=None, …, lazy=False`"""
    for function in (ninetoothed.make, ninetoothed.build, ninetoothed.block_size):
        parameters = inspect.signature(function).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        assert defaults.pop("lazy", False) is False and defaults.pop("is_portable", False) is False
        assert defaults.pop("specialize", "classes") == "classes"
        assert defaults.pop("libraries", ()) == ()
        assert {*defaults.values()} == {None}


def test_visualization_draws_a_tensor_and_an_arrangement():
    from ninetoothed.visualization import visualize, visualize_arrangement

    assert ninetoothed.visualization.visualize is visualize
    assert list(inspect.signature(visualize).parameters) == ["tensor", "color", "save_path"]
    assert list(inspect.signature(visualize_arrangement).parameters)[:2] == [
        "arrangement",
        "tensors",
    ]
