"""What kernels and operators store in place has a new history: no gradient is that of what was there before."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode

import ninetoothed
from ninetoothed import Tensor, like
from ninetoothed.errors import ArgumentError

NUMBERS = itertools.count()

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Derived(torch.Tensor):
    """Shown to the dispatcher by the operators."""


def elementwise(*tensors):
    return tuple(tensor.tile((16,)) for tensor in tensors)


def doubled(x):
    x *= 2


def added(x, y):
    y += x  # noqa: F841


def both(x, y, z):
    z = x + y  # noqa: F841
    y = y * 2  # noqa: F841


def plain(application):
    count = application.__code__.co_argcount
    return ninetoothed.make(elementwise, application, tuple(Tensor(1) for _ in range(count)))


def made(application, **outputs):
    name = f"in_place::{application.__name__}_{next(NUMBERS)}"
    return ninetoothed.op(name, plain(application), outputs)


def ones(*shape):
    return torch.ones(shape or (5,), requires_grad=True)


WAYS = {
    "kernel": (plain, "a kernel called plainly has stored to"),
    "operator": (made, "changes tensors in place, so it has no `backward`"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "change",
    [
        lambda change, h: change(h[0]),
        lambda change, h: [change(h[1]) for _ in range(3)],
        lambda change, h: change(h.view(-1)),
        lambda change, h: change(h.view(-1)[2:]),
        lambda change, h: change(h.T[0]),
        lambda change, h: change(h.as_subclass(Derived)[0]),
    ],
    ids=["row", "in a chain", "view", "part", "column", "subclass"],
)
def test_no_gradient_passes_what_was_stored(way, change):
    make, words = WAYS[way]
    x = ones(2, 5)
    h = x * 2
    change(make(doubled), h)

    assert h.sum() != 20
    with pytest.raises(ArgumentError, match=words):
        (h * h).sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("way", WAYS)
def test_each_call_ends_a_history(way):
    """Whatever way a call takes: the first, a known one, one with another length."""
    make, words = WAYS[way]
    double = make(doubled)
    for size in (5, 5, 5, 7, 5):
        h = ones(size) * 2
        double(h)
        with pytest.raises(ArgumentError, match=words) as raised:
            h.sum().backward()
        assert raised.value.location.file == __file__
        with torch.no_grad():
            double(h)


@pytest.mark.parametrize("way", WAYS)
def test_other_gradients_stay(way):
    x = ones()
    h, g = x * 2, x * 3
    WAYS[way][0](doubled)(h)
    g.sum().backward()

    assert x.grad.tolist() == [3] * 5
    assert h.tolist() == [4] * 5


@pytest.mark.parametrize("way", WAYS)
def test_what_autograd_lets_nobody_store_to_is_left_as_it_is(way):
    double = WAYS[way][0](doubled)
    h = ones(2, 5) * 2
    with pytest.raises(ArgumentError, match="does not allow: .*multiple views.*Store to a copy"):
        double(h.unbind(0)[0])
    leaf = ones()
    with pytest.raises(ArgumentError, match="`x` is stored to, and is a leaf that requires grad"):
        double(leaf)
    with torch.no_grad():
        double(leaf)

    assert h.tolist() == [[2] * 5] * 2
    assert leaf.tolist() == [2] * 5


def test_a_kept_value_is_known_to_have_changed():
    for make, _ in WAYS.values():
        h = ones() * 2
        loss = (h * h).sum()
        make(doubled)(h)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_what_is_changed_depends_on_what_it_is_changed_by():
    x, y = ones(), torch.zeros(5)
    made(added)(x, y)

    assert y.tolist() == [1] * 5
    with pytest.raises(ArgumentError, match="changes tensors in place"):
        (y.sum() + x.sum()).backward()


def test_what_is_made_beside_depends_on_it_too():
    x, y = ones(), torch.ones(5)
    z = made(both, z=like("x"))(x, y)

    assert (z.tolist(), y.tolist()) == ([2] * 5, [2] * 5)
    for each in (y, z):
        with pytest.raises(ArgumentError, match="changes tensors in place"):
            each.sum().backward()


def changing(operator):
    def function(x):
        h = x * 2
        operator(h)
        return (h * h).sum()

    return function


def counted(function, x):
    with FlopCounterMode(display=False):
        return function(x)


@pytest.mark.parametrize(
    "call",
    [
        lambda f: torch.compile(f, backend="eager")(ones()).backward(),
        lambda f: torch.compile(f, backend="aot_eager")(ones()).backward(),
        lambda f: counted(f, ones()).backward(),
        lambda f: f(ones().as_subclass(Derived)).backward(),
        lambda f: torch.vmap(f)(ones(2, 5)),
        lambda f: torch.compile(torch.vmap(f), backend="eager", fullgraph=True)(ones(2, 5)),
        lambda f: torch.func.grad(f)(ones()),
        lambda f: torch.compile(torch.func.grad(f), backend="eager", fullgraph=True)(ones()),
        lambda f: torch.func.jvp(f, (ones(),), (ones(),)),
        lambda f: torch.func.jvp(f, (ones().as_subclass(Derived),), (ones(),)),
        lambda f: torch.func.functionalize(f)(ones()),
        lambda f: make_fx(torch.func.functionalize(f))(torch.ones(5)),
    ],
    ids=(
        "compiled|aot|mode|subclass|vmap|compiled vmap|grad|compiled grad|jvp|subclass jvp|"
        "functionalize|make_fx"
    ).split("|"),
)
def test_every_way_to_a_gradient_says_so(call):
    with pytest.raises(Exception, match="changes\ntensors|changes tensors in place"):
        call(changing(made(doubled)))


def test_without_gradients_it_compiles_and_is_exported():
    double = made(doubled)

    class Module(torch.nn.Module):
        def forward(self, x):
            with torch.no_grad():
                h = x * 1
                double(h)
            return h

    compiled = torch.compile(Module(), fullgraph=True, backend="aot_eager")
    exported = torch.export.export(Module(), (torch.ones(5),)).module()

    assert compiled(ones()).tolist() == exported(torch.ones(5)).tolist() == [2] * 5
