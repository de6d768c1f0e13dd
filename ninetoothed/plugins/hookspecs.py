"""The whole contract between NineToothed and its plugins, on one page.

A plugin is a module (or any object) that says which contract it was written for and has one or
both of these hooks, marked with `hookimpl`::

    NINETOOTHED_CONTRACT = 1

An installed package names it in the entry point group ``ninetoothed``::

    [project.entry-points.ninetoothed]
    my-framework = "my_package.ninetoothed_plugin"

A plugin must import nothing heavy: neither when it is loaded nor in a hook. A frontend's functions
run only after a tensor of its framework has arrived, so they may import the framework. No hook is
called on the launch path: what the hooks return is asked for once a process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from ninetoothed.backends.base import Backend
    from ninetoothed.frontends.base import Frontend

PROJECT_NAME = "ninetoothed"

#: What this page, `Frontend` and `Backend` promise. It grows by one when a plugin that was right
#: before may no longer be; a new field that may be left out does not count. A plugin writes the
#: number itself: imported from here it would always agree.
CONTRACT_VERSION = 1

#: The attribute of a plugin that says which contract it was written for.
CONTRACT_ATTRIBUTE = "NINETOOTHED_CONTRACT"

hookspec = pluggy.HookspecMarker(PROJECT_NAME)
hookimpl = pluggy.HookimplMarker(PROJECT_NAME)


@hookspec
def ninetoothed_frontends() -> Iterable[Frontend]:  # type: ignore[empty-body]
    """Frontends: how to read the tensors of a framework. See `ninetoothed.frontends.base`."""


@hookspec
def ninetoothed_backends() -> Iterable[Backend]:  # type: ignore[empty-body]
    """Backends: how to run a kernel on a kind of device. See `ninetoothed.backends.base`."""
