"""Options of a configuration: what is tried where, and what a person fixed."""

import pytest

from ninetoothed.backends.triton.options import Options, choices
from ninetoothed.errors import NineToothedError
from tests.golden.kernels import TEN


def tried(name):
    return choices(TEN[name], None, {})


def test_the_plain_translation_is_tried_first():
    assert tried("mm")[0] == ()


def test_an_option_is_tried_where_it_applies():
    assert (("group", 1),) in tried("mm")
    assert tried("add") == [()]


def test_the_environment_fixes_an_option(monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "group=1")

    assert tried("mm") == [(("group", 1),)]
    assert tried("add") == [()]


@pytest.mark.parametrize("text", ["groups=1", "group", "group=on"])
def test_what_is_no_option_is_an_error(monkeypatch, text):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", text)

    with pytest.raises(NineToothedError, match="NINETOOTHED_OPTIONS.*group"):
        tried("mm")


def test_options_of_no_configuration_are_the_defaults():
    assert Options.of(None) == Options()
