"""The contract's tests with the emitted source in Triton's interpreter in the NumPy backend's place.

``python -m tests.contract.on_interpreter [specialised] [pytest's arguments]``. A program of its own,
since ``TRITON_INTERPRET`` must be set before Triton is imported.
"""

from __future__ import annotations

import sys

from tests.examples.interpreter import Interpreter  # isort: skip; before Triton is imported

import pytest

from ninetoothed import plugins

#: Tests of names, and of this program: no kernel runs there.
IGNORED = ("test_names.py", "test_on_interpreter.py", "test_sentences.py")

#: What the interpreter cannot do, by a part of the test's name.
IMPOSSIBLE = {
    "test_libdevice": "it has no libdevice",
    "function_maps": "it has no `map_elementwise`",
    "bfloat16": "its arithmetic on bfloat16 is that of the bits",
}


def main(arguments: list[str]) -> int:
    """Pytest's exit status."""
    is_specialised = "specialised" in arguments
    backend = Interpreter(is_specialised)
    plugins.backend_for = lambda kind: backend
    chosen = " and ".join(f"not {name}" for name in IMPOSSIBLE)
    return pytest.main(
        [
            "tests/contract",
            *(f"--ignore=tests/contract/{name}" for name in IGNORED),
            *("-k", chosen, "-q", "-p", "no:cacheprovider", "--tb=short"),
            *(argument for argument in arguments if argument != "specialised"),
        ]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
