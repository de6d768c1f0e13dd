"""What PyTorch's tensors are beside their elements: gradients, versions, transformations, tracers."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest

import ninetoothed
from ninetoothed import Tensor
from ninetoothed.errors import ArgumentError
from ninetoothed.frontends import torch_kinds

torch = pytest.importorskip("torch", reason="needs PyTorch")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def doubled(x, y):
    y = x * 2  # noqa: F841


def make():
    def arrangement(x, y):
        return x.tile((4,)), y.tile((4,))

    return ninetoothed.make(arrangement, doubled, (Tensor(1), Tensor(1)))


def ones():
    return torch.ones(6)


def shrunk():
    tensor = ones()
    tensor.untyped_storage().resize_(8)
    return tensor


def inferred():
    with torch.inference_mode():
        return ones()


def leaf():
    return ones().requires_grad_()


@pytest.mark.parametrize("transformation", ["vmap", "grad", "functionalize", "jvp"])
def test_what_a_transformation_hands_around_is_refused(transformation):
    kernel = make()

    def function(x):
        kernel(x, torch.zeros(6))
        return x.sum()

    calls = {
        "vmap": lambda: torch.vmap(function)(torch.ones(3, 6)),
        "grad": lambda: torch.func.grad(function)(ones()),
        "functionalize": lambda: torch.func.functionalize(function)(ones()),
        "jvp": lambda: torch.func.jvp(function, (ones(),), (ones(),)),
    }
    for _ in range(2):
        kernel(ones(), torch.zeros(6))
        with pytest.raises(ArgumentError, match="`x` is a (stand-in|functional tensor)"):
            calls[transformation]()


def test_a_traced_call_is_refused():
    kernel = make()

    def function(x):
        kernel(x, torch.zeros(6))
        return x + 1

    for _ in range(2):
        kernel(ones(), torch.zeros(6))
        kernel(ones(), torch.zeros(6))
        with pytest.raises(ArgumentError, match="`x` is traced by torch.jit.trace.*ninetoothed.op"):
            torch.jit.trace(function, (ones(),), check_trace=False)


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_a_call_that_make_fx_traces_is_refused(mode):
    from torch.fx.experimental.proxy_tensor import make_fx

    kernel = make()

    def function(x):
        kernel(x, torch.zeros(6))
        return x + 1

    for _ in range(2):
        with pytest.raises(ArgumentError, match="`x` is (traced by make_fx|a FakeTensor)"):
            make_fx(function, tracing_mode=mode)(ones())


@pytest.mark.parametrize("calls_before", [0, 1, 2])
def test_a_tangent_is_refused(calls_before):
    from torch.autograd import forward_ad

    kernel, y = make(), torch.zeros(6)
    for _ in range(calls_before):
        kernel(ones(), y)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(ones(), ones())
        for _ in range(2):
            kernel(ones(), y)
            with pytest.raises(ArgumentError, match="`x` has a tangent.*unpack_dual"):
                kernel(dual, y)
    kernel(ones(), y)
    assert y.tolist() == [2.0] * 6


@pytest.mark.parametrize("calls_before", [0, 1, 2, 3, 8])
def test_a_trace_after_calls_of_one_kind_is_refused(calls_before):
    from torch.fx.experimental.proxy_tensor import make_fx

    kernel = make()

    def function(x):
        y = torch.zeros_like(x)
        kernel(x, y)
        return y

    for _ in range(calls_before):
        function(ones())
    with pytest.raises(ArgumentError, match="`x` is traced by make_fx.*ninetoothed.op"):
        make_fx(function)(ones())


def test_other_modes_do_not_hinder():
    from torch.utils.flop_counter import FlopCounterMode

    kernel, y = make(), torch.zeros(6)
    for _ in range(2):
        with FlopCounterMode(display=False):
            kernel(ones(), y)
    assert y.tolist() == [2.0] * 6


def test_a_leaf_is_stored_to_without_gradients_and_refused_with_them():
    kernel = make()
    for _ in range(3):
        parameter = torch.nn.Parameter(torch.zeros(6))
        with torch.no_grad():
            kernel(ones(), parameter)
        assert parameter.tolist() == [2.0] * 6
        with pytest.raises(ArgumentError, match="`y` is stored to, and is a leaf"):
            kernel(ones(), parameter)


def test_what_is_no_leaf_may_be_stored_to_and_a_leaf_then_still_not():
    kernel = make()
    for _ in range(3):
        kernel(ones(), leaf() * 1)
        with pytest.raises(ArgumentError, match="`y` is stored to, and is a leaf"):
            kernel(ones(), leaf())


def test_an_inference_tensor_is_read_and_stored_to():
    """Autograd never keeps one, so that nothing is told of a store."""
    kernel, y = make(), inferred()
    for _ in range(2):
        kernel(inferred(), y)
        with torch.inference_mode():
            kernel(leaf(), y)
        kernel(leaf(), y)
    assert y.tolist() == [2.0] * 6


@pytest.mark.parametrize("times", [1, 2, 3])
def test_what_inference_mode_stores_to_any_other_tensor_is_told(times):
    """To PyTorch's comparison such a tensor there is as one that was made there is outside."""
    kernel = make()
    for _ in range(times):
        kernel(inferred(), inferred())
    x, y, weight = ones(), ones(), torch.ones(6, requires_grad=True)
    product = (weight * y).sum()
    for version in range(1, 4):
        with torch.inference_mode():
            kernel(x, y)
        assert y._version == version
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_storage_that_is_too_small_is_refused_where_the_key_is_new():
    with pytest.raises(ArgumentError, match="`x` of shape.*needs 24 bytes.*has 8"):
        make()(shrunk(), torch.zeros(6))


def test_an_input_that_requires_grad_warns_once():
    kernel, x = make(), leaf()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with torch.no_grad():
            kernel(x, torch.zeros(6))
        assert not told
        for size in (6, 6, 7):
            kernel(torch.ones(size, requires_grad=True), torch.zeros(size))
    assert [str(each.message)[:30] for each in told] == ["kernel `doubled`: `x` requires"]
    assert told[0].filename == __file__


def test_a_store_beside_gradients_raises_the_version_each_time():
    kernel, x, y = make(), leaf(), torch.zeros(6)
    for _ in range(4):
        before = y._version
        with torch.no_grad():
            kernel(x, y)
        assert y._version == before + 1
        kernel(x, y)
        assert y._version == before + 2
    assert x._version == 0


def test_what_autograd_kept_and_a_kernel_changed_is_an_error_of_autograds():
    kernel, weight = make(), leaf()
    kept = weight * 1
    loss = (kept * kept).sum()
    kernel(ones(), kept)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def _store_without_grad(kernel, tensor):
    with torch.no_grad():
        kernel(torch.rand(4), tensor)


@pytest.mark.parametrize(
    "store",
    [
        _store_without_grad,
        lambda kernel, tensor: kernel(torch.rand(4), tensor.detach()),
        lambda kernel, tensor: kernel(torch.rand(4), tensor.detach()[1:]),
    ],
)
@pytest.mark.parametrize("calls_before", [0, 1, 3])
def test_what_autograd_keeps_is_known_to_have_changed(store, calls_before):
    kernel = make()
    for _ in range(calls_before):
        store(kernel, torch.rand(4))
    x = torch.rand(4, requires_grad=True)
    y = x * x
    z = (y * y).sum()

    store(kernel, y)

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@pytest.mark.parametrize("calls_before", [0, 1, 3])
def test_a_weight_without_gradient_that_autograd_keeps_is_known_to_have_changed(calls_before):
    kernel, weight = make(), torch.rand(4)
    for _ in range(calls_before):
        kernel(torch.rand(4), weight)
    x = torch.rand(4, requires_grad=True)
    z = (x * weight).sum()

    kernel(torch.rand(4), weight)

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_each_call_raises_the_version_by_one_whatever_way_it_takes():
    kernel, out, other = make(), torch.zeros(4), torch.zeros(5)
    for number in range(1, 6):
        before = out._version
        kernel(torch.rand(4), out)
        assert out._version == before + 1, number
        # Another plan in between, so that the key is looked up too.
        kernel(torch.rand(5), other)
        if number > 2:
            kernel(torch.rand(5).double().float(), other)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_make_fx_is_refused_after_calls_of_the_same_kind(mode):
    from torch.fx.experimental.proxy_tensor import make_fx

    kernel, kept = make(), torch.empty(6)

    def function(x):
        kernel(ones(), kept)
        out = torch.empty_like(x)
        kernel(x, out)
        return out

    function(ones())
    with pytest.raises(ArgumentError, match="traced by make_fx|FakeTensor"):
        make_fx(function, tracing_mode=mode)(ones())
    function(ones())
    torch.testing.assert_close(kept, ones() * 2)


def test_recording_of_gradients_decides_although_the_last_call_was_alike():
    kernel, x, out = make(), leaf(), torch.empty(6)
    weight = leaf()
    for _ in range(3):
        kernel(x, out)
        with torch.no_grad():
            kernel(x, weight)
            kernel(x, weight)
        with pytest.raises(ArgumentError, match="`y` is stored to, and is a leaf"):
            kernel(x, weight)
        kernel(x, out)


def test_tensors_of_two_lengths_in_turn_are_asked_once_what_they_are_where_nothing_is_recorded(
    monkeypatch,
):
    kernel, asked, whole = make(), [], torch_kinds._state
    calls = [(torch.ones(size).requires_grad_(), torch.empty(size)) for size in (6, 7)]
    monkeypatch.setattr(
        torch_kinds, "_state", lambda tensors: asked.append(tensors) or whole(tensors)
    )
    with torch.no_grad():
        for _ in range(3):
            for x, out in calls:
                kernel(x, out)
                torch.testing.assert_close(out, x * 2)
    assert len(asked) == 1


def test_recording_decides_although_calls_of_two_lengths_were_alike():
    kernel = make()
    calls = [(torch.ones(size), torch.ones(size).requires_grad_()) for size in (6, 7)]
    with torch.no_grad():
        for x, weight in [*calls, *calls]:
            kernel(x, weight)
    for x, weight in calls:
        with pytest.raises(ArgumentError, match="`y` is stored to, and is a leaf"):
            kernel(x, weight)


def test_what_kinds_of_tensors_are_is_asked_once_for_each_kind(monkeypatch):
    """In place or not, of two element types, in turns and of ever other lengths."""
    kernel, asked, whole = make(), [], torch_kinds._state
    monkeypatch.setattr(
        torch_kinds, "_state", lambda tensors: asked.append(tensors) or whole(tensors)
    )
    for size in (3, 4, 5):
        for dtype in (torch.float32, torch.float64):
            x, out = torch.ones(size, dtype=dtype), torch.empty(size, dtype=dtype)
            kernel(x, out)
            kernel(x, x)
            assert torch.equal(x, out)
    # Of a new key the slow path asks too.
    assert len(asked) <= 4 * 2


def test_a_module_that_holds_an_operator_can_be_copied():
    operator = ninetoothed.op("kinds::doubled", make(), {"y": ninetoothed.like("x")})
    module = torch.nn.Linear(2, 2)
    module.operator = operator
    for copied in (copy.deepcopy(module), copy.copy(module)):
        assert copied.operator is operator
    with pytest.raises(
        ArgumentError, match="operator 'kinds::doubled' cannot be pickled.*Assign it"
    ):
        pickle.dumps(operator)
