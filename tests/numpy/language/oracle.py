"""Evaluates expressions of Triton's language in Triton's own interpreter, in a process of its own.

Reads a pickled list of ``(expression, inputs, memories)`` and writes a pickled list of results, each
``(values, types, memories)`` or an error's text. ``inputs`` are name -> (array, Triton's type);
``memories`` are name -> (array, type), handed to the expression as pointers. Arrays of bfloat16 and
of the 8-bit floats travel as unsigned integers.
"""

from __future__ import annotations

import os
import pickle
import sys

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.runtime import interpreter


def _namespace_user():
    return tl


def _native(array):
    # A pickled array has a type object of its own, but the interpreter asks for NumPy's by identity.
    native = np.empty(array.shape, array.dtype.type)
    native[...] = array
    return native


def _wrapped(array, name):
    dtype = tl.str_to_ty(name, None)
    handle = interpreter.TensorHandle(np.atleast_1d(_native(array)), dtype)
    return tl.tensor(handle, tl.block_type(dtype, list(array.shape)) if array.shape else dtype)


def _pointer(array, name):
    dtype = tl.pointer_type(tl.str_to_ty(name, None))
    handle = interpreter.TensorHandle(np.array([array.ctypes.data], np.uint64), dtype)
    return tl.tensor(handle, dtype)


def _is_nothing(value):
    return value is None or (isinstance(value, tl.tensor) and value.handle is None)


def _unwrapped(value):
    if isinstance(value, tl.tensor):
        shape = tuple(int(size) for size in value.shape)
        return np.array(value.handle.data).reshape(shape), str(value.dtype)
    if isinstance(value, tl.constexpr):
        value = value.value
    return value, type(value).__name__


def _evaluate(expression, inputs, memories):
    owned = {name: _native(array) for name, (array, _) in memories.items()}
    names = {name: _wrapped(*given) for name, given in inputs.items()}
    names |= {name: _pointer(owned[name], given[1]) for name, given in memories.items()}
    result = eval(expression, {"tl": tl, "libdevice": libdevice, **names})
    results = result if isinstance(result, (tuple, list)) else (result,)
    results = [_unwrapped(item) for item in results if not _is_nothing(item)]
    return [value for value, _ in results], [name for _, name in results], owned


def main():
    """Answers the questions on standard input, on standard output."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    interpreter.interpreter_builder.set_grid_dim(4, 3, 2)
    interpreter.interpreter_builder.set_grid_idx(3, 1, 0)
    interpreter._patch_lang(_namespace_user)
    answers = []
    with np.errstate(all="ignore"):
        for question in pickle.load(sys.stdin.buffer):
            try:
                answers.append(_evaluate(*question))
            except Exception as error:
                answers.append(f"{type(error).__name__}: {error}")
    pickle.dump((triton.__version__, answers), output)
    output.close()


if __name__ == "__main__":
    main()
