"""Tests run once with each option of the Triton backend fixed off, and once with each fixed on.

python -m tests.with_each_option [--options NAME=VALUE,NAME=VALUE] [ARGUMENTS OF PYTEST …]

Without paths, all tests are run that an option could break: with a CUDA device those on it, else those
that compile or run in Triton's interpreter. Prints a line for each value, and one for each test that
failed; ends with pytest's exit status. Many values take minutes: --options splits the run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from ninetoothed.backends.triton.planning.choices import defaults
from ninetoothed.backends.triton.runtime.device_api import runtime
from ninetoothed.errors import DeviceError

#: What options are fixed at that are not just on or off; one of the values is the plain translation.
VALUES = {
    "swizzle": (8, 1, 4),
    "program_coarsening": (1, 4),
    "split_k": (1, 3),
    "cooperative_reduction": (0, 1, 2),
    "tma_pipeline": (0, 1, 2),
    "loop_pipelining": (0, 2, 4),
}

#: The tests that an option could break, on a GPU and without one.
_ON_CUDA = "tests/gpu tests/contract --ignore=tests/contract/test_on_interpreter.py".split()
_WITHOUT = "tests/agreement tests/contract tests/triton".split()
_WITHOUT += ["tests/examples/test_interpreter.py", "tests/examples/test_offline.py"]
_WITHOUT += [
    f"--ignore=tests/triton/{name}.py"
    for name in ("runtime/test_driver", "test_library", "compiler/test_binaries")
]

#: A worker has two tests at a time, so that all of them test the same value: what it has in common
#: with those before is compiled by then.
_PYTEST = "-q -rN --tb=no --no-header -p no:cacheprovider -p tests.each_option --maxschedchunk=1"


def all_values() -> list[str]:
    """Each option off, and on."""
    found = []
    for name, default in defaults().items():
        if default not in (0, 1) and name not in VALUES:
            raise SystemExit(f"VALUES has to say what the option {name} is fixed at.")
        found += [f"{name}={value}" for value in VALUES.get(name, (0, 1))]
    return found


def has_cuda() -> bool:
    """Whether there is a device that needs no framework to be found."""
    try:
        return runtime("cuda").device_count() > 0
    except DeviceError:
        return False


def main() -> int:
    """Run pytest; gives its exit status."""
    parser = argparse.ArgumentParser("python -m tests.with_each_option", description=__doc__)
    parser.add_argument("--options", help="these values alone, as in split_k=3,register_prefetch=1")
    chosen, arguments = parser.parse_known_args()
    values = chosen.options.split(",") if chosen.options else all_values()
    environment = {**os.environ, "NINETOOTHED_TUNE": "none"}
    environment.pop("NINETOOTHED_OPTIONS", None)
    if not any(os.path.exists(argument.partition("::")[0]) for argument in arguments):
        arguments += _ON_CUDA if has_cuda() else _WITHOUT
        if has_cuda():
            environment["NINETOOTHED_TEST_DEVICE"] = "cuda"
    command = [sys.executable, "-m", "pytest", *_PYTEST.split(), "--each-option", ",".join(values)]
    start = time.monotonic()
    status = subprocess.run([*command, *arguments], env=environment, check=False).returncode
    print(f"{len(values)} values in {time.monotonic() - start:.0f} s; status {status}")
    return status


if __name__ == "__main__":
    sys.exit(main())
