"""Several contexts and devices in a process: each loads its own binaries, a launch goes to the current one."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("triton", reason="needs Triton")

from tests.aot.making import Loaded, built, driver, library, needs_cc  # noqa: E402
from tests.aot.reference import View  # noqa: E402

pytestmark = needs_cc

#: The recording driver's contexts end in the number of their device.
FIRST, SECOND, OF_THE_OTHER = 0x1000, 0x2000, 0x1001

#: Where the recording driver has the second device's memory.
OTHER_MEMORY = 0xBB << 40


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = tmp_path_factory.mktemp("contexts")
    return Loaded(library(built("silu", folder / "silu")), driver(folder / "driver"))


@pytest.fixture
def c(loaded: Loaded) -> Iterator[Loaded]:
    yield loaded
    make_current(loaded, None)


def make_current(c: Loaded, context: int | None) -> None:
    c.driver.set_context(ctypes.c_void_p(context))


def count(c: Loaded, name: str) -> int:
    return ctypes.c_int.in_dll(c.driver, name).value


def launch(c: Loaded, device: int = 0, address: int = 0x7000_0000) -> int:
    tensors = [View((4096,), (1,), address, device=(2, device)).dlpack() for _ in range(2)]
    return c.library.silu_launch(None, *map(ctypes.byref, tensors))


def launch_published(c: Loaded, address: int) -> int:
    return c.library.launch_silu(
        ctypes.c_void_p(None), *(View((4096,), (1,), address).published() for _ in range(2))
    )


def test_each_context_loads_a_binary_once(c: Loaded) -> None:
    before = count(c, "modules_loaded")
    launched = []
    for context, device in ((FIRST, 0), (SECOND, 0), (OF_THE_OTHER, 1)) * 2:
        make_current(c, context)
        assert launch(c, device) == 0, c.message()
        launched.append(c.last().context)
    assert launched == [FIRST, SECOND, OF_THE_OTHER] * 2
    assert count(c, "modules_loaded") == before + 3


def test_a_tensor_of_another_device_than_the_context_is_refused(c: Loaded) -> None:
    make_current(c, FIRST)
    assert launch(c, 1) == -8
    assert "`input` is on device 1, and device 0 is the current one" in c.message()


@pytest.mark.parametrize(
    "call",
    [lambda c: launch(c, 1), lambda c: launch_published(c, OTHER_MEMORY)],
    ids=["dlpack", "published"],
)
def test_where_a_thread_has_no_context_the_tensors_device_becomes_current(
    c: Loaded, call: Any
) -> None:
    def in_a_thread() -> tuple[int, int]:
        return call(c), c.last().context

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(in_a_thread).result() == (0, OF_THE_OTHER)


def test_preparing_a_device_leaves_the_context_as_it_was(c: Loaded) -> None:
    make_current(c, FIRST)
    assert c.library.silu_prepare(1) == 0
    loaded = count(c, "modules_loaded")
    assert launch(c) == 0
    assert c.last().context == FIRST
    make_current(c, OF_THE_OTHER)
    found = count(c, "modules_loaded")
    assert launch(c, 1) == 0
    assert count(c, "modules_loaded") == found <= loaded + 1
