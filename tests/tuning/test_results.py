"""What was measured, kept on disk and carried between machines."""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from ninetoothed import cache
from ninetoothed.cache import Cache
from ninetoothed.errors import NineToothedError
from ninetoothed.tuning.results import Results, Subject, entries, export_results, import_results
from ninetoothed.tuning.space import Config

SUBJECT = Subject("mm", "NVIDIA H200", "triton 3.6", "input 4096x4096 float16")


def config(size: int) -> Config:
    return Config((("SIZE", size),), 4, 3, (("split_k", 2),))


@pytest.fixture
def store(tmp_path: Path) -> Cache:
    return Cache("tuning", tmp_path / "here")


@pytest.fixture
def other(tmp_path: Path) -> Cache:
    """Another machine's."""
    return Cache("tuning", tmp_path / "there")


def finished(store: Cache, key: str = "key", subject: Subject = SUBJECT) -> Results:
    results = Results(key, subject, store)
    results.record(config(32), 2.0)
    results.record(config(64), 1.0)
    results.finish("quick", config(64))
    return results


def test_times_are_kept_as_they_come(store: Cache) -> None:
    clock = iter([0.0, 0.0, 10.0, 10.0, 10.1, 20.0, 20.0])
    results = Results("key", SUBJECT, store, lambda: next(clock))
    results.record(config(32), 2.0)
    assert Results("key", store=store).times == {config(32): 2.0}
    results.record(config(64), 1.0)
    results.record(config(128), 3.0)
    # The last came right after one that was written; it waits for the next.
    assert set(Results("key", store=store).times) == {config(32), config(64)}
    results.write()
    assert len(Results("key", store=store).times) == 3


def test_the_best_is_what_was_chosen_or_else_the_fastest_that_applies(store: Cache) -> None:
    results = Results("key", SUBJECT, store)
    assert results.best() is None
    results.record(config(32), 2.0)
    results.record(config(64), 1.0)
    assert results.best() == config(64)
    assert results.best(lambda chosen: chosen["SIZE"] < 64) == config(32)
    results.finish("quick", config(32))
    assert Results("key", store=store).best() == config(32)
    assert results.best(lambda chosen: False) is None


def test_what_was_chosen_unmeasured_is_kept_and_gives_way_to_what_was_measured(
    store: Cache,
) -> None:
    Results("key", SUBJECT, store).finish("none", config(32))
    results = Results("key", store=store)
    assert results.best() == config(32)
    assert results.serve("none") and not results.serve("quick")
    assert results.best(lambda chosen: chosen["SIZE"] > 32) is None
    results.record(config(64), 1.0)
    assert results.best() == config(64)
    results.finish("quick", config(64))
    assert Results("key", store=store).serve("quick")


def test_a_quick_search_does_not_stand_for_a_full_one(store: Cache) -> None:
    results = finished(store)
    assert results.serve("none") and results.serve("quick") and not results.serve("full")
    assert not Results("another", store=store).serve("none")


def test_results_of_two_processes_are_joined(store: Cache) -> None:
    first, second = Results("key", store=store), Results("key", store=store)
    first.record(config(32), 1.0)
    second.record(config(64), 2.0)
    assert Results("key", store=store).times == {config(32): 1.0, config(64): 2.0}
    assert Results("other key", store=store).times == {}


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"{", b"\xff", b'{"times": 1}', b'{"format": 1, "times": [], "finished": null}',
        b'{"format": 3, "subject": {}, "times": [[1, 2]], "finished": null, "chosen": null}',
        b'{"format": 3, "subject": {"x": 1}, "times": [], "finished": null, "chosen": null}',
        b'{"format": 3, "subject": {}, "times": [], "finished": "well", "chosen": null}',
        b'{"format": 3, "subject": [], "times": [], "finished": null, "chosen": null}',
    ],
)  # fmt: skip
def test_results_that_make_no_sense_are_a_miss(store: Cache, content: bytes) -> None:
    store.put("key", content)
    results = Results("key", store=store)
    assert results.times == {} and results.finished is None and results.best() is None


def test_an_entry_of_an_earlier_format_is_a_miss(store: Cache) -> None:
    finished(store)
    entry = json.loads(store.get("key"))
    store.put("key", json.dumps({**entry, "format": entry["format"] - 1}).encode())
    assert Results("key", store=store).times == {}
    results = finished(store)
    assert Results("key", store=store).times == results.times


def test_one_of_several_searches_and_the_others_read_what_it_found(store: Cache) -> None:
    order: list[str] = []
    begun = threading.Event()

    def first() -> None:
        with Results("key", store=store).alone(10.0):
            begun.set()
            finished(store)
            order.append("searched")

    thread = threading.Thread(target=first)
    thread.start()
    begun.wait(10)
    results = Results("key", store=store)
    with results.alone(10.0):
        order.append("read" if results.serve("quick") else "searched again")
    thread.join()
    assert order == ["searched", "read"]


def test_nobody_waits_for_ever(store: Cache) -> None:
    with store.lock("key", 0.0) as is_first, store.lock("key", 0.05) as is_second:
        assert is_first and not is_second
    with store.lock("key", 0.0) as is_held:
        assert is_held


def test_windows_has_locks_of_its_own(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module as it is there, with the part of Microsoft's runtime that it uses played by flock."""

    class Runtime(ModuleType):
        LK_NBLCK = 2

        def locking(self, descriptor: int, mode: int, size: int) -> None:
            assert (mode, size) == (self.LK_NBLCK, 1)
            try:
                cache.fcntl.flock(descriptor, cache.fcntl.LOCK_EX | cache.fcntl.LOCK_NB)
            except BlockingIOError:
                raise PermissionError(13, "Permission denied") from None

    monkeypatch.setitem(sys.modules, "msvcrt", Runtime("msvcrt"))
    monkeypatch.setattr(sys, "platform", "win32")
    spec = importlib.util.spec_from_file_location("cache_of_windows", cache.__file__)
    there = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(there)
    store = there.Cache("results", tmp_path)

    assert not hasattr(there, "fcntl")
    test_nobody_waits_for_ever(store)
    test_other_keys_are_not_locked(store)


def test_a_file_system_without_locks_is_no_error(store: Cache, monkeypatch) -> None:
    def refuse(descriptor: int) -> bool:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(cache, "_lock", refuse)
    with store.lock("key", 1.0) as is_held:
        assert not is_held


def test_other_keys_are_not_locked(store: Cache) -> None:
    with store.lock("one", 0.0) as one, store.lock("two", 0.0) as two:
        assert one and two


# Files for other machines.


def test_results_travel(store: Cache, other: Cache, tmp_path: Path) -> None:
    finished(store)
    file = tmp_path / "tuning.json"
    assert export_results(file, store=store) == 1
    assert import_results(file, other) == 1
    there = Results("key", store=other)
    assert there.best() == config(64) and there.serve("quick")
    assert entries(other)["key"].subject == SUBJECT


def test_what_was_measured_here_stays(store: Cache, other: Cache, tmp_path: Path) -> None:
    finished(store)
    mine = Results("key", SUBJECT, other)
    mine.record(config(64), 7.0)
    mine.finish("full", config(64))
    export_results(tmp_path / "tuning.json", store=store)
    import_results(tmp_path / "tuning.json", other)
    there = Results("key", store=other)
    assert there.times == {config(32): 2.0, config(64): 7.0} and there.finished == "full"


def test_the_results_of_one_device_can_be_chosen(store: Cache, tmp_path: Path) -> None:
    finished(store)
    finished(store, "other", Subject("mm", "NVIDIA A100"))
    file = tmp_path / "tuning.json"
    assert export_results(file, device="NVIDIA A100", store=store) == 1
    assert export_results(file, device="no such", store=store) == 0
    assert json.loads(file.read_text())["entries"] == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("{", "holds no tuning results"),
        ('{"times": []}', "holds no tuning results"),
        ("[" * 200_000, "holds no tuning results"),
        ('{"format": ["ninetoothed-tuning", 1], "entries": {}}', "format 'ninetoothed-tuning' 1"),
        ('{"format": ["\\u001b[2J", 1], "entries": {}}', r"format '\\x1b\[2J' 1"),
        ('{"format": ["ninetoothed-tuning", 3], "entries": {"k": {}}}', "is damaged"),
    ],
    ids=range(7),
)
def test_a_file_that_holds_no_results_is_an_error(tmp_path: Path, text, message, store) -> None:
    file = tmp_path / "tuning.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(NineToothedError, match=message):
        import_results(file, store)
    assert entries(store) == {}


def test_where_nothing_can_be_written_is_an_error(tmp_path: Path, store) -> None:
    with pytest.raises(
        NineToothedError, match="missing/tuning.json cannot be written: No such file"
    ):
        export_results(tmp_path / "missing" / "tuning.json", store=store)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a file without an end")
def test_a_file_without_an_end_is_not_read_to_it(store) -> None:
    with pytest.raises(NineToothedError, match="holds no tuning results"):
        import_results("/dev/zero", store)


def _entry(**changes):
    config = changes.pop("config", [[["SIZE", 64]], 4, 3, [["split_k", 2]]])
    entry = {
        "format": 3,
        "subject": {"kernel": "mm", "device": "NVIDIA H200"},
        "times": [[config, 1.0]],
        "finished": None,
        "chosen": None,
    }
    return {**entry, **changes}


@pytest.mark.parametrize(
    "changes",
    [
        {"config": [[["SIZE", 64]], 0, 3, []]},
        {"config": [[["SIZE", 64]], 3, 3, []]},
        {"config": [[["SIZE", 64]], 4, -1, []]},
        {"config": [[["SIZE", -64]], 4, 3, []]},
        {"config": [[["SIZE", 0]], 4, 3, []]},
        {"config": [[["SIZE", 2**40]], 4, 3, []]},
        {"config": [[["SIZE", 1.5]], 4, 3, []]},
        {"config": [[["SIZE\x1b[2J", 64]], 4, 3, []]},
        {"subject": {"kernel": "mm\x1b]0;title\x07"}},
        {"times": [[[[["SIZE", 64]], 4, 3, []], -1.0]]},
        {"times": [[[[["SIZE", 64]], 4, 3, []], float("nan")]]},
        {"chosen": [[["SIZE", 64]], 0, 3, []]},
    ],
)
def test_what_no_search_can_have_found_is_not_taken_in(changes, store, tmp_path) -> None:
    file = tmp_path / "results.json"
    content = {"format": ["ninetoothed-tuning", 3], "entries": {"key": _entry(**changes)}}
    file.write_text(json.dumps(content))
    with pytest.raises(NineToothedError, match="says what cannot be"):
        import_results(file, store)
    assert entries(store) == {}


def test_what_a_search_can_have_found_is_taken_in(store, tmp_path) -> None:
    file = tmp_path / "results.json"
    content = {"format": ["ninetoothed-tuning", 3], "entries": {"key": _entry()}}
    file.write_text(json.dumps(content))
    assert import_results(file, store) == 1
