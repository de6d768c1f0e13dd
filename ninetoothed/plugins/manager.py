"""The plugin manager: which frontend reads a tensor, which backend serves a device.

Nothing is loaded until the first question. Built-in frontends and backends are plugins like any
other. A plugin that fails is reported once and listed as broken; it stops nobody else. What is known
is made whole and then published by one assignment: an interrupt leaves what was there before.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ninetoothed import threads
from ninetoothed.errors import ArgumentError, DeviceError, PluginError, near, shown
from ninetoothed.records import dataclass

if TYPE_CHECKING:
    from ninetoothed.backends.base import Backend
    from ninetoothed.frontends.base import Frontend
    from ninetoothed.language.dtypes import DType

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


@dataclass(frozen=True)
class _Plugin:
    name: str
    origin: str
    version: str = ""
    plugin: object = None
    frontends: tuple[Frontend, ...] = ()
    backends: tuple[Backend, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class _Known:
    """What a manager knows at a time; only the two dictionaries grow, by answers to questions."""

    plugins: tuple[_Plugin, ...] = ()
    preferred: tuple[str, ...] = ()
    frontends_by_type: dict[type, Frontend | None] = field(default_factory=dict)
    backends_by_kind: dict[str, Backend] = field(default_factory=dict)


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
        self._lock = threads.reentrant_lock()
        self._published: _Known | None = None
        self._told: weakref.WeakSet[Launching] = weakref.WeakSet()

    def register(self, plugin: object, name: str | None = None, origin: str = "register") -> None:
        """Adds a plugin: a module or an object with hooks of `ninetoothed.plugins.hookspecs`.

        Raises `PluginError` where the plugin gives something else than the contract says.
        """
        with self._lock:
            known = self._known()
            try:
                added = _loaded(known.plugins, plugin, name, origin)
            except (PluginError, KeyboardInterrupt):
                raise
            except BaseException as error:
                subject = repr(name) if name else shown(plugin)
                raise PluginError(f"Plugin {subject} failed: {_told(error)}") from error
            self._publish(_Known((*known.plugins, added), known.preferred))

    def unregister(self, plugin: object) -> None:
        """Removes a plugin that `register` was given; `PluginError` where there is none."""
        with self._lock:
            known = self._known()
            left = tuple(each for each in known.plugins if each.plugin is not plugin)
            if len(left) == len(known.plugins):
                raise PluginError(f"{plugin!r} is not registered as a plugin.")
            self._publish(_Known(left, known.preferred))

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
            found = self._known()
            others = (other for other in found.preferred if other != name)
            self._publish(_Known(found.plugins, (name, *others)))

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
        known = self._published
        if known is not None and type_ in known.frontends_by_type:
            return known.frontends_by_type[type_]
        with self._lock:
            owners = [frontend for frontend in self.frontends() if self._owns(frontend, type_)]
            owner = self._chosen(f"The type {_full_name(type_)} is", owners)
            return self._known().frontends_by_type.setdefault(type_, owner)

    def _owns(self, frontend: Frontend, type_: type, field: str = "owns") -> bool:
        """Whether a frontend claims a type; one that fails over it does not, and is reported."""
        try:
            owns = getattr(frontend, field)
            return owns is not None and bool(owns(type_))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            what = f"`{field}` of frontend {frontend.name!r} failed for {_full_name(type_)}"
            self._report(frontend, f"{what}: {_told(error)}")
            return False

    def _report(self, frontend: Frontend, why: str) -> None:
        """Lists a plugin that works in part as broken, and warns of it, once."""
        known = self._known()
        for place, plugin in enumerate(known.plugins):
            if frontend in plugin.frontends and not plugin.why:
                told = replace(plugin, why=why)
                changed = (*known.plugins[:place], told, *known.plugins[place + 1 :])
                self._published = replace(known, plugins=changed)
                _warn(f"is broken: {why}", plugin)

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
        if not isinstance(name, str):
            raise PluginError(
                f'A frontend is called by its name, as `caller="torch"`, not {name!r}.'
            )
        return self._named("frontend", name, self.frontends())  # type: ignore[no-any-return]

    def backend_for(self, kind: str) -> Backend:
        """The backend that serves a kind of device; `DeviceError` where none does."""
        known = self._published
        if known is not None and kind in known.backends_by_kind:
            return known.backends_by_kind[kind]
        with self._lock:
            serving = [backend for backend in self.backends() if kind in backend.device_kinds]
            chosen = self._chosen(f"Devices of kind {kind!r} are", serving)
            if chosen is None:
                kinds = sorted(kind for backend in self.backends() for kind in backend.device_kinds)
                raise DeviceError(
                    f"No backend serves devices of kind {kind!r}. Served kinds: "
                    f"{', '.join(kinds) or 'none'}.{self._broken_note()}"
                )
            return self._known().backends_by_kind.setdefault(kind, chosen)

    def backend_named(self, name: str) -> Backend:
        """The backend called ``name``; `PluginError` if none is."""
        return self._named("backend", name, self.backends())  # type: ignore[no-any-return]

    def _named(self, role: str, name: str, known: Sequence[Any]) -> Any:
        found = {item.name: item for item in known}
        if name not in found:
            raise PluginError(self._unknown(role, name, found))
        return found[name]

    def element_type(self, item: object) -> DType | None:
        """The element type that a framework's or a compiler's own object is, or None."""
        for frontend in self.frontends():
            if self._owns(frontend, type(item), "owns_dtype"):
                try:
                    return frontend.dtype_of(item)
                except ArgumentError:
                    return None
        found = (backend.element_type(item) for backend in self.backends())
        return next((dtype for dtype in found if dtype is not None), None)

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
        return tuple(frontend for plugin in self._known().plugins for frontend in plugin.frontends)

    def backends(self) -> tuple[Backend, ...]:
        """All backends, built-in ones first."""
        return tuple(backend for plugin in self._known().plugins for backend in plugin.backends)

    def listing(self) -> tuple[Listing, ...]:
        """All plugins, with what they give, or why they are broken."""
        return tuple(
            Listing(
                plugin.name,
                plugin.origin,
                tuple(frontend.name for frontend in plugin.frontends),
                tuple(backend.name for backend in plugin.backends),
                plugin.why,
                plugin.version,
            )
            for plugin in self._known().plugins
        )

    def _known(self) -> _Known:
        """What is known; built-in and installed plugins are loaded the first time."""
        if self._published is None:
            with self._lock:
                if self._published is None:
                    self._published = _Known(self._load())
        return self._published

    def _load(self) -> tuple[_Plugin, ...]:
        import importlib.metadata

        import ninetoothed
        from ninetoothed.plugins import namesake

        found: tuple[_Plugin, ...] = ()
        for name, module in self.built_in.items():
            load = functools.partial(importlib.import_module, module)
            found += (_guarded(found, load, name, "built in", ninetoothed.__version__),)
        if self.group is None:
            return found
        if (other := namesake.installed_namesake()) is not None:
            _warn_all(f"NineToothed: {namesake.advice(other)}.")
        for entry_point in importlib.metadata.entry_points(group=self.group):
            distribution = getattr(entry_point, "dist", None)
            origin = distribution.name if distribution else "installed"
            version = distribution.version if distribution else ""
            found += (_guarded(found, entry_point.load, entry_point.name, origin, version),)
        return found

    def _publish(self, known: _Known) -> None:
        """From now on this is known, and kernels ask anew."""
        # Before it too: an interrupt in between leaves no kernel with what is no longer known.
        self._tell()
        self._published = known
        self._tell()

    def _chosen(self, claimed: str, claimants: Sequence[Any]) -> Any:
        """The one that claims something, the preferred of several, or None where none does."""
        if len(claimants) <= 1:
            return claimants[0] if claimants else None
        for name in self._known().preferred:
            for claimant in claimants:
                if claimant.name == name:
                    return claimant
        names = " and ".join(self._described(claimant) for claimant in claimants)
        raise PluginError(
            f"{claimed} claimed by {names}. Choose one with "
            f"`ninetoothed.plugins.prefer({claimants[0].name!r})`, or uninstall the other."
        )

    def tell_of_changes(self, kernel: Launching) -> None:
        """From now on the kernel forgets its launch functions where plugins come or go."""
        with self._lock:
            self._told.add(kernel)

    def _tell(self) -> None:
        for kernel in list(self._told):
            kernel.forget_launches()

    def _described(self, item: Any) -> str:
        for plugin in self._known().plugins:
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
        broken = [plugin for plugin in self._known().plugins if plugin.why]
        if not broken:
            return ""
        return " Broken plugins: " + "; ".join(f"{p.name} ({p.why})" for p in broken) + "."


def _guarded(
    others: tuple[_Plugin, ...], load: Callable[[], object], name: str, origin: str, version: str
) -> _Plugin:
    """A plugin that a package brings; whatever its code raises or ends, the others go on."""
    try:
        return _loaded(others, load(), name, origin, version)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        broken = _Plugin(name, origin, version, why=_told(error))
        _warn(f"is broken and left out: {broken.why}", broken)
        return broken


def _loaded(
    others: tuple[_Plugin, ...], plugin: object, name: str | None, origin: str, version: str = ""
) -> _Plugin:
    """What a plugin gives, beside these others; `PluginError` where that breaks the contract."""
    import pluggy

    from ninetoothed.plugins import contract, hookspecs

    for other in others:
        if other.plugin is plugin:
            raise PluginError(f"Plugin {other.name!r} is registered already.")
    # For this plugin alone: pluggy finds the hooks and checks their parameters.
    manager = pluggy.PluginManager(hookspecs.PROJECT_NAME)
    manager.add_hookspecs(hookspecs)
    name = name or manager.get_canonical_name(plugin)
    if any(other.name == name and other.plugin is not None for other in others):
        raise PluginError(f"There is a plugin {name!r} already; give this one another name.")
    contract.check_version(plugin, name)
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
    _check_names(others, loaded)
    return loaded


def _check_names(others: tuple[_Plugin, ...], loaded: _Plugin) -> None:
    for role in ("frontends", "backends"):
        taken = {item.name: known for known in others for item in getattr(known, role)}
        for item in getattr(loaded, role):
            if item.name in taken:
                raise PluginError(
                    f"Plugin {loaded.name!r} and plugin {taken[item.name].name!r} both give "
                    f"one of the {role} the name {item.name!r}."
                )


def _warn(what: str, plugin: _Plugin) -> None:
    where = f"{plugin.origin} {plugin.version}" if plugin.version else plugin.origin
    _warn_all(f"NineToothed plugin {plugin.name!r} ({where}) {what}")


def _warn_all(what: str) -> None:
    # A warning that is made an error stops nobody either: the plugin is listed.
    with contextlib.suppress(RuntimeWarning):
        warnings.warn(what, RuntimeWarning, stacklevel=2)


def _told(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def _full_name(type_: type) -> str:
    return f"{type_.__module__}.{type_.__qualname__}"
