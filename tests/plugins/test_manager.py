"""The plugin manager: toy plugins, inline."""

from __future__ import annotations

import contextlib
import functools
import importlib
import linecache
import os
import subprocess
import sys
import types
import warnings

import pytest

from ninetoothed import plugins
from ninetoothed.backends.base import Backend, Device
from ninetoothed.errors import ArgumentError, DeviceError, PluginError
from ninetoothed.frontends.base import Frontend, owns_types
from ninetoothed.language import dtypes
from ninetoothed.plugins import PluginManager
from ninetoothed.plugins.hookspecs import CONTRACT_VERSION, hookimpl

PACKAGE = os.path.dirname(plugins.__file__)


class Toy:
    """A tensor of the toy framework."""


class Other:
    """A tensor of another framework."""


class ToyBackend(Backend):
    name = "toy_backend"
    device_kinds = ("toy",)

    def plan(self, kernel, call):
        raise NotImplementedError


def frontend(name="toy", type_=Toy, **changes):
    settings = {
        "name": name,
        "owns": owns_types((type_.__module__, type_.__qualname__)),
        "dtypes": lambda: {"f4": dtypes.float32},
        "device_of": lambda device: Device("toy", 0),
        "empty": lambda shape, dtype, device: Toy(),
        "device_guard": lambda index: contextlib.nullcontext(),
        "synchronize": lambda index: None,
    }
    return Frontend(**(settings | changes))


def plugin(frontends=(), backends=()):
    class Plugin:
        NINETOOTHED_CONTRACT = CONTRACT_VERSION

        @staticmethod
        @hookimpl
        def ninetoothed_frontends():
            return frontends

        @staticmethod
        @hookimpl
        def ninetoothed_backends():
            return backends

    return Plugin()


@pytest.fixture
def manager():
    return PluginManager(built_in={}, group=None)


def test_a_registered_frontend_is_found_by_type_and_by_name(manager):
    toy = frontend()
    manager.register(plugin([toy]))
    assert manager.frontend_of(Toy) is toy
    assert manager.frontend_named("toy") is toy


def test_a_subclass_of_an_owned_type_is_owned(manager):
    toy = frontend()
    manager.register(plugin([toy]))
    assert manager.frontend_of(type("Parameter", (Toy,), {})) is toy


def test_a_type_that_nobody_owns_names_the_known_frontends(manager):
    manager.register(plugin([frontend()]))
    with pytest.raises(ArgumentError, match=r"builtins\.list.*Known frontends: toy"):
        manager.frontend_of(list)


def test_a_frontends_dtypes_are_asked_for_once_it_owns_one(manager):
    """Asking may import the framework."""
    kinds, asked = (Toy(), Toy()), []

    def known():
        asked.append(True)
        return {kinds[0]: dtypes.float32}

    owns = owns_types((Toy.__module__, "Toy"))
    manager.register(plugin([frontend("other"), frontend(dtypes=known, owns_dtype=owns)]))
    assert manager.element_type(Other()) is None and not asked
    assert manager.element_type(kinds[0]) is dtypes.float32 and asked
    assert manager.element_type(kinds[1]) is None


def test_a_backend_knows_its_compilers_element_types(manager):
    class Compiler(ToyBackend):
        name = "compiler"

        def element_type(self, item):
            return dtypes.int8 if isinstance(item, Toy) else None

    manager.register(plugin(backends=[ToyBackend(), Compiler()]))
    assert manager.element_type(Toy()) is dtypes.int8
    assert manager.element_type(Other()) is None


def test_a_type_is_asked_about_once(manager):
    asked = []

    def owns(type_):
        asked.append(type_)
        return type_ is Toy

    manager.register(plugin([frontend(owns=owns)]))
    for _ in range(3):
        manager.frontend_of(Toy)
        manager.find_frontend(int)
    assert asked == [Toy, int]


def test_a_plugin_registered_later_serves_a_type_refused_before(manager):
    assert manager.find_frontend(Toy) is None
    toy = frontend()
    manager.register(plugin([toy]))
    assert manager.find_frontend(Toy) is toy


def test_two_frontends_claiming_one_type_are_both_named(manager):
    manager.register(plugin([frontend("first")]), "first-plugin")
    manager.register(plugin([frontend("second")]), "second-plugin")
    with pytest.raises(PluginError, match="(?s)first.*first-plugin.*second.*second-plugin"):
        manager.frontend_of(Toy)


def test_two_backends_claiming_one_kind_of_device_are_both_named(manager):
    class Second(ToyBackend):
        name = "second_backend"

    manager.register(plugin(backends=[ToyBackend()]), "first-plugin")
    manager.register(plugin(backends=[Second()]), "second-plugin")
    with pytest.raises(PluginError, match="'toy'.*first-plugin.*second-plugin"):
        manager.backend_for("toy")


def test_a_backend_is_found_by_its_kind_of_device(manager):
    backend = ToyBackend()
    manager.register(plugin(backends=[backend]))
    assert manager.backend_for("toy") is backend
    assert manager.backend_named("toy_backend") is backend


def test_a_kind_without_a_backend_names_the_served_kinds(manager):
    manager.register(plugin(backends=[ToyBackend()]))
    with pytest.raises(DeviceError, match="'quantum'.*Served kinds: toy"):
        manager.backend_for("quantum")


def test_the_language_is_evaluated_by_the_first_backend_that_can(manager):
    class Evaluating(ToyBackend):
        name = "evaluating"

        def evaluator(self):
            return {"exp": abs}.__getitem__

    manager.register(plugin(backends=(ToyBackend(), Evaluating())))

    assert manager.evaluator()("exp") is abs


def test_without_such_a_backend_it_has_no_meaning_outside_of_a_kernel(manager):
    manager.register(plugin(backends=(ToyBackend(),)))

    with pytest.raises(DeviceError, match="inside of a kernel only"):
        manager.evaluator()


def test_a_name_that_no_frontend_has_is_corrected(manager):
    manager.register(plugin([frontend()]))
    with pytest.raises(PluginError, match="'toyy'.*Did you mean 'toy'"):
        manager.frontend_named("toyy")


def test_one_name_for_two_frontends_is_refused_at_registration(manager):
    manager.register(plugin([frontend()]), "first-plugin")
    with pytest.raises(PluginError, match="'second-plugin'.*'first-plugin'.*'toy'"):
        manager.register(plugin([frontend(type_=Other)]), "second-plugin")
    assert [listing.name for listing in manager.listing()] == ["first-plugin"]


def test_the_preferred_of_two_frontends_has_the_type(manager):
    first, second = frontend("first"), frontend("second")
    manager.register(plugin([first]), "first-plugin")
    manager.register(plugin([second]), "second-plugin")
    with pytest.raises(PluginError, match=r"prefer\('first'\)"):
        manager.frontend_of(Toy)
    manager.prefer("second")
    assert manager.frontend_of(Toy) is second
    manager.prefer("first")
    assert manager.frontend_of(Toy) is first


def test_the_preferred_of_two_backends_has_the_devices(manager):
    class Second(ToyBackend):
        name = "second_backend"

    manager.register(plugin(backends=[ToyBackend()]), "first-plugin")
    manager.register(plugin(backends=[Second()]), "second-plugin")
    manager.prefer("second_backend")
    assert manager.backend_for("toy").name == "second_backend"


def test_a_preferred_frontend_takes_no_type_that_it_does_not_claim(manager):
    manager.register(plugin([frontend("toy"), frontend("other", Other)]))
    manager.prefer("other")
    assert manager.frontend_of(Toy).name == "toy"


def test_preferring_what_is_not_there_is_corrected(manager):
    manager.register(plugin([frontend("toy")]))
    with pytest.raises(PluginError, match="no frontend or backend 'toi'.*Did you mean 'toy'"):
        manager.prefer("toi")


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (None, "'odd' does not say which contract.*NINETOOTHED_CONTRACT = 1"),
        (CONTRACT_VERSION - 1, "'odd' was written for contract 0; .*Update the plugin"),
        (CONTRACT_VERSION + 1, "'odd' was written for contract 2; .*Update ninetoothed"),
        ("1", "'odd' was written for contract '1'"),
    ],
)
def test_a_plugin_for_another_contract_is_refused(manager, version, message):
    odd = plugin([frontend()])
    type(odd).NINETOOTHED_CONTRACT = version
    with pytest.raises(PluginError, match=message):
        manager.register(odd, "odd")
    assert manager.listing() == ()


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


def test_a_misspelt_hook_is_refused_with_the_right_name(manager):
    class Misspelt:
        NINETOOTHED_CONTRACT = CONTRACT_VERSION

        @staticmethod
        @hookimpl
        def ninetoothed_frontend():
            return ()

    with pytest.raises(PluginError, match="'odd'.*Did you mean 'ninetoothed_frontends'"):
        manager.register(Misspelt(), "odd")
    manager.register(plugin([frontend()]), "right")


def test_a_frontend_that_lacks_a_field_is_refused_with_plugin_and_field(manager):
    class Lacking:
        NINETOOTHED_CONTRACT = CONTRACT_VERSION

        @staticmethod
        @hookimpl
        def ninetoothed_frontends():
            return [Frontend(name="lacking", owns=lambda type_: False)]

    with pytest.raises(PluginError, match="'odd'.*missing.*'dtypes'.*'empty'"):
        manager.register(Lacking(), "odd")


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("name", None, "needs `name`, an identifier; got None"),
        ("name", "two words", "needs `name`, an identifier; got 'two words'"),
        ("device_kinds", "toy", "needs `device_kinds`, a tuple.*got 'toy'"),
        ("device_kinds", (), "needs `device_kinds`"),
        ("device_kinds", (3,), "needs `device_kinds`"),
    ],
)
def test_a_malformed_backend_says_what_is_missing(manager, attribute, value, message):
    backend = ToyBackend()
    setattr(backend, attribute, value)
    with pytest.raises(PluginError, match=f"'odd'.*{message}"):
        manager.register(plugin(backends=[backend]), "odd")


def test_a_second_plugin_of_one_name_is_refused(manager):
    manager.register(plugin([frontend()]), "same")
    with pytest.raises(PluginError, match="a plugin 'same' already"):
        manager.register(plugin([frontend("other", Other)]), "same")


def test_what_is_no_frontend_is_refused_with_the_name_of_the_plugin(manager):
    with pytest.raises(PluginError, match="'odd'.*ninetoothed_frontends.*Frontend.*42"):
        manager.register(plugin([42]), "odd")
    assert manager.listing() == ()


def test_a_plugin_without_a_hook_is_refused(manager):
    empty = types.ModuleType("empty")
    empty.NINETOOTHED_CONTRACT = CONTRACT_VERSION
    with pytest.raises(PluginError, match="'empty' has neither"):
        manager.register(empty, "empty")


def test_an_unregistered_plugin_is_gone(manager):
    toy = plugin([frontend()])
    manager.register(toy)
    manager.frontend_of(Toy)
    manager.unregister(toy)
    assert manager.find_frontend(Toy) is None


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
        "from tests.plugins.test_manager import frontend, hookimpl\n"
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


def test_what_was_never_registered_cannot_be_removed(manager):
    with pytest.raises(PluginError, match="is not registered"):
        manager.unregister(plugin())


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


def test_tensors_of_two_frameworks_in_one_call_are_refused_naming_both(manager):
    manager.register(plugin([frontend("toy"), frontend("other", Other)]))
    with pytest.raises(ArgumentError, match="`a` is a tensor of toy and `c` one of other"):
        manager.frontend_of_arguments({"a": Toy(), "b": 3, "c": Other()})


def test_the_frontend_of_a_call_is_that_of_its_tensors(manager):
    toy = frontend()
    manager.register(plugin([toy]))
    assert manager.frontend_of_arguments({"n": 3, "a": Toy(), "b": Toy()}) is toy
    assert manager.frontend_of_arguments({"n": 3}) is None


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "two words"}, "identifier, got 'two words'"),
        ({"owns": None}, "'toy': `owns` must be a function"),
        ({"event": 3}, "`event` must be a function"),
        ({"shape": "{x}.shape)"}, "`shape` must be a Python expression"),
        ({"shape": "tensor.shape"}, "`shape` must be a Python expression"),
        ({"pointer": 7}, "`pointer` must be a Python expression"),
        ({"pointer": "{y}.pointer"}, "`pointer` must be a Python expression"),
        ({"stream": "stream of {index}"}, "`stream` must be a Python expression"),
        ({"jagged": "yes"}, "`jagged` must be JaggedExpressions or None"),
    ],
)
def test_a_malformed_frontend_says_which_field(changes, message):
    with pytest.raises(PluginError, match=message.replace("(", r"\(")):
        frontend(**changes)


def test_a_frontend_evaluates_its_expressions_with_the_names_it_gives():
    given = frontend(shape="sizes({x})", namespace=lambda: {"sizes": lambda x: (len(x),)})
    assert given.evaluate("shape", "four") == (4,)


def test_a_dtype_without_an_element_type_lists_those_there_are():
    with pytest.raises(ArgumentError, match="complex64.*toy has: f4"):
        frontend().dtype_of("complex64")


def test_an_element_type_that_the_framework_lacks_is_named():
    with pytest.raises(ArgumentError, match="toy has no element type bfloat16"):
        frontend().native_dtype(dtypes.bfloat16)
