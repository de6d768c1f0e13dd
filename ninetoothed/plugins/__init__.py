"""Plugins: frontends that read a framework's tensors, backends that run kernels on a kind of device.

For a plugin's author `hookspecs` is the whole contract; a user has `register`, `unregister`, `prefer`
and `listing`.
"""

from ninetoothed.plugins.manager import (
    GROUP,
    MANAGER,
    Listing,
    PluginManager,
    backend_for,
    backend_named,
    element_type,
    evaluator,
    find_frontend,
    frontend_named,
    frontend_of,
    frontend_of_arguments,
    listing,
    prefer,
    register,
    tell_of_changes,
    unregister,
)

__all__ = [
    "GROUP",
    "MANAGER",
    "Listing",
    "PluginManager",
    "backend_for",
    "backend_named",
    "element_type",
    "evaluator",
    "find_frontend",
    "frontend_named",
    "frontend_of",
    "frontend_of_arguments",
    "listing",
    "prefer",
    "register",
    "tell_of_changes",
    "unregister",
]
