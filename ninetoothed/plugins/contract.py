"""Whether a plugin keeps the contract of `hookspecs`; each error names the plugin and what is missing.

It is asked once, when the plugin is registered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ninetoothed.errors import PluginError, near
from ninetoothed.plugins.hookspecs import CONTRACT_ATTRIBUTE, CONTRACT_VERSION

if TYPE_CHECKING:
    import pluggy

    from ninetoothed.backends.base import Backend
    from ninetoothed.frontends.base import Frontend

FRONTENDS_HOOK = "ninetoothed_frontends"
BACKENDS_HOOK = "ninetoothed_backends"
HOOKS = (FRONTENDS_HOOK, BACKENDS_HOOK)


def check_version(plugin: object, name: str) -> None:
    """`PluginError` where a plugin was written for another contract, or does not say for which."""
    version = getattr(plugin, CONTRACT_ATTRIBUTE, None)
    if version is None:
        raise PluginError(
            f"Plugin {name!r} does not say which contract it was written for. Add "
            f"`{CONTRACT_ATTRIBUTE} = {CONTRACT_VERSION}` to it."
        )
    if version != CONTRACT_VERSION:
        older = isinstance(version, int) and version < CONTRACT_VERSION
        raise PluginError(
            f"Plugin {name!r} was written for contract {version!r}; this is contract "
            f"{CONTRACT_VERSION}. Update {'the plugin' if older else 'ninetoothed'}."
        )


def check_hooks(manager: pluggy.PluginManager, plugin: object, name: str) -> None:
    """`PluginError` where a plugin has no hook, or one that there is not."""
    callers = {caller.name for caller in manager.get_hookcallers(plugin) or []}
    for hook in sorted(callers - set(HOOKS)):
        raise PluginError(
            f"Plugin {name!r} has a hook `{hook}`, which there is not.{near(hook, HOOKS)}"
        )
    if not callers:
        raise PluginError(
            f"Plugin {name!r} has neither `{FRONTENDS_HOOK}` nor `{BACKENDS_HOOK}` "
            "marked with `ninetoothed.plugins.hookspecs.hookimpl`."
        )


def given_frontends(
    manager: pluggy.PluginManager, plugin: object, name: str
) -> tuple[Frontend, ...]:
    """The frontends that a plugin gives; `PluginError` where something else is among them."""
    from ninetoothed.frontends.base import Frontend

    frontends = _given(manager, plugin, name, FRONTENDS_HOOK)
    for frontend in frontends:
        # A frontend has checked its own fields when it was made.
        _check_type(frontend, Frontend, name, FRONTENDS_HOOK)
    return frontends


def given_backends(manager: pluggy.PluginManager, plugin: object, name: str) -> tuple[Backend, ...]:
    """The backends that a plugin gives; `PluginError` where something is missing from one."""
    from ninetoothed.backends.base import Backend

    backends = _given(manager, plugin, name, BACKENDS_HOOK)
    for backend in backends:
        _check_type(backend, Backend, name, BACKENDS_HOOK)
        own_name = getattr(backend, "name", None)
        if not isinstance(own_name, str) or not own_name.isidentifier():
            raise PluginError(
                f"Plugin {name!r}: backend {backend!r} needs `name`, an identifier; got "
                f"{own_name!r}."
            )
        kinds = getattr(backend, "device_kinds", None)
        if not isinstance(kinds, tuple) or not kinds or not all(isinstance(k, str) for k in kinds):
            raise PluginError(
                f"Plugin {name!r}: backend {own_name!r} needs `device_kinds`, a tuple of kinds of "
                f'devices as in ("cuda",); got {kinds!r}.'
            )
    return backends


def _given(manager: pluggy.PluginManager, plugin: object, name: str, hook: str) -> tuple[Any, ...]:
    caller = getattr(manager.hook, hook)
    functions: list[Callable[[], Any]] = [
        implementation.function
        for implementation in caller.get_hookimpls()
        if implementation.plugin is plugin
    ]
    try:
        return tuple(item for function in functions for item in function())
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginError(
            f"Plugin {name!r}: `{hook}` failed: {type(error).__name__}: {error}"
        ) from error


def _check_type(item: object, type_: type, name: str, hook: str) -> None:
    if not isinstance(item, type_):
        raise PluginError(
            f"Plugin {name!r}: `{hook}` must give objects of type {type_.__name__}, got {item!r}."
        )
