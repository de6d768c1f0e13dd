"""The kit itself: it passes on a right frontend and says what is wrong with each broken one."""

from __future__ import annotations

import pytest

from ninetoothed.frontends.base import guard_by
from ninetoothed.testing import FrontendConformance, failures
from tests.frontends import toy_framework as toy
from tests.frontends.broken_frontends import BROKEN, Broken
from tests.frontends.toy_conformance import ToyConformance


class _Registered:
    """Has the toy's frontend registered while its checks run."""

    @pytest.fixture(autouse=True)
    def registered(self):
        with toy.registered():
            yield


class TestToy(_Registered, ToyConformance):
    """The toy framework's own frontend is right."""


class TestToyWithoutViewsAndStreams(_Registered, ToyConformance):
    """A framework may have neither."""

    def transposed(self, tensor):
        return None

    def sliced(self, tensor, slices):
        return None

    def streams(self):
        return ()


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_the_kit_says_what_is_wrong_with_a_broken_frontend(broken: Broken):
    kit = type("Kit", (ToyConformance,), {})
    with toy.registered(**broken.changes()):
        found = failures(kit)
    message = found[broken.check]
    assert [word for word in broken.words if word not in message] == []


def test_a_frontend_that_is_right_has_no_failures():
    with toy.registered():
        assert failures(ToyConformance) == {}


def test_a_guard_that_is_right_has_no_failures():
    guard = guard_by(dict, "{x}.sizes", "{x}.steps", "{x}.kind", "{x}.place")
    with toy.registered(guard=guard):
        assert failures(ToyConformance) == {}


def test_nothing_is_launched_where_addresses_are_read_wrongly():
    kit = type("Kit", (ToyConformance,), {})
    with toy.registered(strides="{x}.steps"):
        assert "nothing was launched" in failures(kit)["test_the_kernel_add"]


def test_a_subclass_must_say_how_tensors_are_made():
    kit = type("Kit", (FrontendConformance,), {"frontend_name": "toy"})
    with toy.registered():
        assert "`from_numpy` must make a tensor" in failures(kit)["test_shape"]
