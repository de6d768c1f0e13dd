"""What many processes share on disk: any doubt about an entry is a miss."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from ninetoothed import cache, tidying
from ninetoothed.cache import Cache, digest, write_source

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "cache"
    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", str(place))
    return place


def entry(root: Path) -> Path:
    """The one file of the kind ``things``."""
    (path,) = (root / "things").iterdir()
    return path


def test_what_was_stored_is_found(root: Path) -> None:
    for value in (b"", b"value", bytes(range(256)) * 1000):
        assert Cache("things").put("key", value)
        assert Cache("things").get("key") == value


def test_what_was_not_stored_is_a_miss(root: Path) -> None:
    Cache("things").put("key", b"value")
    assert Cache("things").get("other key") is None
    assert Cache("other").get("key") is None


def test_asking_creates_nothing(root: Path) -> None:
    assert Cache("things").get("key") is None
    assert not root.exists()


def test_importing_creates_nothing(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", "import ninetoothed.cache, ninetoothed.tuning"],
        env={**os.environ, "HOME": str(tmp_path), "NINETOOTHED_CACHE_DIR": ""},
        cwd=Path(__file__).parents[1],
        check=True,
    )
    assert not list(tmp_path.iterdir())


def test_the_directory_is_the_users_choice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NINETOOTHED_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache.directory() == tmp_path / ".cache" / "ninetoothed"

    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.directory() == tmp_path / ".cache" / "ninetoothed"

    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache.directory() == Path("/elsewhere/ninetoothed")

    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", "~/mine")
    assert cache.directory() == tmp_path / "mine"


@posix
def test_only_the_user_may_look(root: Path) -> None:
    before = os.umask(0)
    try:
        Cache("things").put("key", b"value")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (root, root / "things", entry(root))]
    assert modes == [0o700, 0o700, 0o600]


@posix
@pytest.mark.parametrize("where", ["root", "kind", "file"])
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_what_others_can_write_to_is_not_read(root: Path, where: str, mode: int) -> None:
    Cache("things").put("key", b"value")
    path = {"root": root, "kind": root / "things", "file": entry(root)}[where]
    path.chmod(path.stat().st_mode | mode)

    assert Cache("things").get("key") is None


@posix
def test_nothing_is_stored_where_others_can_write(root: Path) -> None:
    root.mkdir()
    root.chmod(0o777)

    assert not Cache("things").put("key", b"value")
    assert not list(root.glob("things/*"))


@posix
def test_what_another_user_owns_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Cache("things").put("key", b"value")
    owner = root.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    # The administrator could read everything anyway, so what is his is trusted.
    assert Cache("things").get("key") == (b"value" if owner == 0 else None)
    assert not cache.is_private(os.stat_result((0o40700, 0, 0, 0, owner + 2, 0, 0, 0, 0, 0)))


@posix
def test_a_link_in_the_place_of_an_entry_is_not_followed(root: Path, tmp_path: Path) -> None:
    Cache("things").put("key", b"value")
    path = entry(root)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")

    assert Cache("things").get("key") is None


def test_every_changed_byte_is_noticed(root: Path) -> None:
    Cache("things").put("key", b"value")
    path = entry(root)
    whole = path.read_bytes()
    for position in range(len(whole)):
        changed = bytearray(whole)
        changed[position] ^= 1
        path.write_bytes(changed)
        assert Cache("things").get("key") is None, position
    path.write_bytes(whole)
    assert Cache("things").get("key") == b"value"


def test_every_cut_is_noticed(root: Path) -> None:
    Cache("things").put("key", b"value")
    path = entry(root)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert Cache("things").get("key") is None, length


def test_an_entry_under_another_name_is_a_miss(root: Path) -> None:
    things = Cache("things")
    things.put("key", b"value")
    path = entry(root)
    things.put("other key", b"other value")
    (other,) = [found for found in (root / "things").iterdir() if found != path]
    path.replace(other)

    assert things.get("other key") is None


def test_a_place_that_cannot_be_written_to_is_no_error(root: Path) -> None:
    root.write_text("a file where the directory should be")
    assert not Cache("things").put("key", b"value")
    assert Cache("things").get("key") is None


def test_a_failed_write_leaves_what_was_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Cache("things").put("key", b"value")

    def refuse(*arguments: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    assert not Cache("things").put("key", b"newer value")
    assert Cache("things").get("key") == b"value"
    assert len(list((root / "things").iterdir())) == 1


def test_readers_see_one_whole_value_or_another(root: Path) -> None:
    values = [bytes([number]) * 100_000 for number in range(4)]
    things = Cache("things")
    things.put("key", values[0])
    seen = set()

    def write(value: bytes) -> None:
        for _ in range(20):
            things.put("key", value)

    threads = [threading.Thread(target=write, args=(value,)) for value in values]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        seen.add(things.get("key"))
    assert seen <= set(values)
    assert things.get("key") in values and len(list((root / "things").iterdir())) == 1


def test_a_digest_tells_parts_apart() -> None:
    different = [
        ("a", "b"), ("ab",), ("a", "b", ""), (b"a", b"b"), ("a", b"b"), (1,), ("1",), (1.0,), (True,),
        ((1, 2),), (1, 2), (None,), (),
    ]  # fmt: skip
    assert len({digest(*parts) for parts in different}) == len(different)
    assert digest("a", 1) == digest("a", 1)


def test_a_digest_is_the_same_in_every_process() -> None:
    script = "from ninetoothed.cache import digest; print(digest('a', b'b', 3, (4.5, None)))"
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {digest("a", b"b", 3, (4.5, None))}


def test_a_source_is_written_once_and_named_by_its_content(root: Path) -> None:
    first = write_source("mm kernel", "x = 1\n")
    assert first.read_text() == "x = 1\n" and first.name.startswith("mm_kernel_")
    written = first.stat().st_mtime_ns
    assert write_source("mm kernel", "x = 1\n") == first and first.stat().st_mtime_ns == written
    assert write_source("mm kernel", "x = 2\n") != first
    assert root in first.parents


def test_a_source_that_was_changed_is_written_again(root: Path) -> None:
    path = write_source("kernel", "x = 1\n")
    path.write_text("import os\n")
    assert write_source("kernel", "x = 1\n").read_text() == "x = 1\n"


@posix
def test_a_source_goes_elsewhere_where_others_can_write(root: Path) -> None:
    root.mkdir()
    root.chmod(0o777)

    path = write_source("kernel", "x = 1\n")

    assert root not in path.parents and path.read_text() == "x = 1\n"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_kind_is_a_plain_name() -> None:
    with pytest.raises(ValueError, match="identifier"):
        Cache("../elsewhere")


def test_without_a_home_a_temporary_directory_serves_and_a_warning_says_so(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, warnings\n"
        "def no_home(self): raise RuntimeError('Could not determine home directory.')\n"
        "pathlib.Path.expanduser = no_home\n"
        "from ninetoothed import cache\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    assert cache.Cache('things').put('key', b'value')\n"
        "    assert cache.Cache('things').get('key') == b'value'\n"
        "assert len(caught) == 1 and 'NINETOOTHED_CACHE_DIR' in str(caught[0].message), caught\n"
        "print(cache.directory())\n"
    )
    environment = {**os.environ, "NINETOOTHED_CACHE_DIR": "", "XDG_CACHE_HOME": ""}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not Path(done.stdout.strip()).exists()


@posix
@pytest.mark.parametrize("place", ["~nobody-of-that-name/kernels", "kernels", "/tmp/\udcff"])
def test_where_the_chosen_place_cannot_be_told_a_temporary_one_serves(
    place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A home that nobody has, a directory below one that is gone, and a name that is no UTF-8."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", place)
    cache._without_home.cache_clear()
    with pytest.warns(RuntimeWarning, match="Set NINETOOTHED_CACHE_DIR"):
        assert Cache("things").put("key", b"value")
    assert Cache("things").get("key") == b"value"


@posix
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(root: Path) -> None:
    kept = Cache("things", root)
    assert kept.put("key", b"value")
    path = entry(root)
    path.unlink()
    os.mkfifo(path)
    assert kept.get("key") is None
    assert list(kept.entries()) == []
    assert kept.put("key", b"value")
    assert kept.get("key") == b"value"


def test_a_file_larger_than_all_that_is_kept_is_not_read(root: Path) -> None:
    kept = Cache("things", root)
    assert kept.put("key", b"value")
    with open(entry(root), "r+b") as file:
        file.truncate(1 << 37)
    assert kept.get("key") is None
    assert kept.put("key", b"value")
    assert kept.get("key") == b"value"


def test_what_an_interrupted_write_left_behind_goes_after_a_day(root: Path) -> None:
    Cache("things").put("key", b"value")
    old, new = root / "things" / ".aside-old", root / "things" / ".aside-new"
    for path in (old, new):
        path.write_bytes(b"half")
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(old, (two_days_ago, two_days_ago))

    tidying.tidy(root)

    assert not old.exists() and new.exists()
    assert Cache("things").get("key") == b"value"


def test_nothing_is_removed_where_the_cache_was_not_the_first(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that holds other things too: the user's, or what a link leads to."""
    thesis = root / "sources" / "thesis"
    thesis.parent.mkdir(parents=True, mode=0o700)
    thesis.write_bytes(bytes(300_000))
    (root / "CACHEDIR.TAG").write_text(
        "Signature: 8a477f597d28d172789f06886806bc55\n# Another's.\n"
    )
    monkeypatch.setenv("NINETOOTHED_CACHE_LIMIT", "0.1")

    assert Cache("things").put("key", bytes(300_000))
    tidying.tidy(root)

    assert thesis.exists()
    assert Cache("things").get("key")


def test_a_directory_that_the_cache_made_says_so(root: Path) -> None:
    assert Cache("things").put("key", b"value")
    assert (root / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f0688")


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs the administrator")
def test_a_strangers_link_to_a_directory_of_ours_is_not_followed(
    root: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    root.symlink_to(home)
    assert Cache("things").put("key", b"value")
    assert Cache("things").get("key") == b"value"
    os.chown(root, 1234, 1234, follow_symlinks=False)
    with pytest.warns(RuntimeWarning, match="it is a link of the user 1234"):
        assert Cache("things").get("key") is None
    assert not Cache("things").put("other", b"value")
    assert len(list((home / "things").iterdir())) == 1


def test_beyond_the_limit_the_longest_unused_go_and_what_was_measured_stays(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("tuning", "things"):
        for age in range(4):
            store = Cache(kind)
            store.put(f"key {age}", bytes(300_000))
            path = store.path_of(cache._entry_name(f"key {age}"))
            then = time.time() - age * 1000
            os.utime(path, (then, then))
    monkeypatch.setenv("NINETOOTHED_CACHE_LIMIT", "0.7")

    tidying.tidy(root)

    kept = [age for age in range(4) if Cache("things").get(f"key {age}") is not None]
    assert kept == [0, 1]
    assert all(Cache("tuning").get(f"key {age}") for age in range(4))


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners and modes of files")
@pytest.mark.parametrize("what", ["directory", "entries", "file", "link"])
def test_a_refusal_says_which_path_and_why_once(tmp_path: Path, what: str) -> None:
    root = tmp_path / "cache"
    store = Cache("things", root)
    assert store.put("key", b"value")
    (entry,) = (root / "things").iterdir()
    refused = {"directory": root, "entries": root / "things"}.get(what, entry)
    if what == "link":
        entry.rename(tmp_path / "elsewhere")
        entry.symlink_to(tmp_path / "elsewhere")
        why = "it is a link"
    else:
        refused.chmod(0o777)
        why = "others may write to it, its mode is 777"

    with pytest.warns(RuntimeWarning, match=f"^{refused} is not used.*: {why}.*NINETOOTHED_CACHE"):
        assert store.get("key") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.get("key") is None
