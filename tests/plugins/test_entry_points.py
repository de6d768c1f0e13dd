"""A plugin installed with pip is found with no line in the user's code; uninstalled, it is gone."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

#: A user's program: not a word about plugins.
PROGRAM = """
import numpy as np

import ninetoothed
from ninetoothed import Tensor


def arrangement(x, y):
    return x.tile((16,)), y.tile((16,))


def application(x, y):
    y = x + 1


kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
x = np.arange(20, dtype=np.float32)
y = np.empty_like(x)
kernel(x, y)
assert np.array_equal(y, x + 1)
"""


class Environment:
    """A fresh environment that sees this one's packages, and the repository's."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        names = {"base": str(folder), "platbase": str(folder)}
        # Python 3.10 has no scheme of this name.
        is_named = "venv" in sysconfig.get_scheme_names()
        scheme = "venv" if is_named else sysconfig.get_preferred_scheme("prefix")
        self.packages = Path(sysconfig.get_path("purelib", scheme, vars=names))
        self.python = Path(sysconfig.get_path("scripts", scheme, vars=names)) / "python"
        paths = [str(REPOSITORY), sysconfig.get_path("purelib")]
        (self.packages / "shared.pth").write_text("\n".join(paths))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {n: value for n, value in os.environ.items() if n != "PYTHONPATH"}
        return subprocess.run(
            [str(self.python), *arguments],
            env=environment,
            cwd=self.packages,
            capture_output=True,
            text=True,
        )

    def pip(self, *arguments: str) -> None:
        result = self.run("-m", "pip", "--disable-pip-version-check", *arguments)
        assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Environment:
    for needed in ("pip", "hatchling"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"needs {needed}: pip install {needed}")
    return Environment(tmp_path_factory.mktemp("fresh"))


@pytest.fixture
def program(tmp_path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


def install(environment: Environment, name: str) -> None:
    folder = REPOSITORY / "plugins" / name
    environment.pip("install", "--no-deps", "--no-index", "--no-build-isolation", str(folder))


def test_an_installed_plugin_is_found_and_an_uninstalled_one_is_gone(environment, program) -> None:
    before = environment.run(program)
    assert "`x` must be a tensor, not numpy.ndarray" in before.stderr

    install(environment, "ninetoothed-numpy")
    with_plugin = environment.run(program)
    listed = environment.run("-m", "ninetoothed", "plugins")
    assert with_plugin.returncode == 0, with_plugin.stderr
    assert "numpy-arrays  0.1.0" in listed.stdout, listed.stdout + listed.stderr

    environment.pip("uninstall", "--yes", "ninetoothed-numpy")
    after = environment.run(program)
    assert "`x` must be a tensor, not numpy.ndarray" in after.stderr


@pytest.mark.parametrize("name", ["cupy", "jax"])
def test_each_plugin_can_be_installed_and_is_listed(environment, name) -> None:
    install(environment, f"ninetoothed-{name}")
    listed = environment.run("-W", "error", "-m", "ninetoothed", "plugins", "--json")
    assert f'"origin": "ninetoothed-{name}"' in listed.stdout, listed.stdout + listed.stderr
    assert '"state": "broken"' not in listed.stdout, listed.stdout
    environment.pip("uninstall", "--yes", f"ninetoothed-{name}")
