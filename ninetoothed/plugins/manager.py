"""The plugin manager: which frontend reads a tensor, which backend serves a device.

Nothing is loaded until the first question. Built-in frontends and backends are plugins like any
other. A plugin that fails is reported once and listed as broken; it stops nobody else.
"""

from __future__ import annotations

import functools
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ninetoothed.errors import ArgumentError, DeviceError, PluginError, near

if TYPE_CHECKING:
    import pluggy

    from ninetoothed.backends.base import Backend
    from ninetoothed.frontends.base import Frontend

GROUP = "ninetoothed"

#: The plugins of this package: name -> module. None of them imports its framework or compiler.
BUILT_IN = {
    "torch": "ninetoothed.frontends.torch",
    "paddle": "ninetoothed.frontends.paddle",
    "triton": "ninetoothed.backends.triton.backend",
    "numpy": "ninetoothed.backends.numpy.backend",
}


class Listing(NamedTuple):
    """One plugin as ``python -m ninetoothed plugins`` shows it.

    Attributes:
        name: the plugin's name: that of its entry point.
        origin: ``"built in"``, the distribution that it came with, or ``"register"``.
        frontends, backends: the names of what it gives.
        why: why it is broken; empty where it works.
        version: that of the distribution, or empty.
    """

    name: str
    origin: str
    frontends: tuple[str, ...]
    backends: tuple[str, ...]
    why: str
    version: str = ""


class Launching(Protocol):
    """What launches through frontends and backends, and so wants to know where they change."""

    def forget_launches(self) -> None:
        """Frontends and backends are asked for anew."""


@dataclass
class _Plugin:
    name: str
    origin: str
    version: str = ""
    plugin: object = None
    frontends: tuple[Frontend, ...] = ()
    backends: tuple[Backend, ...] = ()
    why: str = ""


@dataclass
class PluginManager:
    """Loads plugins and answers which of them serves a type or a device. Safe to use from threads.

    Args:
        built_in: name -> module of the plugins that come with the package.
        group: the entry point group that is searched, or None for no search.
    """

    built_in: Mapping[str, str] = field(default_factory=lambda: BUILT_IN)
    group: str | None = GROUP

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._manager: pluggy.PluginManager | None = None
        self._plugins: list[_Plugin] = []
        self._frontends_by_type: dict[type, Frontend | None] = {}
        self._backends_by_kind: dict[str, Backend] = {}
        self._preferred: list[str] = []
        self._told: weakref.WeakSet[Launching] = weakref.WeakSet()

    def register(self, plugin: object, name: str | None = None, origin: str = "register") -> None:
        """Adds a plugin: a module or an object with hooks of `ninetoothed.plugins.hookspecs`.

        Raises `PluginError` where the plugin gives something else than the contract says.
        """
        with self._lock:
            self._load()
            self._add(plugin, name, origin)

    def unregister(self, plugin: object) -> None:
        """Removes a plugin that `register` was given."""
        with self._lock:
            self._loaded_manager().unregister(plugin)
            self._plugins = [known for known in self._plugins if known.plugin is not plugin]
            self._forget()

    def prefer(self, name: str) -> None:
        """Where several frontends claim a type, or backends a device, the one called ``name`` has it.

        The one preferred last wins. Raises `PluginError` where there is neither a frontend nor a
        backend of that name.
        """
        with self._lock:
            items: tuple[Any, ...] = (*self.frontends(), *self.backends())
            known = [item.name for item in items]
            if name not in known:
                raise PluginError(self._unknown("frontend or backend", name, known))
            self._preferred = [name, *(other for other in self._preferred if other != name)]
            self._forget()

    def frontend_of(self, type_: type) -> Frontend:
        """The frontend that owns a type; `ArgumentError` where none does.

        `PluginError` where two do, naming both.
        """
        frontend = self.find_frontend(type_)
        if frontend is None:
            known = ", ".join(frontend.name for frontend in self.frontends()) or "none"
            raise ArgumentError(
                f"No frontend knows tensors of type {_full_name(type_)}. Known frontends: {known}."
                f"{self._broken_note()}"
            )
        return frontend

    def find_frontend(self, type_: type) -> Frontend | None:
        """The frontend that owns a type, or None: it is no tensor that anybody knows."""
        try:
            return self._frontends_by_type[type_]
        except KeyError:
            pass
        with self._lock:
            owners = [frontend for frontend in self.frontends() if frontend.owns(type_)]
            owner = self._chosen(f"The type {_full_name(type_)} is", owners)
            return self._frontends_by_type.setdefault(type_, owner)

    def frontend_of_arguments(self, arguments: Mapping[str, object]) -> Frontend | None:
        """The one frontend of the tensors among a call's arguments, or None without a tensor.

        `ArgumentError` where tensors of two frameworks come together, naming both.
        """
        found: tuple[str, Frontend] | None = None
        for name, value in arguments.items():
            frontend = self.find_frontend(type(value))
            if frontend is None:
                continue
            if found is not None and frontend is not found[1]:
                first, second = found[1].name, frontend.name
                raise ArgumentError(
                    f"`{found[0]}` is a tensor of {first} and `{name}` one of {second}; the "
                    "tensors of one call must be of one framework. Convert one of them."
                )
            found = found or (name, frontend)
        return found[1] if found else None

    def frontend_named(self, name: str) -> Frontend:
        """The frontend called ``name``, as in ``make(caller=name)``; `PluginError` if none is."""
        for frontend in self.frontends():
            if frontend.name == name:
                return frontend
        raise PluginError(self._unknown("frontend", name, (f.name for f in self.frontends())))

    def backend_for(self, kind: str) -> Backend:
        """The backend that serves a kind of device; `DeviceError` where none does."""
        try:
            return self._backends_by_kind[kind]
        except KeyError:
            pass
        with self._lock:
            serving = [backend for backend in self.backends() if kind in backend.device_kinds]
            chosen = self._chosen(f"Devices of kind {kind!r} are", serving)
            if chosen is None:
                kinds = sorted(kind for backend in self.backends() for kind in backend.device_kinds)
                raise DeviceError(
                    f"No backend serves devices of kind {kind!r}. Served kinds: "
                    f"{', '.join(kinds) or 'none'}.{self._broken_note()}"
                )
            return self._backends_by_kind.setdefault(kind, chosen)

    def backend_named(self, name: str) -> Backend:
        """The backend called ``name``; `PluginError` if none is."""
        for backend in self.backends():
            if backend.name == name:
                return backend
        raise PluginError(self._unknown("backend", name, (b.name for b in self.backends())))

    def evaluator(self) -> Callable[[str], Callable[..., Any]]:
        """What finds the Python function that a name of the language is; `DeviceError` if none does.

        See `Backend.evaluator`.
        """
        for backend in self.backends():
            found = backend.evaluator()
            if found is not None:
                return found
        raise DeviceError(
            "No backend runs functions of the language as Python: they have a meaning inside of a "
            f"kernel only.{self._broken_note()}"
        )

    def frontends(self) -> tuple[Frontend, ...]:
        """All frontends, built-in ones first."""
        with self._lock:
            self._load()
            return tuple(frontend for plugin in self._plugins for frontend in plugin.frontends)

    def backends(self) -> tuple[Backend, ...]:
        """All backends, built-in ones first."""
        with self._lock:
            self._load()
            return tuple(backend for plugin in self._plugins for backend in plugin.backends)

    def listing(self) -> tuple[Listing, ...]:
        """All plugins, with what they give, or why they are broken."""
        with self._lock:
            self._load()
            return tuple(
                Listing(
                    plugin.name,
                    plugin.origin,
                    tuple(frontend.name for frontend in plugin.frontends),
                    tuple(backend.name for backend in plugin.backends),
                    plugin.why,
                    plugin.version,
                )
                for plugin in self._plugins
            )

    def _load(self) -> None:
        """Loads built-in and installed plugins, the first time."""
        if self._manager is not None:
            return
        import importlib.metadata

        import pluggy

        import ninetoothed
        from ninetoothed.plugins import hookspecs

        self._manager = pluggy.PluginManager(hookspecs.PROJECT_NAME)
        self._manager.add_hookspecs(hookspecs)
        for name, module in self.built_in.items():
            load = functools.partial(importlib.import_module, module)
            self._guarded(name, "built in", ninetoothed.__version__, load)
        if self.group is None:
            return
        for entry_point in importlib.metadata.entry_points(group=self.group):
            distribution = getattr(entry_point, "dist", None)
            origin = distribution.name if distribution else "installed"
            version = distribution.version if distribution else ""
            self._guarded(entry_point.name, origin, version, entry_point.load)

    def _guarded(self, name: str, origin: str, version: str, load: Callable[[], object]) -> None:
        try:
            self._add(load(), name, origin, version)
        except Exception as error:  # Whatever a third party's code raises, the others go on.
            why = f"{type(error).__name__}: {error}"
            self._plugins.append(_Plugin(name, origin, version, why=why))
            where = f"{origin} {version}" if version else origin
            warnings.warn(
                f"NineToothed plugin {name!r} ({where}) is broken and left out: {why}",
                RuntimeWarning,
                stacklevel=2,
            )

    def _add(self, plugin: object, name: str | None, origin: str, version: str = "") -> None:
        from ninetoothed.plugins import contract

        manager = self._loaded_manager()
        if manager.is_registered(plugin):
            raise PluginError(f"Plugin {manager.get_name(plugin)!r} is registered already.")
        name = name or manager.get_canonical_name(plugin)
        if manager.has_plugin(name):
            raise PluginError(f"There is a plugin {name!r} already; give this one another name.")
        contract.check_version(plugin, name)
        try:
            manager.register(plugin, name)
            contract.check_hooks(manager, plugin, name)
            loaded = _Plugin(
                name,
                origin,
                version,
                plugin,
                contract.given_frontends(manager, plugin, name),
                contract.given_backends(manager, plugin, name),
            )
            self._check_names(loaded)
        except BaseException:
            if manager.is_registered(plugin):
                manager.unregister(plugin)
            raise
        self._plugins.append(loaded)
        self._forget()

    def _check_names(self, loaded: _Plugin) -> None:
        for role in ("frontends", "backends"):
            taken = {item.name: known for known in self._plugins for item in getattr(known, role)}
            for item in getattr(loaded, role):
                if item.name in taken:
                    raise PluginError(
                        f"Plugin {loaded.name!r} and plugin {taken[item.name].name!r} both give "
                        f"one of the {role} the name {item.name!r}."
                    )

    def _chosen(self, claimed: str, claimants: Sequence[Any]) -> Any:
        """The one that claims something, the preferred of several, or None where none does."""
        if len(claimants) <= 1:
            return claimants[0] if claimants else None
        for name in self._preferred:
            for claimant in claimants:
                if claimant.name == name:
                    return claimant
        names = " and ".join(self._described(claimant) for claimant in claimants)
        raise PluginError(
            f"{claimed} claimed by {names}. Choose one with "
            f"`ninetoothed.plugins.prefer({claimants[0].name!r})`, or uninstall the other."
        )

    def _loaded_manager(self) -> pluggy.PluginManager:
        assert self._manager is not None
        return self._manager

    def tell_of_changes(self, kernel: Launching) -> None:
        """From now on the kernel forgets its launch functions where plugins come or go."""
        with self._lock:
            self._told.add(kernel)

    def _forget(self) -> None:
        self._frontends_by_type.clear()
        self._backends_by_kind.clear()
        for kernel in list(self._told):
            kernel.forget_launches()

    def _described(self, item: Any) -> str:
        for plugin in self._plugins:
            if item in plugin.frontends or item in plugin.backends:
                return f"{item.name!r} of plugin {plugin.name!r} ({plugin.origin})"
        return repr(item.name)

    def _unknown(self, role: str, name: str, known: Iterable[str]) -> str:
        names = list(known)
        return (
            f"There is no {role} {name!r}.{near(name, names)} Known: {', '.join(names)}."
            f"{self._broken_note()}"
        )

    def _broken_note(self) -> str:
        broken = [plugin for plugin in self._plugins if plugin.why]
        if not broken:
            return ""
        return " Broken plugins: " + "; ".join(f"{p.name} ({p.why})" for p in broken) + "."


def _full_name(type_: type) -> str:
    return f"{type_.__module__}.{type_.__qualname__}"


#: The manager of this process. Tests make their own.
MANAGER = PluginManager()

register = MANAGER.register
unregister = MANAGER.unregister
prefer = MANAGER.prefer
frontend_of = MANAGER.frontend_of
find_frontend = MANAGER.find_frontend
frontend_of_arguments = MANAGER.frontend_of_arguments
frontend_named = MANAGER.frontend_named
tell_of_changes = MANAGER.tell_of_changes
backend_for = MANAGER.backend_for
backend_named = MANAGER.backend_named
evaluator = MANAGER.evaluator
listing = MANAGER.listing
