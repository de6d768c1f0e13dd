"""Compiled kernels that are found on disk without asking Triton."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("triton")

from ninetoothed.backends import triton as triton_backend
from ninetoothed.backends.triton.compiler import binaries, installed
from ninetoothed.backends.triton.compiler.binaries import Binaries
from ninetoothed.backends.triton.planning.planner import compiled_for
from ninetoothed.backends.triton.specialization.target import Target
from ninetoothed.backends.triton.translation import specialize
from ninetoothed.cache import Cache
from ninetoothed.errors import CompilationError
from ninetoothed.tuning.space import Config
from tests.golden.kernels import TEN
from tests.triton.planning.test_planner import product

HOPPER = Target("cuda", 90, 32)
KERNEL = TEN["mm"]


def tiles(size: int, warps: int = 4) -> Config:
    return Config(tuple((f"BLOCK_SIZE_{axis}", size) for axis in "MNK"), warps, 3)


@pytest.fixture
def store(tmp_path) -> Binaries:
    return Binaries(Cache("binaries", tmp_path))


@pytest.fixture
def specialized():
    return specialize(KERNEL.definition, product(64, 64, 64), tiles(32))


def key(specialized, warps: int = 4, stages: int = 3, target: Target = HOPPER) -> str | None:
    return binaries.key_of(specialized, "mm", target, warps, stages)


def test_what_was_kept_is_what_a_launch_needs(store, specialized) -> None:
    compiled = compiled_for(KERNEL.definition, specialized, HOPPER, tiles(32))
    store.put(key(specialized), compiled)
    found = store.get(key(specialized))
    assert (found.name, found.kernel) == (compiled.name, compiled.kernel)
    assert found.packed_metadata == compiled.packed_metadata
    assert found.src.signature == compiled.src.signature
    wanted = compiled.metadata._asdict()
    assert {**found.metadata._asdict(), "target": None} == {**wanted, "target": None}
    assert vars(found.metadata.target) == vars(wanted["target"])


def test_what_was_not_kept_is_not_found(store, specialized) -> None:
    assert store.get(key(specialized)) is None and store.get(None) is None


def test_what_makes_no_sense_is_a_miss(tmp_path, specialized) -> None:
    cache = Cache("binaries", tmp_path)
    for content in (b"", b"\x05" + bytes(7) + b"[]xyz", b"\x02" + bytes(7) + b"{}", b"\xff" * 20):
        cache.put(key(specialized), content)
        assert Binaries(cache).get(key(specialized)) is None


def test_a_key_tells_all_that_the_code_depends_on(specialized, monkeypatch) -> None:
    others = [
        key(specialized, warps=8),
        key(specialized, stages=2),
        key(specialized, target=Target("cuda", 80, 32)),
        key(specialize(KERNEL.definition, product(63, 63, 63), tiles(32))),
        key(specialize(KERNEL.definition, product(64, 64, 64), tiles(64))),
    ]
    monkeypatch.setenv("DISABLE_LLVM_OPT", "1")
    others.append(key(specialized))
    monkeypatch.undo()
    assert None not in others and key(specialized) not in others
    assert len(set(others)) == len(others)
    assert key(specialized) == key(specialize(KERNEL.definition, product(64, 64, 64), tiles(32)))


def test_another_build_of_triton_is_another_key(specialized, monkeypatch) -> None:
    before = key(specialized)
    monkeypatch.setattr(binaries, "_library", lambda: ("3.6.0", 1, 2, "linux"))
    assert key(specialized) != before


@pytest.mark.parametrize(
    "file",
    ["library.py", "division.py", "specialization/magic_division.py", "compiler/reductions.py"],
)
def test_another_function_that_kernels_call_is_another_key(
    specialized, file, tmp_path, monkeypatch
):
    before = key(specialized)
    copy = tmp_path / "triton"
    shutil.copytree(Path(triton_backend.__path__[0]), copy)
    assert binaries._functions(copy) == binaries._functions()
    (copy / file).write_text((copy / file).read_text() + "\n")
    binaries._functions.cache_clear()
    changed = binaries._functions(copy)
    monkeypatch.setattr(binaries, "_functions", lambda: changed)

    assert key(specialized) != before


def test_who_wants_everything_compiled_anew_gets_it(specialized, monkeypatch) -> None:
    monkeypatch.setattr(installed, "is_compiling_always", lambda: True)
    assert key(specialized) is None


def test_what_has_an_address_in_its_key_is_not_kept(specialized) -> None:
    assert key(replace(specialized, constants={"scale": object()})) is None


def test_a_program_that_the_assembler_refuses_is_not_printed(capfd) -> None:
    """16 warps have 128 registers a thread, and their sums alone take all of them."""
    config = Config((("BLOCK_SIZE_K", 32), ("BLOCK_SIZE_M", 256), ("BLOCK_SIZE_N", 256)), 16, 2)
    wide = specialize(KERNEL.definition, product(4096, 4096, 4096), config)
    with pytest.raises(CompilationError, match="ptxas|registers"):
        compiled_for(KERNEL.definition, wide, HOPPER, config)
    assert "reproducer" not in capfd.readouterr().out
