"""XLA's foreign function interface, as far as a custom call needs it, through ctypes.

The structures are those of ``xla/ffi/api/c_api.h``, which comes with jaxlib
(`jax.ffi.include_dir()`): they are a stable binary interface and grow at their ends only.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from typing import Any, NamedTuple

_METADATA = 1
_EXECUTE = 3
_INTERNAL_ERROR = 13

#: The interface that this file is written to; XLA takes handlers of this one and of newer ones.
_MAJOR, _MINOR = 0, 1


class _Version(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("major", c_int),
        ("minor", c_int),
    ]


class _Metadata(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("version", _Version), ("traits", ctypes.c_uint32)]


class _Extension(ctypes.Structure):
    """The head of any extension; of the metadata's also its one field."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("type", c_int),
        ("next", c_void_p),
        ("metadata", POINTER(_Metadata)),
    ]


_FUNCTIONS = """
    create_error error_message destroy_error register_handler stream register_type context_get
    state_set state_get allocate free schedule num_threads create_future set_available set_error
    run_id device_ordinal
""".split()


class _Api(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("version", _Version),
        ("internal", c_void_p),
        *((name, c_void_p) for name in _FUNCTIONS),
    ]


class _Values(ctypes.Structure):
    """Arguments, or results: pointers to `_Buffer`."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("size", c_int64),
        ("types", c_void_p),
        ("values", POINTER(c_void_p)),
    ]


class _Buffer(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("dtype", c_int),
        ("data", c_void_p),
    ]


class _Scalar(ctypes.Structure):
    _fields_ = [("dtype", c_int), ("value", POINTER(c_int64))]


class _Attributes(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("size", c_int64),
        ("types", c_void_p),
        ("names", c_void_p),
        ("values", POINTER(POINTER(_Scalar))),
    ]


class _Frame(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("api", c_void_p),
        ("context", c_void_p),
        ("stage", c_int),
        ("arguments", _Values),
        ("results", _Values),
        ("attributes", _Attributes),
    ]


class _GetStream(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("context", c_void_p),
        ("value", c_void_p),
    ]


class _GetOrdinal(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("context", c_void_p),
        ("value", c_int32),
    ]


class _CreateError(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("message", c_char_p),
        ("code", c_int),
    ]


_Function = ctypes.CFUNCTYPE(c_void_p, c_void_p)


class Invocation(NamedTuple):
    """One execution of a custom call.

    Attributes:
        identity: the call's one attribute.
        arguments, results: the addresses of the buffers.
        stream: the handle of XLA's stream; 0 on the CPU.
        index: the device's index.
    """

    identity: int
    arguments: list[int]
    results: list[int]
    stream: int
    index: int


def handler(
    run: Callable[[Invocation], None], has_stream: bool, only_index: int | None = None
) -> Any:
    """A handler for `jax.ffi.register_ffi_target`; the caller keeps it alive.

    Args:
        run: runs one execution. What it raises becomes XLA's error.
        has_stream: whether the platform has streams.
        only_index: the index of the one device that there is; None has XLA asked each time.
    """

    def handle(frame: int) -> int | None:
        words = _Words.from_address(frame)[:]
        if words[_EXTENSION]:
            head = _Extension.from_address(words[_EXTENSION])
            if head.type == _METADATA:
                _describe(head.metadata.contents)
                return None
        # The stage is an int; beside it in its word there may be anything.
        if words[_STAGE] & 0xFFFFFFFF != _EXECUTE:
            return None
        try:
            run(_invocation(words, has_stream, only_index))
        except BaseException as error:  # Nothing may pass through XLA's own frames.
            return _create_error(words, f"{type(error).__name__}: {error}")
        return None

    return _Function(handle)


# Fields are read by their places: an object for each structure on the way would cost a launch more
# than all else that it does.

_POINTER = ctypes.sizeof(c_void_p)
_DATA = _Buffer.data.offset
_VALUE = _Scalar.value.offset

#: A frame as words, and the places of some.
_Words = ctypes.c_uint64 * (ctypes.sizeof(_Frame) // _POINTER)
_EXTENSION = _Frame.extension.offset // _POINTER
_API = _Frame.api.offset // _POINTER
_CONTEXT = _Frame.context.offset // _POINTER
_STAGE = _Frame.stage.offset // _POINTER
_ATTRIBUTES = (_Frame.attributes.offset + _Attributes.values.offset) // _POINTER
_ARGUMENTS = (_Frame.arguments.offset + _Values.size.offset) // _POINTER
_RESULTS = (_Frame.results.offset + _Values.size.offset) // _POINTER
_VALUES = (_Values.values.offset - _Values.size.offset) // _POINTER

_word_at = ctypes.c_uint64.from_address


def _word(address: int) -> int:
    """The word, an integer or an address, that is kept at an address."""
    return _word_at(address).value


def _invocation(words: list[int], has_stream: bool, only_index: int | None) -> Invocation:
    return Invocation(
        _word(_word(_word(words[_ATTRIBUTES]) + _VALUE)),
        _addresses(words[_ARGUMENTS], words[_ARGUMENTS + _VALUES]),
        _addresses(words[_RESULTS], words[_RESULTS + _VALUES]),
        _get(words, "stream", _GetStream) if has_stream else 0,
        _get(words, "device_ordinal", _GetOrdinal) if only_index is None else only_index,
    )


def _addresses(count: int, buffers: int) -> list[int]:
    if not count:
        return []
    pointers = (ctypes.c_uint64 * count).from_address(buffers)[:]
    return [_word_at(pointer + _DATA).value for pointer in pointers]


def _describe(metadata: Any) -> None:
    metadata.version.major, metadata.version.minor = _MAJOR, _MINOR
    metadata.traits = 0


def _get(words: list[int], what: str, structure: Any) -> int:
    request = structure(ctypes.sizeof(structure), None, words[_CONTEXT], 0)
    if _call(words, what, request):
        raise RuntimeError(f"XLA does not tell the {what.replace('_', ' ')} of a custom call")
    return request.value or 0


def _create_error(words: list[int], message: str) -> int | None:
    request = _CreateError(
        ctypes.sizeof(_CreateError), None, message.encode(errors="replace"), _INTERNAL_ERROR
    )
    return _call(words, "create_error", request)


#: Where the addresses of XLA's functions are among them all.
_OFFSETS = {name: getattr(_Api, name).offset for name in _FUNCTIONS}


def _call(words: list[int], what: str, request: Any) -> int | None:
    """Calls one of XLA's functions; what it returns is an error, or None."""
    function = _function_at(_word(words[_API] + _OFFSETS[what]))
    return function(ctypes.addressof(request))  # type: ignore[no-any-return]


@functools.cache
def _function_at(address: int) -> Any:
    # They are called for a word or two: letting go of the interpreter would cost more.
    return ctypes.PYFUNCTYPE(c_void_p, c_void_p)(address)
