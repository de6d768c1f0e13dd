"""Run in processes of their own by test_driver.py: one launch of a product, by descriptors.

It tells whether the kernel was compiled or found, and whether Triton was imported for it.
"""

from __future__ import annotations

import ctypes
import sys

from examples import mm
from ninetoothed.backends.base import Argument, Call, Device
from ninetoothed.backends.triton.planning import planner
from ninetoothed.language import dtypes
from tests.triton.runtime.claims import Launch

_SHAPES = {"input": (1024, 96), "other": (96, 512), "output": (1024, 512)}


def main() -> None:
    compiled, compiling = [], planner.compiled_for

    def noted(*arguments):
        compiled.append(arguments)
        return compiling(*arguments)

    planner.compiled_for = noted
    arguments = {
        name: Argument(shape, (shape[1], 1), dtypes.float16) for name, shape in _SHAPES.items()
    }
    call = Call(arguments, device=Device("cuda", 0))
    plan = planner.Planner(mm.kernel.definition, call).plan(None)
    plan.run(99, 1 << 20, 2 << 20, 3 << 20)
    launched = Launch.in_dll(ctypes.CDLL("libcuda.so.1"), "fake_launch")
    assert (launched.count, launched.stream, launched.function) == (1, 99, 4711)
    print("compiled," if compiled else "found,", "triton" in sys.modules)


if __name__ == "__main__":
    main()
