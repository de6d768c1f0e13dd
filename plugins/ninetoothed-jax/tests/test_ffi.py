"""The reading of a custom call's frame, on frames made here: as on a GPU, with a stream."""

from __future__ import annotations

import ctypes

import pytest

from ninetoothed_jax import ffi

STREAM, INDEX, IDENTITY = 0x7F00_1234_5678, 3, 42


class Frame:
    """A frame with two arguments, one result and the attribute; it keeps all that it points to."""

    def __init__(self, stage=3, refuses=False):
        self.kept, self.messages = [], []
        self.api = ffi._Api()
        function = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

        def give(structure, value):
            def get(request):
                structure.from_address(request).value = value
                return 0xBAD if refuses else None

            return get

        def create_error(request):
            self.messages.append(ffi._CreateError.from_address(request).message.decode())
            return 0xE44

        for name, implementation in (
            ("stream", give(ffi._GetStream, STREAM)),
            ("device_ordinal", give(ffi._GetOrdinal, INDEX)),
            ("create_error", create_error),
        ):
            callback = function(implementation)
            self.kept.append(callback)
            setattr(self.api, name, ctypes.cast(callback, ctypes.c_void_p).value)
        self.frame = ffi._Frame(api=ctypes.addressof(self.api), context=0xC0, stage=stage)
        self.fill(self.frame.arguments, [0x7FFF_0000_1000, 0x2000])
        self.fill(self.frame.results, [0x3000])
        value = ctypes.c_int64(IDENTITY)
        scalar = ffi._Scalar(dtype=5, value=ctypes.pointer(value))
        self.frame.attributes.values = (ctypes.POINTER(ffi._Scalar) * 1)(ctypes.pointer(scalar))
        self.kept += [value, scalar]

    def fill(self, values, addresses):
        buffers = [ffi._Buffer(data=address) for address in addresses]
        pointers = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))
        self.kept += [buffers, pointers]
        values.size = len(buffers)
        values.values = pointers

    @property
    def address(self):
        return ctypes.addressof(self.frame)


def test_an_invocation_has_buffers_stream_and_device():
    seen, frame = [], Frame()
    assert ffi.handler(seen.append, has_stream=True)(frame.address) is None
    assert seen == [ffi.Invocation(IDENTITY, [0x7FFF_0000_1000, 0x2000], [0x3000], STREAM, INDEX)]


def test_the_cpu_has_no_stream():
    seen, frame = [], Frame()
    ffi.handler(seen.append, has_stream=False, only_index=0)(frame.address)
    assert (seen[0].stream, seen[0].index) == (0, 0)


def test_where_there_is_one_device_xla_is_not_asked():
    seen, frame = [], Frame()
    ffi.handler(seen.append, has_stream=True, only_index=7)(frame.address)
    assert (seen[0].stream, seen[0].index) == (STREAM, 7)


def test_a_call_without_operands_has_none():
    seen, frame = [], Frame()
    frame.frame.arguments.size, frame.frame.arguments.values = 0, None
    ffi.handler(seen.append, has_stream=True)(frame.address)
    assert seen[0].arguments == []


def test_what_lies_beside_the_stage_is_no_part_of_it():
    seen, frame = [], Frame()
    ctypes.c_uint32.from_address(frame.address + ffi._Frame.stage.offset + 4).value = 0xDEAD
    ffi.handler(seen.append, has_stream=True)(frame.address)
    assert len(seen) == 1


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_only_the_execution_runs_anything(stage):
    seen, frame = [], Frame(stage)
    assert ffi.handler(seen.append, has_stream=True)(frame.address) is None
    assert seen == []


def test_what_is_raised_becomes_an_error_of_xlas():
    def run(invocation):
        raise ValueError("too large")

    frame = Frame()
    assert ffi.handler(run, has_stream=True)(frame.address) == 0xE44
    assert frame.messages == ["ValueError: too large"]


def test_an_answer_that_xla_refuses_is_an_error():
    frame = Frame(refuses=True)
    assert ffi.handler(lambda invocation: None, has_stream=True)(frame.address) == 0xE44
    assert "XLA does not tell the stream" in frame.messages[0]


def test_a_question_for_the_version_is_answered():
    metadata, frame = ffi._Metadata(traits=7), Frame()
    extension = ffi._Extension(type=1, metadata=ctypes.pointer(metadata))
    frame.frame.extension = ctypes.addressof(extension)
    seen = []
    assert ffi.handler(seen.append, has_stream=True)(frame.address) is None
    assert (metadata.version.major, metadata.version.minor, metadata.traits) == (0, 1, 0)
    assert seen == []
