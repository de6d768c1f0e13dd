"""The error that a function meets when it is parsed."""

import linecache

import pytest

from ninetoothed.errors import ApplicationError
from tests.parsing.applications import program_of


def failure(application, kind=ApplicationError):
    """The error of an application, whose location is checked to be on the line marked ``HERE``."""
    with pytest.raises(ApplicationError) as caught:
        program_of(application)
    assert type(caught.value) is kind
    location = caught.value.location
    assert "# HERE" in linecache.getline(location.file, location.line)
    assert "^" in str(caught.value)
    return caught.value.message
