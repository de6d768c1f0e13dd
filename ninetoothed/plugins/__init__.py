"""Plugins: frontends that read a framework's tensors, backends that run kernels on a kind of device.

For a plugin's author `hookspecs` is the whole contract; a user has `register`, `unregister`, `prefer`
and `listing`.
"""

from ninetoothed.plugins.manager import GROUP, Listing, PluginManager  # noqa: F401 - public too

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
element_type = MANAGER.element_type
evaluator = MANAGER.evaluator
listing = MANAGER.listing
