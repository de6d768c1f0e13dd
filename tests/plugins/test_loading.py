"""Plugins that are installed, broken or interrupted: they stop nobody."""

from __future__ import annotations

import functools
import importlib
import linecache
import os
import subprocess
import sys
import warnings

import pytest

from ninetoothed import plugins
from ninetoothed.errors import DeviceError, PluginError
from ninetoothed.plugins import PluginManager
from tests.plugins.toys import Other, Toy, ToyBackend, frontend, plugin

PACKAGE = os.path.dirname(plugins.__file__)


def test_an_installed_plugin_for_another_contract_stops_nobody(tmp_path, monkeypatch):
    _install(tmp_path, monkeypatch, "ancient", "NINETOOTHED_CONTRACT = 0")
    manager = PluginManager(built_in={"torch": "ninetoothed.frontends.torch"})
    with pytest.warns(RuntimeWarning, match="'ancient'.*written for contract 0") as caught:
        manager.frontend_named("torch")
        manager.frontend_named("torch")
    assert len(caught) == 1
    why = {listed.name: listed.why for listed in manager.listing()}
    assert "contract 0" in why["ancient"]
    assert why["torch"] == ""


def test_a_broken_built_in_is_reported_once_and_stops_nobody():
    manager = PluginManager(
        built_in={"gone": "ninetoothed_no_such_module", "torch": "ninetoothed.frontends.torch"},
        group=None,
    )
    with pytest.warns(RuntimeWarning, match="'gone'.*ninetoothed_no_such_module"):
        assert manager.frontend_named("torch").name == "torch"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        listing = {listed.name: listed for listed in manager.listing()}
    assert "ModuleNotFoundError" in listing["gone"].why
    assert listing["torch"].why == ""
    assert listing["torch"].frontends == ("torch",)


def test_a_broken_plugin_is_named_where_something_is_missing():
    manager = PluginManager(built_in={"gone": "ninetoothed_no_such_module"}, group=None)
    with (
        pytest.warns(RuntimeWarning, match="gone"),
        pytest.raises(DeviceError, match="Broken plugins: gone"),
    ):
        manager.backend_for("toy")


def _install(tmp_path, monkeypatch, name, module_source):
    """Makes an installed distribution with one entry point, as pip would leave it."""
    module = f"{name}_plugin"
    (tmp_path / f"{module}.py").write_text(module_source)
    metadata = tmp_path / f"{name}-1.5.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    (metadata / "entry_points.txt").write_text(f"[ninetoothed]\n{name} = {module}\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()


def test_an_installed_plugin_is_found_through_its_entry_point(tmp_path, monkeypatch):
    source = (
        "from tests.plugins.toys import frontend, hookimpl\n"
        "NINETOOTHED_CONTRACT = 1\n"
        "@hookimpl\n"
        "def ninetoothed_frontends():\n"
        "    return [frontend('installed_toy')]\n"
    )
    _install(tmp_path, monkeypatch, "installed_toy", source)
    manager = PluginManager(built_in={})
    assert manager.frontend_named("installed_toy").name == "installed_toy"
    assert ("installed_toy", "1.5") in {(each.origin, each.version) for each in manager.listing()}


def test_a_broken_installed_plugin_stops_nobody(tmp_path, monkeypatch):
    _install(tmp_path, monkeypatch, "sinking", "raise OSError('no such library')")
    manager = PluginManager(built_in={"torch": "ninetoothed.frontends.torch"})
    with pytest.warns(RuntimeWarning, match="'sinking'.*sinking 1.5.*no such library"):
        assert manager.frontend_named("torch").name == "torch"
    why = {listed.name: listed.why for listed in manager.listing()}
    assert why["sinking"] == "OSError: no such library"


@pytest.mark.parametrize("where", ["at import", "in a hook"])
def test_an_installed_plugin_that_ends_the_program_stops_nobody(where, tmp_path, monkeypatch):
    name = "quitting_" + where.replace(" ", "_")
    source = "import sys\nsys.exit('no licence')"
    if where == "in a hook":
        source = (
            "import sys\n"
            "from ninetoothed.plugins.hookspecs import hookimpl\n"
            "NINETOOTHED_CONTRACT = 1\n"
            "@hookimpl\n"
            "def ninetoothed_frontends():\n"
            "    sys.exit('no licence')\n"
        )
    _install(tmp_path, monkeypatch, name, source)
    manager = PluginManager(built_in={"torch": "ninetoothed.frontends.torch"})
    with pytest.warns(RuntimeWarning, match=f"'{name}'.*SystemExit: no licence"):
        assert manager.frontend_named("torch").name == "torch"
    assert "no licence" in {listed.name: listed.why for listed in manager.listing()}[name]


def test_a_broken_plugin_stops_nobody_where_warnings_are_errors():
    manager = PluginManager(
        built_in={"gone": "ninetoothed_no_such_module", "torch": "ninetoothed.frontends.torch"},
        group=None,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert manager.frontend_named("torch").name == "torch"


class Unprintable(BaseException):
    def __str__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), Unprintable()])
def test_whatever_a_frontend_raises_over_a_type_stops_nobody(manager, error):
    def owns(type_):
        raise error

    toy = frontend()
    manager.register(plugin([frontend("failing", owns=owns)]), "failing-plugin")
    manager.register(plugin([toy]))
    with pytest.warns(RuntimeWarning, match=f"'failing-plugin'.*{type(error).__name__}"):
        assert manager.frontend_of(Toy) is toy


def test_an_interrupt_in_a_frontend_is_the_users(manager):
    def owns(type_):
        raise KeyboardInterrupt

    manager.register(plugin([frontend("slow", owns=owns)]))
    with pytest.raises(KeyboardInterrupt):
        manager.frontend_of(Toy)


class WithoutContract:
    @property
    def NINETOOTHED_CONTRACT(self):
        raise ZeroDivisionError("no idea")


class WithoutKinds(ToyBackend):
    @property
    def device_kinds(self):
        raise ZeroDivisionError("no idea")


@pytest.mark.parametrize("broken", [WithoutContract(), plugin(backends=[WithoutKinds()])])
def test_what_raises_while_it_is_registered_is_an_error_with_its_name(manager, broken):
    with pytest.raises(PluginError, match="'broken' failed: ZeroDivisionError: no idea"):
        manager.register(broken, "broken")
    manager.register(plugin([frontend()]))
    assert manager.frontend_of(Toy).name == "toy"


def test_a_frontend_that_fails_over_a_type_stops_nobody_and_is_listed(manager):
    def owns(type_):
        raise ZeroDivisionError("no idea")

    toy = frontend()
    manager.register(plugin([frontend("failing", owns=owns)]), "failing-plugin")
    manager.register(plugin([toy]))
    with pytest.warns(RuntimeWarning, match="'failing-plugin'.*owns.*ZeroDivisionError") as caught:
        assert manager.frontend_of(Toy) is toy
        assert manager.find_frontend(int) is None
    assert len(caught) == 1
    assert "no idea" in manager.listing()[0].why


def _interrupted_after(steps, function):
    """Runs a function, and has Ctrl-C arrive after so many traced steps; whether it did."""
    left = steps

    def trace(frame, event, argument):
        nonlocal left
        # With the lock's own lines left out: Python looks for signals between none of them.
        if event == "line" and frame.f_code.co_filename.startswith(PACKAGE):
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            left -= "with self._lock" not in line
            if left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interrupt_at_any_point_of_loading_leaves_what_the_next_call_finds_right():
    points = 0
    is_interrupted = True
    while is_interrupted:
        manager = PluginManager(group=None)
        is_interrupted = _interrupted_after(points, manager.frontends)
        assert [each.name for each in manager.frontends()] == ["torch", "paddle"], points
        assert not any(listed.why for listed in manager.listing()), points
        points += 1
    assert points > 200


def test_an_interrupt_while_registering_leaves_the_plugin_known_or_not():
    points = 0
    is_interrupted = True
    while is_interrupted:
        manager, toy = PluginManager(built_in={}, group=None), plugin([frontend()])
        manager.register(plugin([frontend("other", Other)]))
        assert manager.find_frontend(Toy) is None
        is_interrupted = _interrupted_after(points, functools.partial(manager.register, toy))
        known = [each.name for each in manager.frontends()]
        assert known in (["other"], ["other", "toy"]), points
        if known == ["other"]:
            manager.register(toy)
        assert manager.frontend_of(Toy).name == "toy", points
        points += 1
    assert points > 50


def test_the_built_in_plugins_work():
    listing = {listed.name: listed for listed in plugins.listing()}
    assert listing["torch"].frontends == ("torch",)
    assert listing["triton"].backends == ("triton",)
    assert listing["numpy"].backends == ("numpy",)
    assert plugins.backend_for("cpu").name == "numpy"
    assert plugins.backend_for("cuda").name == "triton"


def test_asking_for_frontends_imports_no_framework_and_no_compiler():
    script = (
        "import sys\n"
        "from ninetoothed import plugins\n"
        "assert 'pluggy' not in sys.modules\n"
        "assert plugins.find_frontend(list) is None\n"
        "plugins.backend_for('cpu'), plugins.backend_for('cuda')\n"
        "print(sorted({'torch', 'triton', 'paddle'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr
