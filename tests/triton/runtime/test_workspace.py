"""Workspaces: one a stream, kept; one of its own for what goes into a graph."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

pytest.importorskip("triton", reason="needs Triton")

from ninetoothed.backends.triton.runtime.workspace import COUNTER_BYTES, MOST_STREAMS, Workspaces  # noqa: E402


class FakeRuntime:
    """Writes down what it is asked for; addresses are 1000, 2000, …"""

    def __init__(self, capturing=()):
        self.capturing = set(capturing)
        self.allocated = {}
        self.filled = []
        self.freed = []
        self.asked = []
        self.is_relaxed = False
        #: By handle, where that is not the number.
        self.numbers = {}

    def allocate(self, size, stream=None):
        # While another thread captures a graph, memory may be allocated only where it is meant.
        assert stream is not None or self.is_relaxed
        address = 1000 * (1 + len(self.allocated))
        self.allocated[address] = size, stream
        return address

    def free(self, address, stream):
        self.freed.append((address, stream))

    def fill(self, address, value, size, stream):
        self.filled.append((address, value, size, stream))

    def number_of(self, stream):
        return self.numbers.get(stream, stream)

    def is_capturing(self, stream):
        self.asked.append(stream)
        return stream in self.capturing

    @contextmanager
    def device(self, index):
        yield

    @contextmanager
    def capturing_elsewhere(self):
        self.is_relaxed = True
        yield
        self.is_relaxed = False


def test_a_stream_has_one_workspace_whose_counters_are_zero():
    library = FakeRuntime()
    spaces = Workspaces(library, 0)

    assert spaces.borrow(7, 100) == spaces.borrow(7, 128) == spaces.borrow(7, 0) == (1000, None)
    assert library.allocated == {1000: (COUNTER_BYTES + 128, None)}
    assert library.filled == [(1000, 0, COUNTER_BYTES, 7)]


def test_two_streams_have_two():
    spaces = Workspaces(FakeRuntime(), 0)

    assert [spaces.borrow(stream, 100)[0] for stream in (0, 7, 0, 7)] == [1000, 2000, 1000, 2000]


def test_one_that_is_too_small_is_followed_by_a_larger_one_and_stays():
    library = FakeRuntime()
    spaces = Workspaces(library, 0)

    assert [spaces.borrow(7, size)[0] for size in (100, 1000, 100)] == [1000, 2000, 2000]
    assert library.allocated[2000] == (COUNTER_BYTES + 1024, None)
    assert library.freed == []


def test_a_graph_has_its_own_which_it_gives_back():
    library = FakeRuntime(capturing=[7])
    spaces = Workspaces(library, 0)
    address, give_back = spaces.borrow(7, 100)
    again, _ = spaces.borrow(7, 100)
    give_back(address, 7)

    assert address != again
    assert library.allocated[address] == (COUNTER_BYTES + 100, 7)
    assert library.filled[0] == (address, 0, COUNTER_BYTES, 7)
    assert library.freed == [(address, 7)]


def test_after_a_capture_a_stream_has_its_kept_one_again():
    library = FakeRuntime(capturing=[7])
    spaces = Workspaces(library, 0)
    spaces.borrow(7, 100)
    library.capturing.clear()
    kept = spaces.borrow(7, 100)

    assert kept == spaces.borrow(7, 100) == (2000, None)


def test_the_stream_that_is_another_in_each_thread_has_none_to_keep():
    spaces = Workspaces(FakeRuntime(), 0)

    assert spaces.borrow(2, 100)[0] != spaces.borrow(2, 100)[0]
    assert spaces.borrow(2, 100)[1] is not None


def test_a_handle_that_is_given_again_is_another_stream():
    """The first stream is gone, and what it was given may still run."""
    library = FakeRuntime()
    spaces = Workspaces(library, 0)
    first, _ = spaces.borrow(7, 100)
    library.numbers[7] = 8

    assert spaces.borrow(7, 100) == (2000, None) and first == 1000


def test_many_streams_keep_no_more_than_so_many():
    library = FakeRuntime()
    spaces = Workspaces(library, 0)
    kept = {stream: spaces.borrow(stream, 100) for stream in range(10, 10 + MOST_STREAMS)}
    address, give_back = spaces.borrow(5, 100)
    give_back(address, 5)

    assert library.freed == [(address, 5)]
    assert all(spaces.borrow(stream, 100) == found for stream, found in kept.items())
    assert len({found for found, _ in kept.values()} | {address}) == MOST_STREAMS + 1


def test_the_default_stream_keeps_one_whoever_else_does():
    spaces = Workspaces(FakeRuntime(), 0)
    for stream in range(10, 10 + MOST_STREAMS):
        spaces.borrow(stream, 100)

    assert spaces.borrow(0, 100) == spaces.borrow(0, 100) and spaces.borrow(0, 100)[1] is None


def test_the_default_stream_is_not_asked_whether_it_is_capturing():
    library = FakeRuntime()
    Workspaces(library, 0).borrow(0, 100)

    assert library.asked == []


def test_many_threads_make_one():
    library = FakeRuntime()
    spaces = Workspaces(library, 0)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(spaces.borrow(7, 99))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [(1000, None)] * 8
