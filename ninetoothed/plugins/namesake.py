"""Another project's distribution is called ``ninetoothed`` too, and installs a package of that name."""

from __future__ import annotations

import importlib.metadata

#: The distribution's name, and the package's.
_NAME = "ninetoothed"

#: A file that every distribution of ours has.
_OURS = f"{_NAME}/plugins/hookspecs.py"


def installed_namesake() -> str | None:
    """The version of the other project's distribution where that is installed, or None.

    It is told by its files: a checkout's version may differ from what was installed of it.
    """
    try:
        found = importlib.metadata.distribution(_NAME)
    except importlib.metadata.PackageNotFoundError:
        return None
    files = {file.as_posix() for file in found.files or ()}
    is_other = f"{_NAME}/__init__.py" in files and _OURS not in files
    return found.version if is_other else None


def advice(version: str) -> str:
    """What is wrong, and what to do."""
    return (
        f"the installed distribution {_NAME} {version} is another project's; its package of the same "
        f"name is imported in place of this one, or mixed with it. Run `pip uninstall {_NAME}`, then "
        "install this one again"
    )
