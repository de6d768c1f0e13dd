"""The library of the launches in C: compiled once, and where it cannot be, Python launches."""

from __future__ import annotations

import pytest

from ninetoothed.errors import DeviceError

jax = pytest.importorskip("jax", reason="needs JAX")
pytest.importorskip("triton", reason="needs Triton, whose compiler and headers are used")


from ninetoothed_jax import native  # noqa: E402


def test_it_is_compiled_once(monkeypatch, tmp_path):
    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", str(tmp_path))
    native.load()

    def refuse(*arguments):
        raise AssertionError("compiled again")

    monkeypatch.setattr("ninetoothed.backends.triton.compiler.versions.build_library", refuse)
    assert native.load().ninetoothed_size() % 64 == 0


def test_without_a_compiler_python_launches_and_one_warning_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(native, "runtime", lambda kind: None)

    def refuse(*arguments):
        raise RuntimeError("Failed to find C compiler.")

    monkeypatch.setattr("triton.runtime.build._build", refuse)
    with pytest.warns(RuntimeWarning, match=r"launched from Python.*Failed to find C compiler"):
        assert native.start(None, 0) is None


def test_a_library_of_other_structures_is_refused():
    class Library:
        @staticmethod
        def ninetoothed_size():
            return 64

    with pytest.raises(DeviceError, match=r"launch\.c was compiled with structures other"):
        native.Native(Library, None, 0, 0)
