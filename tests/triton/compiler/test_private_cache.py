"""What is loaded into the process comes from a directory of the user's alone."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

from ninetoothed.backends.triton.compiler.private_cache import environment, private_cache


@pytest.fixture
def roots(tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o777)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(shared))
    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", str(tmp_path / "own"))
    return shared, tmp_path / "own"


def manager():
    from triton.compiler import compiler

    return compiler.get_cache_manager("ab" * 32)


def test_what_triton_makes_for_us_is_kept_in_our_own_directory(roots) -> None:
    shared, own = roots
    with private_cache():
        path = Path(manager().put(b"code", "kernel.cubin"))
        assert manager().get_file("kernel.cubin") == str(path)
    assert own in path.parents and not list(shared.rglob("kernel.cubin"))
    for folder in path.parents:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        if folder == own:
            break


def test_what_the_user_has_triton_compile_is_kept_where_it_was(roots) -> None:
    with private_cache():
        pass
    assert roots[0] in Path(manager().put(b"code", "kernel.cubin")).parents


def test_what_was_altered_is_not_taken(roots) -> None:
    with private_cache():
        paths = {name: manager().put(b"code", name) for name in ("kernel.json", "kernel.cubin")}
        manager().put_group("kernel.json", paths)
        assert manager().get_group("kernel.json") == paths
        Path(paths["kernel.cubin"]).write_bytes(b"evil")
        assert manager().get_file("kernel.cubin") is None
        assert manager().get_group("kernel.json") is None


def test_what_belongs_elsewhere_is_not_taken(roots) -> None:
    """Files that were restored, or synchronised, under each other's names with their digests."""
    with private_cache():
        one, other = (
            Path(manager().put(code, name)) for code, name in ((b"1", "one"), (b"2", "two"))
        )
        for ending in ("", ".sha256"):
            Path(f"{one}{ending}").write_bytes(Path(f"{other}{ending}").read_bytes())
        assert manager().get_file("one") is None
        assert manager().get_file("two") == str(other)


def test_a_directory_that_others_can_write_to_is_not_used(roots) -> None:
    own = roots[1]
    own.mkdir()
    own.chmod(0o777)
    with private_cache():
        path = Path(manager().put(b"code", "kernel.cubin"))
    assert own not in path.parents and roots[0] not in path.parents


@pytest.mark.parametrize("name", ["PTXAS_OPTIONS", "TRITON_PTXAS_PATH", "DISABLE_PTXAS_OPT"])
def test_what_the_assembler_is_told_is_among_the_settings(name, monkeypatch) -> None:
    before = environment()
    monkeypatch.setenv(name, "-O1")
    assert environment() != before


def test_another_assembler_in_the_same_place_is_another_setting(tmp_path, monkeypatch) -> None:
    tool = tmp_path / "ptxas"
    tool.write_text("one")
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(tool))
    before = environment()
    tool.write_text("another")
    assert environment() != before


def test_where_triton_keeps_its_files_is_no_setting(tmp_path, monkeypatch) -> None:
    before = environment()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    assert environment() == before


#: Prints the variables that Triton's library counts, of all words in it that could be one.
_COUNTED = """
import mmap, os, re
from triton._C import libtriton
with open(libtriton.__file__, "rb") as file:
    content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    for word in set(re.findall(rb"\\0([A-Z][A-Z0-9]+_[A-Za-z0-9_]{2,50})(?=\\0)", content)):
        os.environ[word.decode()] = "1"
print(*libtriton.get_cache_invalidating_env_vars())
"""


def test_what_tritons_library_counts_is_among_the_settings(monkeypatch) -> None:
    """A kernel is looked for on disk without importing Triton, so that it cannot be asked."""
    done = subprocess.run([sys.executable, "-c", _COUNTED], capture_output=True, text=True)
    counted = done.stdout.split()
    assert len(counted) > 20, done.stderr
    for name in counted:
        monkeypatch.setenv(name, "1")
    assert {*counted} <= {name for name, *_ in environment()}
