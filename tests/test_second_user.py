"""Another user of the machine plants files in every directory that the package reads: nothing of his is believed.

It needs to be root and `setpriv`, to be two users; without either it is skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="needs Triton, which compiles for a device that is not there")

ROOT = Path(__file__).parents[1]
STRANGER = 65534

pytestmark = pytest.mark.skipif(
    getattr(os, "geteuid", lambda: 1)() != 0 or shutil.which("setpriv") is None,
    reason="needs root and setpriv, to run as a second user",
)

#: Compiles for a device, runs on the CPU, and says what came out.
VICTIM = """
import torch, warnings
warnings.simplefilter("default")
from examples import silu
x = torch.arange(100.0)
out = torch.full((100,), float("nan"))
binary = silu.kernel.compile(x, out, 64, target=("cuda", 90)).asm["cubin"]
silu.kernel.source_path
silu.kernel(x, out, 64)
torch.testing.assert_close(out, torch.nn.functional.silu(x))
print("right", len(binary), binary[:4])
"""

#: What the stranger does to a directory: each file says that it was executed, and where.
STRANGER_DOES = """
import os, pathlib, sys, time
root, evidence, until = pathlib.Path(sys.argv[1]), sys.argv[2], time.time() + float(sys.argv[3])
trap = f"open({evidence!r}, 'a').write('executed')\\n"
while True:
    for path in root.rglob("*"):
        try:
            if path.is_file() and not path.is_symlink():
                path.write_text(trap if path.suffix == ".py" else "planted")
        except OSError:
            pass
    if time.time() > until:
        break
    time.sleep(0.05)
"""


def _victim(environment, timeout=500):
    base = {k: v for k, v in os.environ.items() if k not in VARIABLES}
    return subprocess.run(
        [sys.executable, "-c", VICTIM],
        cwd=ROOT,
        env={**base, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def _as_stranger(*arguments):
    privileges = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
    return subprocess.Popen([*privileges, *map(str, arguments)])


VARIABLES = ("NINETOOTHED_CACHE_DIR", "TRITON_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR")


@pytest.fixture(scope="module")
def genuine(tmp_path_factory):
    """What a run of the victim's leaves in directories of his own."""
    root = tmp_path_factory.mktemp("genuine")
    environment = {name: str(root / name) for name in VARIABLES}
    for path in environment.values():
        Path(path).mkdir(mode=0o700)
    done = _victim(environment)
    assert done.returncode == 0, done.stderr
    return root


def _opened():
    """A directory that anybody may reach: pytest's own are private."""
    base = Path("/tmp") / f"second_user_{os.getpid()}_{time.monotonic_ns()}"
    base.mkdir(mode=0o755)
    return base


@pytest.fixture
def open_directory():
    base = _opened()
    yield base
    shutil.rmtree(base, ignore_errors=True)


@pytest.mark.parametrize("name", VARIABLES)
def test_what_a_stranger_planted_is_not_believed(genuine, open_directory, name):
    shared, evidence = open_directory / "shared", open_directory / "evidence"
    shutil.copytree(genuine / name, shared)
    for path in (shared, *shared.rglob("*")):
        os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
        path.chmod(0o777)
    evidence_of = open_directory / "theirs"
    evidence_of.mkdir(mode=0o777)
    evidence_of.chmod(0o777)
    evidence = evidence_of / "evidence"
    _as_stranger(sys.executable, "-c", STRANGER_DOES, shared, evidence, 0).wait(300)
    private = {v: str(open_directory / v) for v in VARIABLES if v != name}
    for path in private.values():
        Path(path).mkdir(mode=0o700)

    done = _victim({**private, name: str(shared)})

    assert done.returncode == 0, done.stderr
    assert "right" in done.stdout and "ELF" in done.stdout
    assert not evidence.exists()
    if name == "NINETOOTHED_CACHE_DIR":
        assert f"{shared} is not used as a cache of kernels: it belongs to the user" in done.stderr


def test_a_stranger_who_writes_all_the_while_harms_nothing(genuine, open_directory):
    shared, theirs = open_directory / "shared", open_directory / "theirs"
    for path in (shared, theirs):
        path.mkdir()
        path.chmod(0o777)
    writer = _as_stranger(sys.executable, "-c", STRANGER_DOES, shared, theirs / "evidence", 600)
    try:
        done = _victim(dict.fromkeys(VARIABLES, str(shared)))
    finally:
        writer.kill()
        writer.wait()

    assert done.returncode == 0, done.stderr
    assert "right" in done.stdout and "ELF" in done.stdout
    assert not (theirs / "evidence").exists()


def test_a_link_of_a_strangers_is_not_followed(genuine, open_directory):
    shared, treasure = open_directory / "shared", open_directory / "treasure"
    shared.mkdir()
    shared.chmod(0o777)
    treasure.mkdir(mode=0o755)
    (treasure / "kept").write_text("the victim's")
    for name in ("ninetoothed", "triton", "entries", "sources", "binaries", "results"):
        _as_stranger("ln", "-s", treasure, shared / name).wait(300)

    done = _victim(dict.fromkeys(VARIABLES, str(shared)))

    assert done.returncode == 0, done.stderr
    assert [path.name for path in treasure.iterdir()] == ["kept"]


#: The stranger has links to a directory of the victim's come and go in the place of the cache.
STRANGER_EXCHANGES = """
import os, sys, time
place, home, until = sys.argv[1], sys.argv[2], time.time() + float(sys.argv[3])
steps = (
    lambda: os.rename(place, place + "x"),
    lambda: os.symlink(home, place),
    lambda: os.unlink(place),
    lambda: os.rename(place + "x", place),
)
while time.time() < until:
    for step in steps:
        try:
            step()
        except OSError:
            pass
"""

#: Stores more than is kept, again and again.
VICTIM_STORES = """
import time, warnings
from ninetoothed import cache
warnings.simplefilter("ignore")
until = time.time() + 4
while time.time() < until:
    cache._tidy_once.cache_clear()
    cache.Cache("things").put("key", bytes(20_000))
"""


@pytest.mark.parametrize("is_race", [False, True])
def test_a_strangers_link_costs_the_victim_no_file(open_directory, is_race):
    shared, home = open_directory / "shared", open_directory / "home"
    shared.mkdir()
    shared.chmod(0o777)
    (home / "papers").mkdir(parents=True, mode=0o755)
    thesis = home / "papers" / "thesis"
    thesis.write_bytes(bytes(20_000))
    os.utime(thesis, (0, 0))
    place = shared / "ninetoothed"
    if is_race:
        stranger = _as_stranger(sys.executable, "-c", STRANGER_EXCHANGES, place, home, 6)
    else:
        stranger = _as_stranger("ln", "-s", home, place)
        stranger.wait(300)
        assert place.is_symlink()
    environment = {k: v for k, v in os.environ.items() if k not in VARIABLES}
    environment |= {"XDG_CACHE_HOME": str(shared), "NINETOOTHED_CACHE_LIMIT": "0.01"}

    done = subprocess.run(
        [sys.executable, "-c", VICTIM_STORES], cwd=ROOT, env=environment, timeout=100, check=False
    )

    assert stranger.wait(100) == 0
    assert done.returncode == 0
    assert thesis.exists()
    assert not (home / "CACHEDIR.TAG").exists()
