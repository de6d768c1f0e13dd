"""What the functions of the language are called with is what Triton's take, and NumPy's."""

from __future__ import annotations

import functools
import inspect

import pytest

from ninetoothed.backends.numpy.language.implementations import FUNCTIONS
from ninetoothed.language import operations
from ninetoothed.language.signatures import signature_of

KINDS = inspect.Parameter

#: Called otherwise: a method alone; with what Triton's takes for its own use.
APART = {"item", "str_to_ty", "logical_and", "logical_or"}


def taken(function):
    """The parameters of a function, those of Triton's own use aside, and those that it cannot do without."""
    parameters = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if not parameter.name.startswith("_")
    ]
    names = tuple(f"{'*' * (p.kind is KINDS.VAR_POSITIONAL)}{p.name}" for p in parameters)
    any_number = KINDS.VAR_POSITIONAL
    needed = [p.name for p in parameters if p.default is KINDS.empty and p.kind is not any_number]
    return names, tuple(needed)


def in_triton(name):
    """A function of Triton's language; None where it has none."""
    language = pytest.importorskip("triton.language", reason="needs Triton")
    from triton.language.extra import libdevice

    home, _, rest = name.rpartition(".")
    owner = libdevice if home == "libdevice" else language
    found = functools.reduce(lambda at, part: getattr(at, part, None), name.split("."), language)
    found = getattr(owner, rest, None) if home == "libdevice" else found
    return None if found is None else inspect.unwrap(getattr(found, "fn", found))


def known(holds):
    return [name for name in operations.TABLE if name not in APART and holds(name)]


@pytest.mark.parametrize("name", known(signature_of))
def test_a_function_takes_what_tritons_does(name):
    found = in_triton(name)
    if found is None:
        pytest.skip("Triton has it as a method alone")
    signature = signature_of(name)
    assert (signature.names, signature.needed) == taken(found)


#: Any number, in NumPy: of a target's versions, of hints at a loop.
OF_ANY_NUMBER = {"range", "slice", "tuple"}


@pytest.mark.parametrize("name", known(lambda name: signature_of(name) and name in FUNCTIONS))
def test_a_function_of_numpy_takes_as_much(name):
    if name in OF_ANY_NUMBER or name.startswith("target_info."):
        pytest.skip("it takes any number of arguments")
    assert taken(FUNCTIONS[name])[0] == signature_of(name).names


def test_all_functions_are_told_of():
    without = {name for name in operations.TABLE if signature_of(name) is None}
    assert {operations.find(name).kind for name in without} <= {"type", "memory"}
