"""What a kernel overwrites is kept while it is timed."""

import contextlib

import ninetoothed
from ninetoothed import Tensor
from ninetoothed.backends.triton.runtime import benchmark
from ninetoothed.kernels.call import Argument, Call, Device
from ninetoothed.language.dtypes import float32
from tests.triton.emitted import given_by


class Memory:
    """A device's memory that only notes what is asked of it."""

    def __init__(self):
        self.copied = []

    def device(self, index):
        return contextlib.nullcontext()

    def allocate(self, size):
        return 1_000_000

    def copy(self, to, of, size, stream):
        self.copied.append((to, of, size))

    def free(self, address):
        pass

    def synchronize(self, stream):
        pass


def application(x):
    x += 1  # noqa: F841


def test_a_tensor_that_goes_backwards_is_kept_from_its_lowest_element(monkeypatch):
    kernel = ninetoothed.make(lambda x: x.tile((1, 32)), application, (Tensor(2),))
    call = Call({"x": Argument((3, 10), (-16, 1), float32, 16)}, device=Device("cuda"))
    memory = Memory()
    monkeypatch.setattr(benchmark, "runtime", lambda backend: memory)
    monkeypatch.setattr(benchmark.driver, "flush_bytes", lambda index, backend: 1)

    timing = benchmark.Benchmark(given_by(kernel, call), call, (0, 4096), ["x"])
    with timing.begun():
        pass

    first, size = 4096 - 2 * 16 * 4, (2 * 16 + 10) * 4
    assert memory.copied == [(1_000_000, first, size), (first, 1_000_000, size)]
