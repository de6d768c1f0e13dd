"""Run in a process of its own by test_driver.py: the driver against a CUDA driver that is a fake.

No framework can be imported. Each function below is one claim; what fails is an AssertionError.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
import threading
from dataclasses import replace

for _framework in ("torch", "paddle", "cupy", "jax"):
    sys.modules[_framework] = None  # type: ignore[assignment]

from examples import mm  # noqa: E402
from ninetoothed.backends.triton.compiler import versions  # noqa: E402
from ninetoothed.backends.triton.compiler.compile import compile_source  # noqa: E402
from ninetoothed.backends.triton.planning.binding import value_names  # noqa: E402
from ninetoothed.backends.triton.planning.planner import Planner  # noqa: E402
from ninetoothed.backends.triton.runtime import driver, launcher, ready  # noqa: E402
from ninetoothed.backends.triton.runtime.device_api import runtime  # noqa: E402
from ninetoothed.backends.triton.runtime.launch_record import Described, launch_record_of  # noqa: E402
from ninetoothed.backends.triton.specialization.target import Target  # noqa: E402
from tests.triton.runtime.claims import tell  # noqa: E402
from tests.triton.runtime.fake_driver import (  # noqa: E402
    DESCRIPTOR,
    FAKE,
    PRODUCT,
    Map,
    expect_sizes,
    launched,
    matrices,
    refusal,
    scale,
    set_fake,
    values,
)  # fmt: skip


def limits_are_read() -> None:
    limits = driver.device_limits(1)
    assert limits.name == "Fake 1" and limits.capability == (9, 0) and limits.arch == 90
    assert limits.shared_memory_per_block == 232448 and limits.multiprocessors == 132
    assert round(limits.memory_bandwidth / 1e12, 1) == 4.9 and limits.clock_hz == 1.98e9


def a_missing_device_is_an_error() -> None:
    assert "error 101, the fake driver's error" in refusal(lambda: driver.device_limits(5))


def a_launch_hands_over_every_argument() -> None:
    kernel = driver.Launchable(scale(), 0)
    assert (kernel.registers, kernel.spills) == (40, 8)
    expect_sizes(8, 4, 4, 8, 2, 1, 8, 8)
    with runtime("cuda").device(0):
        kernel.run(7, 99, 0xFFFF_0000_1234_5670, -5, 0.5, 1 << 40, 1.5, True)
    launch = launched()
    assert list(launch.grid) == [7, 1, 1] and list(launch.block) == [128, 1, 1]
    assert (launch.stream, launch.function, launch.context) == (99, 4711, 1000)
    pointer, n, factor, big, half, flag, scratch, profile = values(8, 4, 4, 8, 2, 1, 8, 8)
    assert struct.unpack("<QifQ", pointer + n + factor + big) == (
        0xFFFF_0000_1234_5670, -5, 0.5, 1 << 40,
    )  # fmt: skip
    assert struct.unpack("<e", half) == (1.5,) and flag == b"\1"
    assert scratch == profile == bytes(8)


def an_empty_grid_launches_nothing() -> None:
    kernel = driver.Launchable(scale(), 0)
    before = launched().count
    kernel.run(0, 0, 16, 1, 1.0, 0, 0.0, False)
    assert launched().count == before


def a_wrong_number_of_arguments_is_a_type_error() -> None:
    kernel = driver.Launchable(scale(), 0)
    try:
        kernel.run(1, 0, 16)
    except TypeError as error:
        assert "'scale_kernel' takes 8 arguments by position, got 3" in str(error), error
    else:
        raise AssertionError


def a_launch_takes_what_a_bound_one_has() -> None:
    kernel = driver.Launchable(scale(), 0)
    assert kernel.bind is not None
    launch = kernel.bind(7, 2, (0, -1, 1, -1, -1, -1), (-5, 1 << 40, 1.5, True))
    expect_sizes(8, 4, 4, 8, 2, 1, 8, 8)
    with runtime("cuda").device(0):
        kernel.run(7, 99, 1 << 44, -5, 0.5, 1 << 40, 1.5, True)
        plain = values(8, 4, 4, 8, 2, 1, 8, 8)
        kernel.run(3, 1, 32, 6, 1.0, 1, 0.0, False)
        assert launch(99, 1 << 44, 0.5) is None
    assert values(8, 4, 4, 8, 2, 1, 8, 8) == plain
    assert (launched().grid[0], launched().stream, launched().function) == (7, 99, 4711)


def what_does_not_fit_a_parameter_is_an_error() -> None:
    kernel = driver.Launchable(scale(), 0)
    fitting = (16, 1, 1.0, 1, 1.0, True)
    wrong = [
        (0, -1, OverflowError), (0, "x", TypeError), (1, 1 << 31, OverflowError),
        (1, 1.0, TypeError), (2, "x", TypeError), (3, 1 << 63, OverflowError),
        (4, 1e6, OverflowError), (5, 128, OverflowError),
    ]  # fmt: skip
    before = launched().count
    for place, value, expected in wrong:
        arguments = (*fitting[:place], value, *fitting[place + 1 :])
        for launch in (
            functools.partial(kernel.run, 1, 0, *arguments),
            functools.partial(kernel.bind(1, 6, tuple(range(6)), ()), 0, *arguments),
            functools.partial(kernel.bind, 1, 0, (-1,) * 6, arguments),
        ):
            try:
                launch()
            except expected:
                continue
            raise AssertionError((place, value))
    assert launched().count == before


def a_launch_is_on_its_device_whichever_is_current() -> None:
    library, current, contexts = runtime("cuda"), ctypes.c_void_p(), []
    kernels = [driver.Launchable(scale(), index) for index in (0, 1)]

    def work() -> None:
        for before in (None, 1000, 1001):
            for kernel in kernels:
                FAKE.cuCtxSetCurrent(ctypes.c_void_p(before))
                kernel.run(1, 0, 16, 1, 1.0, 1, 0.0, False)
                FAKE.cuCtxGetCurrent(ctypes.byref(current))
                expected = before or 1000 + kernel.index
                contexts.append((launched().context, current.value == expected))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert library.device_count() == 2 and contexts == [(1000, True), (1001, True)] * 3, contexts


def a_launch_on_the_only_device_enters_it_where_a_thread_has_not() -> None:
    library, contexts = runtime("cuda"), []
    count, library.device_count = library.device_count, lambda: 1
    kernel = driver.Launchable(scale(), 0)
    library.device_count = count

    def work() -> None:
        for _ in range(2):
            kernel.run(1, 0, 16, 1, 1.0, 1, 0.0, False)
            contexts.append(launched().context)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert contexts == [1000, 1000], contexts


def a_launch_that_the_driver_refuses_is_an_error() -> None:
    kernel = driver.Launchable(scale(), 0)
    with runtime("cuda").device(0):
        set_fake("fake_launch_failure", 700)
        message = refusal(lambda: kernel.run(1, 0, 16, 1, 1.0, 1, 0.0, False))
        set_fake("fake_launch_failure", 0)
    assert "failed to launch 'scale_kernel': error 700, the fake driver's error" in message, message


def loading_leaves_the_current_context_as_it_was() -> None:
    current = ctypes.c_void_p()
    library = runtime("cuda")
    for before in (None, 1000, 1001):
        FAKE.cuCtxSetCurrent(ctypes.c_void_p(before))
        driver.Launchable(scale(), 1)
        FAKE.cuCtxGetCurrent(ctypes.byref(current))
        assert current.value == before, (before, current.value)
    with library.device(1):
        FAKE.cuCtxGetCurrent(ctypes.byref(current))
        assert current.value == 1001
    # The driver keeps one for each device; Triton's own C code may add one at its first launch.
    assert ctypes.c_int.in_dll(FAKE, "fake_retained").value <= 3


def threads_load_and_launch_at_once() -> None:
    compiled, failures = scale(), []

    def work(index: int) -> None:
        try:
            with runtime("cuda").device(index):
                kernel = driver.Launchable(compiled, index)
                for _ in range(100):
                    kernel.run(1, 0, 16, 1, 1.0, 0, 0.0, False)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number % 2,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def too_much_shared_memory_is_an_error() -> None:
    signature = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "SIZE": "constexpr"}
    aligned = dict.fromkeys("abc", 16)
    target = Target.parse(("cuda", 90))
    compiled = compile_source(
        PRODUCT, "product_kernel", signature, {"SIZE": 256}, aligned, target, 8, 4
    )
    message = refusal(lambda: driver.Launchable(compiled, 0))
    for words in ("tile is too large for Fake 0", str(compiled.metadata.shared), "232448", "=4"):
        assert words in message, message


def too_many_threads_is_an_error() -> None:
    set_fake("fake_threads", 128)
    message = refusal(lambda: driver.Launchable(scale(num_warps=8), 0))
    set_fake("fake_threads", 1024)
    for words in ("40 registers", "128 threads", "num_warps=8", "256", "Fake 0 (cuda:0)"):
        assert words in message, message


def a_refused_binary_is_an_error() -> None:
    set_fake("fake_failure", 209)
    message = refusal(lambda: driver.Launchable(scale(), 0))
    set_fake("fake_failure", 0)
    assert "'scale_kernel' cannot be loaded on Fake 0" in message, message


def a_descriptor_is_made_of_an_address_once() -> None:
    made = Map.in_dll(FAKE, "fake_map")
    before = made.count
    call, config = matrices()
    candidate = Planner(mm.kernel.definition, call)._candidate(config)
    # The output's descriptor, its two sizes and its two strides come third.
    expect_sizes(8, 4, 4, 8, 8, 8, 4, 4, 8, 8, 8, 4, 4, 8, 8)
    with runtime("cuda").device(0):
        candidate.run(99, 1 << 20, 2 << 20, 3 << 20)
        assert made.count == before + 3
        candidate.run(99, 1 << 20, 2 << 20, 3 << 20)
        assert made.count == before + 3
    assert (made.rank, made.address) == (2, 3 << 20)
    # The driver counts from the contiguous dimension on, and in bytes.
    assert list(made.sizes)[:2] == [512, 1024] and made.strides[0] == 1024
    assert list(made.boxes)[:2] == [32, 64]
    found = [int.from_bytes(value, "little") for value in values(*[8, 4, 4, 8, 8] * 3)]
    assert found == [1 << 20, 1024, 96, 96, 1, 2 << 20, 96, 512, 512, 1, 3 << 20, 1024, 512, 512, 1]


def a_descriptor_of_another_address_has_that_put_in_unless_the_driver_refuses() -> None:
    made = Map.in_dll(FAKE, "fake_map")
    call, config = matrices()
    run = Planner(mm.kernel.definition, call)._candidate(config).run
    expect_sizes(8, 4, 4, 8, 8, 8, 4, 4, 8, 8, 8)
    found, messages = [], []
    with runtime("cuda").device(0):
        run(99, 1 << 20, 2 << 20, 3 << 20)
        first, replaced = made.count, made.replaced
        for address in (4, 4, None, 4, 3):
            attempt = functools.partial(run, 99, 1 << 20, 2 << 20, (address or 9) << 20)
            if address is None:
                set_fake("fake_failure", 1)
                messages.append(refusal(attempt))
                set_fake("fake_failure", 0)
            else:
                attempt()
            output = int.from_bytes(values(*[8] * 11)[10], "little") >> 20
            found.append((output, made.replaced - replaced))
    assert found == [(4, 1), (4, 1), (4, 2), (4, 2), (3, 3)] and made.count == first
    assert "failed to launch" in messages[0] and mm.kernel.name in messages[0], messages


def what_is_needed_once_is_made_once_ahead() -> None:
    # The first claim, so that nothing is there yet; a kernel loaded at once waits for it.
    ready.begin("cuda")
    ready.LAUNCHERS["cuda"].wait()
    assert launcher.module.cache_info().misses == 1
    driver.Launchable(scale(), 0)
    ready.COMPILER.wait()
    assert launcher.module.cache_info().misses == 1
    # What loads and launches is the driver's and ours.
    assert versions.utilities.cache_info().misses == 0


def a_refused_descriptor_is_an_error() -> None:
    call, config = matrices()
    candidate = Planner(mm.kernel.definition, call)._candidate(config)
    set_fake("fake_failure", 1)
    message = refusal(lambda: candidate.run(99, 5 << 20, 6 << 20, 7 << 20))
    set_fake("fake_failure", 0)
    for words in ("sizes (1024, 96)", "strides (96, 1)", "0x500000", "descriptors=0"):
        assert words in message, message


def a_persistent_launch_has_what_the_device_holds() -> None:
    grids = []
    for rows in (1024, 131072):
        call, config = matrices(rows)
        candidate = Planner(mm.kernel.definition, call)._candidate(config)
        # A thread takes 40 registers of 65536, 128 of them are a program.
        assert candidate.launchable.resident == 12 * 132
        with runtime("cuda").device(0):
            candidate.run(99, 1 << 20, 2 << 20, 3 << 20)
        grids.append(launched().grid[0])
    assert grids == [256, 12 * 132]


def a_record_is_what_a_launch_hands_over() -> None:
    call, config = matrices()
    planner = Planner(mm.kernel.definition, call)
    candidate = planner._candidate(config)
    # Three descriptors with sizes and strides; the fake keeps 16 of the values, and 8 bytes of each.
    sizes = [*[8, 4, 4, 8, 8] * 3, 4]
    expect_sizes(*sizes)
    addresses = (1 << 20, 2 << 20, 3 << 20)
    with runtime("cuda").device(0):
        candidate.run(99, *addresses)
    launch, handed_over = launched(), values(*sizes)
    record = launch_record_of(
        candidate.specialized, candidate.launchable, value_names(mm.kernel.definition)
    )
    assert record is not None and record.is_of_addresses
    assert (record.name, record.function) == (mm.kernel.name, launch.function)
    assert (record.grid, record.threads) == (launch.grid[0], launch.block[0])
    assert (record.shared_memory, record.is_dependent) == (launch.shared, False)
    made = [
        part.make(addresses[part.place]) if isinstance(part, Described) else part
        for part in record.parameters
    ]
    assert len(made) == len(candidate.launchable.signature) + 2
    assert {len(part) for part in made[::5][:3]} == {128}
    assert [part[:8] for part in made[:16]] == handed_over
    assert made[-2:] == [bytes(8)] * 2


def what_is_more_than_one_launch_has_no_record() -> None:
    call, config = matrices()
    options = replace(config, options=(("split_k", 2),))
    planner = Planner(mm.kernel.definition, call)
    candidate = planner._candidate(options)
    assert candidate.specialized.workspace
    names = value_names(mm.kernel.definition)
    assert launch_record_of(candidate.specialized, candidate.launchable, names) is None


def scratch_memory_is_given_and_taken_back() -> None:
    signature = {"x": "*fp16", "y": "*fp16", "SIZE": "constexpr"}
    target = Target.parse(("cuda", 90))
    compiled = compile_source(
        DESCRIPTOR, "copy_kernel", signature, {"SIZE": 128}, dict.fromkeys("xy", 16), target
    )
    kernel = driver.Launchable(compiled, 0)
    assert kernel.scratch_size > 0
    before = ctypes.c_int.in_dll(FAKE, "fake_live").value
    expect_sizes(8, 8, 8, 8)
    kernel.run(3, 0, 16, 32)
    assert int.from_bytes(values(8, 8, 8)[2], "little") > 0
    assert ctypes.c_int.in_dll(FAKE, "fake_live").value == before
    count = launched().count
    kernel.run(0, 0, 16, 32)
    assert launched().count == count


def a_capture_is_seen() -> None:
    for state, expected in ((0, False), (1, True), (2, True)):
        set_fake("fake_capturing", state)
        assert driver.is_capturing(0) is expected
    set_fake("fake_capturing", 0)


def a_measurement_prepares_each_launch_and_leaves_nothing() -> None:
    before = ctypes.c_int.in_dll(FAKE, "fake_live").value
    calls: list[str] = []
    time = driver.measure(
        lambda: calls.append("launch"), 0, 0, budget_ms=1.0, prepare=lambda: calls.append("prepare")
    )
    assert time >= 0 and calls[::2] == ["prepare"] * (len(calls) // 2)
    assert calls[1::2] == ["launch"] * (len(calls) // 2) and len(calls) >= 10
    assert ctypes.c_int.in_dll(FAKE, "fake_live").value == before


CLAIMS = [
    what_is_needed_once_is_made_once_ahead,
    limits_are_read,
    a_missing_device_is_an_error,
    a_launch_hands_over_every_argument,
    an_empty_grid_launches_nothing,
    a_wrong_number_of_arguments_is_a_type_error,
    a_launch_takes_what_a_bound_one_has,
    what_does_not_fit_a_parameter_is_an_error,
    a_launch_is_on_its_device_whichever_is_current,
    a_launch_on_the_only_device_enters_it_where_a_thread_has_not,
    a_launch_that_the_driver_refuses_is_an_error,
    loading_leaves_the_current_context_as_it_was,
    threads_load_and_launch_at_once,
    too_much_shared_memory_is_an_error,
    too_many_threads_is_an_error,
    a_refused_binary_is_an_error,
    a_descriptor_is_made_of_an_address_once,
    a_descriptor_of_another_address_has_that_put_in_unless_the_driver_refuses,
    a_refused_descriptor_is_an_error,
    a_persistent_launch_has_what_the_device_holds,
    a_record_is_what_a_launch_hands_over,
    what_is_more_than_one_launch_has_no_record,
    scratch_memory_is_given_and_taken_back,
    a_capture_is_seen,
    a_measurement_prepares_each_launch_and_leaves_nothing,
]


if __name__ == "__main__":
    tell(CLAIMS)
    assert not any(sys.modules.get(name) for name in ("torch", "paddle", "cupy", "jax"))
