"""Kernels on CPU tensors from `make` to the result, against PyTorch and NumPy."""

from __future__ import annotations

import threading

import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor, block_size
from ninetoothed.errors import ArgumentError, DeviceError

torch = pytest.importorskip("torch", reason="needs PyTorch")

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.uint8)


def blocks(*tensors, size=block_size()):
    return tuple(tensor.tile((size,)) for tensor in tensors)


def add(x, y, out):
    out = x + y


def copy(x, out):
    out = x


def kernel(arrangement, application, *tensors):
    return ninetoothed.make(arrangement, application, tensors)


def ramp(*shape, dtype=torch.float32):
    count = torch.Size(shape).numel()
    return (torch.arange(count) % 100).reshape(shape).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [0, 1, 31, 1000, 4096])
def test_addition(dtype, size):
    x, y, out = ramp(size, dtype=dtype), ramp(size, dtype=dtype), torch.empty(size, dtype=dtype)
    kernel(blocks, add, Tensor(1), Tensor(1), Tensor(1))(x, y, out)
    assert torch.equal(out, x + y)


def test_views_are_read_and_written_in_place():
    base, target = ramp(20, 7), torch.zeros(7, 41)
    x, out = base[3:17, 1::2].T, target[::3, 5:33:2]

    def arrangement(x, out):
        return x.tile((2, 4)), out.tile((2, 4))

    kernel(arrangement, copy, Tensor(2), Tensor(2))(x, out)
    assert torch.equal(out, x)
    out.zero_()
    assert target.count_nonzero() == 0


def test_a_parameter_that_requires_a_gradient_is_taken():
    x, out = torch.nn.Parameter(ramp(5)), torch.empty(5)
    kernel(blocks, copy, Tensor(1), Tensor(1))(x, out)
    assert torch.equal(out, x.detach())


def test_a_padded_tensor_reads_its_other():
    def arrangement(x, out):
        return x.pad(((2, 3),)).tile((4,)), out.tile((4,))

    out = torch.empty(10)
    kernel(arrangement, copy, Tensor(1, other=-7.0), Tensor(1))(ramp(5), out)
    assert out.tolist() == [-7, -7, 0, 1, 2, 3, 4, -7, -7, -7]


def test_a_maximum_leaves_the_padding_out():
    def arrangement(x, out):
        return x.tile((1, 5)), out.tile((1, 1))

    def application(x, out):
        out = ntl.max(x, axis=1, keep_dims=True)

    x, out = -1 - ramp(3, 13), torch.empty(3, 3)
    kernel(arrangement, application, Tensor(2), Tensor(2))(x, out)
    assert torch.equal(out, x[:, ::5])


def test_scalars_by_value_and_from_tensors_of_no_dimension():
    def arrangement(x, scale, shift, out):
        return *blocks(x), scale, shift, *blocks(out)

    def application(x, scale, shift, out):
        out = x * scale + shift

    scaled = kernel(arrangement, application, Tensor(1), Tensor(0), Tensor(0), Tensor(1))
    x, out = ramp(10), torch.empty(10)
    scaled(x, 2.5, 3, out)
    assert torch.equal(out, x * 2.5 + 3)
    scaled(x, torch.tensor(1.5), torch.tensor(4), out)
    assert torch.equal(out, x * 1.5 + 4)


def test_constants_and_symbols():
    size = Symbol("SIZE", constexpr=True)

    def arrangement(x, is_doubled, out):
        return x.tile((size,)), is_doubled, out.tile((size,))

    def application(x, is_doubled, out):
        out = x * 2 if is_doubled else x + size

    chosen = kernel(
        arrangement, application, Tensor(1), Tensor(0, constexpr=True, value=True), Tensor(1)
    )
    x, out = ramp(10), torch.empty(10)
    chosen(x, out, SIZE=4)
    assert torch.equal(out, x * 2)
    chosen(x, False, out, SIZE=8)
    assert torch.equal(out, x + 8)


@pytest.mark.parametrize("shapes", [((5, 7), (7, 3)), ((70, 130), (130, 65)), ((1, 1), (1, 1))])
def test_a_product_over_middle_levels(shapes):
    from examples.mm import mm

    # Of whole numbers every sum is exact, in whatever order it is made.
    a, b = (torch.randint(-8, 9, shape).float() for shape in shapes)
    torch.testing.assert_close(mm(a, b), a @ b)


def test_windows_with_dilation_and_strides():
    def arrangement(x, out):
        windows = x.tile((3,), strides=(2,), dilation=(4,), floor_mode=True)
        return windows.ravel().tile((4, -1)), out.unsqueeze(1).tile((4, -1))

    def application(x, out):
        out = ntl.sum(x, axis=1, keep_dims=True)

    x = ramp(23)
    expected = x.unfold(0, 9, 2)[:, ::4].sum(-1)
    out = torch.empty_like(expected)
    kernel(arrangement, application, Tensor(1), Tensor(1))(x, out)
    assert torch.equal(out, expected)


def test_a_negative_step_reverses():
    def arrangement(x, out):
        return x[::-1].tile((4,)), out.tile((4,))

    x, out = ramp(10), torch.empty(10)
    kernel(arrangement, copy, Tensor(1, shape=(10,)), Tensor(1))(x, out)
    assert torch.equal(out, x.flip(0))


def jagged(*lengths, width=3):
    sequences = [ramp(length, width) + 1 for length in lengths]
    return torch.nested.nested_tensor(sequences, layout=torch.jagged)


def tiles(*tensors):
    return tuple(tensor.tile((1, 2, 4)) for tensor in tensors)


@pytest.mark.parametrize("lengths", [(3, 0, 5), (0, 0), (1,), (4, 4)])
def test_a_jagged_tensor_is_read_within_its_sequences(lengths):
    x = jagged(*lengths)
    out = torch.empty(len(lengths), max(lengths), 3)
    kernel(tiles, copy, Tensor(3, jagged_dim=1, other=-1.0), Tensor(3))(x, out)
    assert torch.equal(out, torch.nested.to_padded_tensor(x, -1.0))


def test_a_jagged_tensor_is_written_within_its_sequences():
    def application(x, out):
        out = x * 2

    x = jagged(3, 0, 5)
    out = torch.nested.nested_tensor_from_jagged(torch.zeros_like(x.values()), x.offsets())
    kernel(tiles, application, Tensor(3, jagged_dim=1), Tensor(3, jagged_dim=1))(x, out)
    assert torch.equal(out.values(), x.values() * 2)


def test_a_transposed_jagged_tensor():
    x = jagged(3, 0, 5).transpose(1, 2)
    out = torch.empty(3, 3, 5)

    def arrangement(x, out):
        return x.tile((1, 4, 2)), out.tile((1, 4, 2))

    kernel(arrangement, copy, Tensor(3, jagged_dim=2, other=0.0), Tensor(3))(x, out)
    assert torch.equal(out, torch.nested.to_padded_tensor(x.transpose(1, 2), 0.0).transpose(1, 2))


def test_elements_of_the_source_are_gathered_by_loaded_indices():
    def arrangement(table, index, out):
        return table.tile((-1, -1)).flatten(), index.tile((-1,)), out.tile((-1, -1)).flatten()

    def application(table, index, out):
        out = table.source[index[:, None], ntl.arange(0, 4)[None, :]]

    table, index, out = ramp(6, 4), torch.tensor([5, 0, 3, 3]), torch.empty(4, 4)
    kernel(arrangement, application, Tensor(2), Tensor(1), Tensor(2))(table, index, out)
    assert torch.equal(out, table[index])


def test_an_empty_grid_runs_nothing():
    out = torch.empty(0)
    kernel(blocks, copy, Tensor(1), Tensor(1))(torch.empty(0), out)
    assert out.shape == (0,)


def test_a_kernel_called_with_other_sizes_is_planned_anew():
    doubled = kernel(blocks, copy, Tensor(1), Tensor(1))
    for size in (3, 2000, 3):
        x, out = ramp(size), torch.empty(size)
        doubled(x, out)
        assert torch.equal(out, x)


def test_what_is_no_element_type_here_is_refused():
    x = torch.zeros(3, dtype=torch.complex64)
    with pytest.raises(ArgumentError, match="complex64"):
        kernel(blocks, copy, Tensor(1), Tensor(1))(x, x)


def test_a_program_sees_its_number():
    def application(out):
        out = ntl.full(out.shape, 0, ntl.int32) + ntl.program_id(0) * 10 + ntl.num_programs(0)

    def arrangement(out):
        return (out.tile((1, 2)),)

    out = torch.empty(2, 4, dtype=torch.int32)
    kernel(arrangement, application, Tensor(2))(out)
    assert out.tolist() == [[4, 4, 14, 14], [24, 24, 34, 34]]


BLOCK_SIZE = block_size()


@ninetoothed.jit
def scaled(x: Tensor(1).tile((BLOCK_SIZE,)), out: Tensor(1).tile((BLOCK_SIZE,))):
    out = x * 2


def test_a_kernel_made_by_jit():

    x, out = ramp(100), torch.empty(100)
    scaled(x, out)
    assert torch.equal(out, x * 2)


def test_one_kernel_from_several_threads():
    shared = kernel(blocks, add, Tensor(1), Tensor(1), Tensor(1))
    failures = []

    def work(size):
        for _ in range(5):
            x, out = ramp(size), torch.empty(size)
            shared(x, x, out)
            if not torch.equal(out, x + x):
                failures.append(size)

    threads = [threading.Thread(target=work, args=(size,)) for size in (100, 1000, 3000, 5000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_tensor_without_elements_in_memory_is_refused():
    x = torch.empty(4, device="meta")
    with pytest.raises(DeviceError, match="`x`: A tensor on the meta device") as raised:
        kernel(blocks, copy, Tensor(1), Tensor(1))(x, x)
    assert raised.value.location.file == __file__


def test_a_parameter_that_was_not_initialised_is_refused():
    x = torch.nn.parameter.UninitializedParameter()
    with pytest.raises(ArgumentError, match="`x` has no memory.*uninitialized") as raised:
        kernel(blocks, copy, Tensor(1), Tensor(1))(x, torch.empty(4))
    assert raised.value.location.file == __file__


def test_a_tile_with_an_empty_subscript_is_itself():
    def application(x, out):
        out = x[()] * 2

    x, out = ramp(10), torch.empty(10)
    kernel(blocks, application, Tensor(1), Tensor(1))(x, out)
    assert torch.equal(out, x * 2)


@pytest.mark.parametrize("name", ["x", "out"])
def test_a_sparse_tensor_is_refused_by_name(name):
    tensors = {"x": ramp(4), "out": torch.empty(4)}
    tensors[name] = tensors[name].to_sparse()
    with pytest.raises(ArgumentError, match=rf"`{name}` is sparse.*`.to_dense\(\)`"):
        kernel(blocks, copy, Tensor(1), Tensor(1))(*tensors.values())
