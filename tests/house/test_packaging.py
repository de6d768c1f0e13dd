"""What the packages say of themselves: plugins have versions of their own and ask for the core that serves."""

import re
import sys
from pathlib import Path

import pytest

import ninetoothed

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli", reason="needs tomllib, of Python 3.11, or tomli")

ROOT = Path(__file__).parents[2]
PLUGINS = sorted(ROOT.glob("plugins/*/pyproject.toml"))


def test_there_are_plugins():
    assert len(PLUGINS) >= 3


@pytest.mark.parametrize("path", PLUGINS, ids=lambda path: path.parent.name)
def test_a_plugin_asks_for_a_core_of_this_line(path):
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]

    # Another project's releases, up to 0.26, have the core's name too.
    assert "ninetoothed>=1.0.0.dev0,<2" in project["dependencies"]
    assert ninetoothed.__version__.partition(".")[0] == "1"
    assert re.fullmatch(r"\d+\.\d+\.\d+", project["version"])
    assert project["name"] == path.parent.name
    assert (path.parent / "LICENSE").read_text(encoding="utf-8").strip()
    assert project["license-files"] == ["LICENSE"]
    assert project["entry-points"]["ninetoothed"]
