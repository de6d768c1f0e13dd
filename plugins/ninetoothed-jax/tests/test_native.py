"""The handler in C, on the CPU: XLA calls it with its own frames, and no driver is behind it.

What `cuLaunchKernelEx` would be given is kept and looked at. The CPU has no streams, so XLA's answer
to that question is replaced on the way.
"""

from __future__ import annotations

import ctypes
import itertools
import shutil
import struct
import threading
from dataclasses import replace

import pytest

import ninetoothed
from ninetoothed import Tensor, plugins
from ninetoothed.backends.base import Plan

jax = pytest.importorskip("jax", reason="needs JAX")
pytest.importorskip("triton", reason="needs Triton, whose compiler and headers are used")

import jax.numpy as jnp  # noqa: E402

from ninetoothed.backends.triton.runtime.launch_record import Described, Given, LaunchRecord  # noqa: E402
from ninetoothed_jax import ffi, launcher, native  # noqa: E402

if shutil.which("gcc") is None and shutil.which("clang") is None:
    pytest.skip("needs a C compiler", allow_module_level=True)

STREAM, FUNCTION = 0x7F00_1234_5678, 4711

_targets = (f"ninetoothed_native_{number}" for number in itertools.count())


class Config(ctypes.Structure):
    """cuda.h's CUlaunchConfig."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_uint64),
        ("attributes", ctypes.POINTER(ctypes.c_int)),
        ("attribute_count", ctypes.c_uint),
    ]


class Machine:
    """A kernel `scale(x, factor, output)`, planned and launched by fakes, in Python and in C.

    Attributes:
        planned: the addresses of each launch from Python.
        launched: what each launch from C was given: (config, function, parameters).
        status: what the driver says of a launch.
        record: of the plan.
    """

    def __init__(self, monkeypatch):
        self.planned, self.launched, self.kept = [], [], []
        self.status = 0
        self.record = LaunchRecord(
            "scale",
            FUNCTION,
            grid=7,
            threads=128,
            shared_memory=1024,
            is_dependent=False,
            parameters=(
                Given(0, "*fp32"),
                struct.pack("<i", 100),
                Given(1, "fp32"),
                Given(2, "*fp32"),
                bytes(8),
                bytes(8),
            ),
        )
        launch = ctypes.CFUNCTYPE(
            ctypes.c_int,
            ctypes.POINTER(Config),
            ctypes.c_uint64,
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_void_p,
        )(self._launch)
        text = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p))(
            self._error_text
        )
        stream = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(self._stream)
        python = ffi.handler(
            lambda invocation: launcher._run_on("cpu", invocation), has_stream=False, only_index=0
        )
        self.driver = _address(launch), _address(text)
        self.native = native.Native(native.load(), python, *self.driver, 0)
        through = ffi._Function(self._through)
        self.kept += [launch, text, stream, through]
        self.stream = _address(stream)
        self.native.handler.restype = ctypes.c_void_p
        # The plugin's own handlers are registered under their own name first.
        launcher._register()
        target = next(_targets)
        jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(through), platform="cpu")
        monkeypatch.setattr(launcher, "_TARGET", target)
        _kept_for_ever.append(self)
        monkeypatch.setattr(launcher, "_NATIVE", {"cpu": self.native})
        backend = plugins.backend_for("cpu")
        original = backend.plan

        def plan(kernel, call, values=None):
            if values is None:
                return original(kernel, call)
            return Plan(
                lambda stream, *values: self.planned.append(values),
                {"launch_record": lambda: self.record},
            )

        monkeypatch.setattr(backend, "plan", plan)
        self.kernel = scale()

    def __call__(self, x, factor=2.5):
        return self.kernel(x, factor, jax.ShapeDtypeStruct(x.shape, x.dtype)).block_until_ready()

    def _through(self, address):
        """XLA's frame, with a stream."""
        frame = ffi._Frame.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(ffi._Frame)))
        size = ctypes.c_size_t.from_address(frame.api).value
        api = ctypes.create_string_buffer(ctypes.string_at(frame.api, size), size)
        ffi._Api.from_buffer(api).stream = self.stream
        frame.api = ctypes.addressof(api)
        return self.native.handler(ctypes.byref(frame))

    def _stream(self, request):
        ffi._GetStream.from_address(request).value = STREAM
        return None

    def _launch(self, config, function, parameters, extra):
        config = config.contents
        attributes = list(config.attributes[: config.attribute_count])
        sizes = (
            len(p) if isinstance(p, bytes) else 128 if isinstance(p, Described) else 8
            for p in self.record.parameters
        )
        given = [ctypes.string_at(parameters[i], size) for i, size in enumerate(sizes)]
        facts = (*config.grid, *config.block, config.shared, config.stream, attributes)
        self.launched.append((facts, function, given))
        return self.status

    def _error_text(self, status, text):
        text[0] = b"an illegal address"
        return 0


_kept_for_ever: list[Machine] = []


def _address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


def scale():
    def arrangement(x, factor, output):
        return x.tile((64,)), factor, output.tile((64,))

    def application(x, factor, output):
        output = x * factor

    return ninetoothed.make(arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))


@pytest.fixture
def machine(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "native"))
    with jax.default_device(jax.devices("cpu")[0]):
        yield Machine(monkeypatch)


@pytest.fixture
def x(machine):
    return jnp.arange(100, dtype=jnp.float32)


def pointer(array):
    return struct.pack("<Q", array.unsafe_buffer_pointer())


def test_the_first_launch_is_pythons_and_those_that_follow_are_not(machine, x):
    for _ in range(5):
        result = machine(x)
    assert len(machine.planned) == 1 and len(machine.launched) == 4
    facts, function, parameters = machine.launched[-1]
    assert facts == (7, 1, 1, 128, 1, 1, 1024, STREAM, [])
    assert function == FUNCTION
    first, size, factor, last, *scratch = parameters
    assert (first, last) == (pointer(x), pointer(result))
    assert size == struct.pack("<i", 100) and factor[:4] == struct.pack("<f", 2.5)
    assert scratch == [bytes(8), bytes(8)]


def test_each_call_has_its_own(machine, x):
    for _ in range(3):
        machine(x, 2.5)
        machine(x, 3.5)
    assert len(machine.planned) == 2
    factors = {parameters[2][:4] for _, _, parameters in machine.launched}
    assert factors == {struct.pack("<f", 2.5), struct.pack("<f", 3.5)}


def test_a_launch_that_may_begin_early_says_so(machine, x):
    machine.record = replace(machine.record, is_dependent=True)
    for _ in range(2):
        machine(x)
    ((*_, attributes), _, _) = machine.launched[0]
    # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    assert attributes == [6]


class Frames:
    """The handler in C before one that keeps what it is asked, on frames made here."""

    def __init__(self, machine):
        self.machine, self.seen, self.kept = machine, [], []
        self.native = native.Native(
            native.load(), ffi.handler(self.seen.append, has_stream=True), *machine.driver
        )
        self.native.handler.restype = ctypes.c_void_p

    def add(self, identity=1, index=3, addresses=(0x1010, 0x2014), grid=1):
        values = [(True, 0), (False, 1.0), (True, 1)]
        record = replace(self.machine.record, grid=grid)
        assert self.native.add(identity, index, record, values, addresses, 0xF)

    def __call__(self, identity=1, index=3, addresses=(0x1010, 0x2014), stage=3):
        """The handler's answer, and the grid that was launched, if one was."""
        value = ctypes.c_int64(identity)
        scalar = ffi._Scalar(dtype=5, value=ctypes.pointer(value))
        buffers = [ffi._Buffer(data=address) for address in addresses]
        pointers = (ctypes.c_void_p * 2)(*map(ctypes.addressof, buffers))
        function = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

        @function
        def tell(request):
            ffi._GetOrdinal.from_address(request).value = index

        api = ffi._Api(stream=self.machine.stream, device_ordinal=_address(tell))
        frame = ffi._Frame(api=ctypes.addressof(api), stage=stage)
        frame.attributes.values = (ctypes.POINTER(ffi._Scalar) * 1)(ctypes.pointer(scalar))
        frame.arguments.size, frame.arguments.values = 1, pointers
        frame.results.size = 1
        frame.results.values = (ctypes.c_void_p * 1)(pointers[1])
        self.machine.launched.clear()
        assert self.native.handler(ctypes.byref(frame)) is None
        return [facts[0] for facts, _, _ in self.machine.launched]


@pytest.fixture
def frames(machine):
    return Frames(machine)


def test_what_is_unknown_is_pythons(frames):
    assert frames() == []
    assert frames.seen == [ffi.Invocation(1, [0x1010], [0x2014], STREAM, 3)]


def test_a_launch_serves_all_addresses_of_its_alignment(frames):
    frames.add()
    assert frames(addresses=(0x1010, 0x2014)) == [1]
    assert frames(addresses=(0x7FFF_0000_5550, 0x24)) == [1]
    *_, parameters = frames.machine.launched[0]
    assert parameters[0] == struct.pack("<Q", 0x7FFF_0000_5550)
    assert parameters[3] == struct.pack("<Q", 0x24)
    assert frames.seen == []


@pytest.mark.parametrize(
    "other",
    [
        {"identity": 2},
        {"identity": 1 + 4096},
        {"index": 0},
        {"addresses": (0x1014, 0x2014)},
        {"addresses": (0x1010, 0x2010)},
    ],
    ids=str,
)
def test_a_launch_serves_nothing_else(frames, other):
    frames.add(grid=1)
    assert frames(**other) == [] and len(frames.seen) == 1
    frames.add(grid=2, **other)
    assert frames(**other) == [2] and frames() == [1]
    assert len(frames.seen) == 1


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_only_the_execution_launches_anything(frames, stage):
    frames.add()
    assert frames(stage=stage) == [] and frames.seen == []


def test_a_refused_launch_is_an_error_that_names_the_kernel(machine, x):
    machine(x)
    machine.status = 700
    with pytest.raises(Exception, match="kernel `scale`: .*error 700, an illegal address"):
        machine(x)
    machine.status = 0
    machine(x)
    assert len(machine.planned) == 1


def test_a_descriptor_is_of_one_address(machine, x):
    made = []

    def make(address):
        made.append(address)
        return struct.pack("<Q", address) * 16

    described = (struct.pack("<i", 3), Described(0, make), *machine.record.parameters[1:])
    machine.record = replace(machine.record, parameters=described)
    other = x + 1
    for array in (x, x, other, x, other):
        machine(array)
    assert [each[0] for each in machine.planned] == [
        x.unsafe_buffer_pointer(),
        other.unsafe_buffer_pointer(),
    ]
    assert made == [x.unsafe_buffer_pointer(), other.unsafe_buffer_pointer()]
    assert [parameters[1][:8] for _, _, parameters in machine.launched] == [
        pointer(x),
        pointer(x),
        pointer(other),
    ]


def test_after_so_many_addresses_the_rest_is_pythons(machine, monkeypatch):
    monkeypatch.setattr(launcher, "_MOST_TOLD", 2)
    described = (Described(0, lambda address: bytes(128)), *machine.record.parameters[1:])
    machine.record = replace(machine.record, parameters=described)
    arrays = [jnp.full(100, float(number)) for number in range(4)]
    for _ in range(2):
        for array in arrays:
            machine(array)
    assert len(machine.launched) == 2 and len(machine.planned) == 6


def test_what_is_too_much_for_c_stays_pythons(machine, x):
    many = (*machine.record.parameters, *[bytes(8)] * 200)
    machine.record = replace(machine.record, parameters=many)
    for _ in range(3):
        machine(x)
    assert len(machine.planned) == 3 and machine.launched == []


def test_a_plan_without_a_record_stays_pythons(machine, x):
    machine.record = None
    for _ in range(3):
        machine(x)
    assert len(machine.planned) == 3


def test_a_number_that_only_the_device_knows_stays_pythons(machine, x):
    for factor in (1.0, 2.0, 3.0):
        machine(x, jnp.float32(factor))
    assert [values[1] for values in machine.planned] == [1.0, 2.0, 3.0]
    assert machine.launched == []


def test_in_a_program_of_many_launches(machine, x):
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)

    @jax.jit
    def program(x):
        for _ in range(10):
            x = machine.kernel(x, 2.5, like)
        return x

    for _ in range(3):
        program(x).block_until_ready()
    assert len(machine.planned) == 1 and len(machine.launched) == 29


def test_threads_launch_while_others_are_told(machine, x):
    failures = []

    def work(number):
        try:
            for step in range(20):
                machine(x, float(20 * number + step))
                machine(x, 2.5)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(machine.planned) + len(machine.launched) == 160
    assert len(machine.planned) <= 80 + 4


@pytest.mark.skipif(jax.default_backend() != "gpu", reason="needs a GPU that JAX runs on")
def test_on_a_gpu_python_launches_once(monkeypatch):
    launched = []
    run = launcher._Call.run

    def counted(call, *arguments):
        launched.append(call)
        run(call, *arguments)

    monkeypatch.setattr(launcher._Call, "run", counted)
    kernel, x = scale(), jnp.arange(1000, dtype=jnp.float32)
    for factor in (2.0, 3.0):
        for array in (x, x + 1, x + 2):
            result = kernel(array, factor, jax.ShapeDtypeStruct(x.shape, x.dtype))
            assert jnp.array_equal(result, factor * array)
    assert len(launched) == 2
