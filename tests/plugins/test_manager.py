"""The plugin manager: toy plugins, inline."""

from __future__ import annotations

import types

import pytest

from ninetoothed.errors import ArgumentError, DeviceError, PluginError
from ninetoothed.frontends.base import Frontend, owns_types
from ninetoothed.language import dtypes
from ninetoothed.plugins.hookspecs import CONTRACT_VERSION, hookimpl
from tests.plugins.toys import Other, Toy, ToyBackend, frontend, plugin


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


def test_what_was_never_registered_cannot_be_removed(manager):
    with pytest.raises(PluginError, match="is not registered"):
        manager.unregister(plugin())


def test_tensors_of_two_frameworks_in_one_call_are_refused_naming_both(manager):
    manager.register(plugin([frontend("toy"), frontend("other", Other)]))
    with pytest.raises(ArgumentError, match="`a` is a tensor of toy and `c` one of other"):
        manager.frontend_of_arguments({"a": Toy(), "b": 3, "c": Other()})


def test_the_frontend_of_a_call_is_that_of_its_tensors(manager):
    toy = frontend()
    manager.register(plugin([toy]))
    assert manager.frontend_of_arguments({"n": 3, "a": Toy(), "b": Toy()}) is toy
    assert manager.frontend_of_arguments({"n": 3}) is None


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
