"""What is told of a Triton that is installed and not imported is what it tells itself."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys

import pytest

pytest.importorskip("triton")

from ninetoothed.backends.triton.compiler import versions

_TOLD = """
import os, sys
from ninetoothed.backends.triton.compiler import installed, versions
found = versions.version(), installed.release(), os.stat(installed.library_path()).st_ino
print(found, installed.is_compiling_always(), "triton" in sys.modules)
"""

_VERSION = """
from ninetoothed.backends.triton.compiler import versions
from ninetoothed.errors import DeviceError
try:
    print(versions.version())
except DeviceError as error:
    print(error)
"""


def told(**variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, "-c", _TOLD], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def expected() -> tuple[object, ...]:
    import triton
    from triton._C import libtriton

    return versions.version(), triton.__version__, os.stat(libtriton.__file__).st_ino


def test_its_version_and_library_are_its_own() -> None:
    assert told() == f"{expected()} False False"


@pytest.mark.parametrize(
    "name", ["TRITON_ALWAYS_COMPILE", "TRITON_KERNEL_OVERRIDE", "TRITON_KERNEL_DUMP"]
)
def test_it_is_asked_whether_it_compiles_always_where_it_is_told(name) -> None:
    assert told(**{name: "1"}) == f"{expected()} True True"
    assert told(**{name: "0"}) == f"{expected()} False True"


def test_one_that_writes_it_in_another_way_is_imported_and_asked(tmp_path) -> None:
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text("__version__ = '.'.join(['3', '7', '1'])\n")
    assert version_with(tmp_path) == "(3, 7)"


def test_one_without_its_text_is_imported_and_asked(tmp_path) -> None:
    (tmp_path / "triton").mkdir()
    source = tmp_path / "source.py"
    source.write_text("__version__ = '3.8.0'\n")
    py_compile.compile(str(source), str(tmp_path / "triton" / "__init__.pyc"))
    assert version_with(tmp_path) == "(3, 8)"


def test_one_that_is_too_old_is_refused(tmp_path) -> None:
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text("__version__ = '3.5.1'\n")
    assert "Triton 3.5.1 is too old: 3.6 or newer" in version_with(tmp_path)


def test_without_one_the_error_says_how_to_install_it(tmp_path) -> None:
    (tmp_path / "triton").mkdir()  # A folder of this name is none.
    (tmp_path / "triton" / "notes.txt").touch()
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['triton'] = None\n")
    found = version_with(tmp_path)
    assert "needs Triton, which is not installed: `pip install triton`" in found


def version_with(folder) -> str:
    """The version that is told where this folder is searched first, or why there is none."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", _VERSION],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


_THREADS = """
import threading, time
from ninetoothed.backends.triton.compiler import versions
from ninetoothed.backends.triton.compiler.compile import compile_source
from ninetoothed.backends.triton.specialization.target import Target
SOURCE = '''import triton
import triton.language as tl
@triton.jit
def fill_kernel(x):
    tl.store(x, 1.0)
'''
def work(number):
    time.sleep(0.004 * number)
    try:
        if number % 4 == 3:
            assert versions.has_gluon()
        elif number % 4 == 2:
            versions.driver_module("hip")
        else:
            compile_source(SOURCE, "fill_kernel", {"x": "*fp32"}, {}, {}, Target("cuda", 80, 32))
    except BaseException as error:
        print(repr(error))
threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_that_begin_with_it_while_another_imports_it_wait(tmp_path) -> None:
    environment = {**os.environ, "NINETOOTHED_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", _THREADS], env=environment, capture_output=True, text=True
    )
    assert (done.stdout, done.returncode) == ("", 0), done.stdout + done.stderr
