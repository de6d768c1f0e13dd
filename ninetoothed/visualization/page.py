"""A self-contained page that shows which program touches which elements, for sizes that a person changes.

It needs no matplotlib, no device and no network: its policy of contents forbids every request.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any

from ninetoothed.errors import ArrangementError, near
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.naming import default_symbols
from ninetoothed.program.names import unused
from ninetoothed.program.nodes import Load, SourceLoad, SourcePointer
from ninetoothed.program.written import written
from ninetoothed.records import dataclass
from ninetoothed.tensors.arrange import arranged_by, parameter_names
from ninetoothed.tensors.level import Level
from ninetoothed.tensors.tensor import Tensor
from ninetoothed.visualization.model import Model, View

#: The scripts, in the order in which they stand in the page.
SCRIPTS = ("arithmetic.js", "arrangement.js", "board.js", "controls.js", "page.js")


@dataclass(frozen=True)
class Page:
    """A page of HTML; a notebook shows it.

    Attributes:
        html: all of it, in one text.
        title: what it shows.
    """

    html: str
    title: str

    def save(self, path: str | PathLike[str]) -> None:
        """Writes it into a file, for a browser to open."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        style = "width: 100%; height: 46rem; border: 1px solid #8884; border-radius: 6px"
        return (
            f'<iframe title="{html.escape(self.title)}" style="{style}" '
            f'srcdoc="{html.escape(self.html)}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<page of {self.title}: {len(self.html)} characters; .save(path) writes it>"


def visualize_arrangement(
    arrangement: Callable[..., Any],
    tensors: Sequence[Any],
    subs: Mapping[Any, Any] | None = None,
    *,
    outputs: Collection[Any] | None = None,
) -> Page:
    """A page that shows which elements of each tensor an arrangement gives to which program.

    Args:
        arrangement, tensors: as for `ninetoothed.make`.
        subs: sizes and symbols to begin with, as for `ninetoothed.eval`: maps a `Tensor` to its
            shape (also as ``{"shape": …}``), and a `Symbol` to an int. Their names may stand for
            either. For what is left out small numbers are chosen.
        outputs: the tensors that are stored to, themselves or by name; the last one by default.
            Elements of them that two programs store are red.

    Raises:
        ArrangementError: the sizes do not fit the arrangement, or a name is none of its.
    """
    arranged = arranged_by(arrangement, tensors)
    views = _views(arranged, parameter_names(arrangement, tensors))
    if not views:
        raise ArrangementError(
            "the arrangement returned no arranged tensor; there is nothing to show"
        )
    stored = _stored(views, outputs)
    views = [View(v.name, v.tensor, v.name not in stored, v.name in stored) for v in views]
    functions = {"The arrangement": arrangement}
    return _page(
        Model(_title(arrangement), views, default_symbols(arrangement), subs or {}, functions)
    )


def visualize_kernel(kernel: Definition, given: Mapping[Any, Any] | None = None) -> Page:
    """The page of a kernel: what it stores to is known from its program.

    Args:
        kernel: what `ninetoothed.make` knows of it, ``kernel.definition``.
        given: as ``subs`` of `visualize_arrangement`; the application's names may be used.

    Raises:
        ArrangementError: the sizes do not fit the arrangement, or a name is none of its.
    """
    stored, read = written(kernel.program), _read(kernel)
    views, notes = [], []
    for parameter in kernel.tensor_parameters:
        name, tensor = parameter.name, parameter.tensor
        if name in kernel.arranged:
            assert tensor is not None
            views.append(View(name, tensor, name in read or name not in stored, name in stored))
        else:
            notes.append(f"No program has a tile of {name}, which is not shown.")
    functions = {"What one program does": kernel.application}
    names = {symbol: kernel.names[symbol] for symbol in (*kernel.symbols, *kernel.meta_symbols)}
    # The sizes of a tensor that is not shown may decide how others are arranged.
    sources = {parameter.name: parameter.source for parameter in kernel.tensor_parameters}
    sizes = {sources.get(key, key): value for key, value in (given or {}).items()}
    return _page(Model(kernel.name, views, names, sizes, functions, notes))


def _read(kernel: Definition) -> set[str]:
    """The names of the tensors that a program loads from."""
    nodes = list(kernel.program.nodes())
    tiles = {node.tile.parameter for node in nodes if isinstance(node, Load)}
    return tiles | {
        node.parameter for node in nodes if isinstance(node, (SourceLoad, SourcePointer))
    }


def _views(arranged: Sequence[Any], names: Mapping[str, Any]) -> list[View]:
    """The arranged tensors, called as the arrangement calls what they were made of."""
    own = {id(tensor): name for name, tensor in names.items()}
    views: list[View] = []
    for place, value in enumerate(arranged):
        if not isinstance(value, Tensor) or value.source.ndim == 0:
            continue
        source = value.source
        wanted = source.name or own.get(id(source)) or f"tensor_{place}"
        views.append(View(unused(wanted, [view.name for view in views]), value))
    return views


def _title(arrangement: Callable[..., Any]) -> str:
    """The function's name, or its module's where it is just called ``arrangement``."""
    function = getattr(arrangement, "func", arrangement)
    name, module = getattr(function, "__name__", ""), getattr(function, "__module__", "")
    if name.isidentifier() and name != "arrangement":
        return name
    return "arrangement" if module in ("", "__main__") else module.rpartition(".")[2]


def _stored(views: Sequence[View], outputs: Collection[Any] | None) -> set[str]:
    """The names of the tensors that are stored to."""
    if outputs is None:
        return {views[-1].name}
    stored = set()
    for output in outputs:
        found = [
            view.name
            for view in views
            if (
                view.tensor.source is output.source
                if isinstance(output, Level)
                else view.name == output
            )
        ]
        if not found:
            names = [view.name for view in views]
            raise ArrangementError(
                f"`outputs` has {output!r}, which is none of the arranged tensors "
                f"{', '.join(names)}.{near(str(output), names)}"
            )
        stored.update(found)
    return stored


def _page(model: Model) -> Page:
    folder = resources.files(__package__)
    text = {
        name: (folder / name).read_text(encoding="utf-8")
        for name in ("page.html", "page.css", *SCRIPTS)
    }
    script = "\n".join([model.script(), *(text[name] for name in SCRIPTS)])
    page = text["page.html"]
    for mark, content in (
        ("TITLE", html.escape(model.title)),
        ("STYLE", text["page.css"]),
        ("SCRIPT", script),
    ):
        page = page.replace(f"<!--{mark}-->", content)
    return Page(page, model.title)
