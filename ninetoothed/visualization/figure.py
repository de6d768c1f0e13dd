"""A tensor of known sizes as nested boxes, drawn with matplotlib: a box for each element of a level.

The paper's figures of section 3 are such boxes. Where elements lie is `Tensor.eval`'s.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, NamedTuple

from ninetoothed.errors import ArrangementError, MissingPackageError, caller_location
from ninetoothed.symbols.expr import as_symbol
from ninetoothed.tensors.evaluate import eval
from ninetoothed.tensors.level import Level
from ninetoothed.tensors.meta_operation import shape_text

#: More than these cannot be told apart in a picture.
MOST_ELEMENTS = 65536
#: Up to so many elements, each bears its number.
MOST_NUMBERED = 512

#: In elements: the room around the boxes of a level.
_MARGIN = 0.25
#: In inches: an element and the line above a tensor, where the figure does not get too large by it.
_ELEMENT, _LINE, _MOST_INCHES = 0.3, 0.36, 12.0


class _Drawn(NamedTuple):
    """A tensor of a figure: its levels' shapes, its elements' numbers, its colour, its title."""

    shapes: tuple[tuple[int, ...], ...]
    elements: Any
    color: Any
    title: str


#: What each figure has so far, so that the next call draws below it.
_drawn: weakref.WeakKeyDictionary[Any, list[_Drawn]] = weakref.WeakKeyDictionary()


def visualize(
    tensor: Level, color: Any = None, save_path: str | PathLike[str] | None = None
) -> None:
    """Draws the levels of a tensor as nested boxes, below what the current figure has already.

    An element is filled and bears its number in the source, flattened; one that the source does not
    have is hatched. ``matplotlib.pyplot.figure()`` begins a new figure. A notebook shows it.

    Args:
        tensor: all its sizes are known: numbers, or replaced by ``tensor.subs(...)``.
        color: any of matplotlib's; by default another one for each tensor of the figure.
        save_path: a file for the figure; its ending, such as .svg, .png or .pdf, is the format.

    Raises:
        ArrangementError: a size is not known, the sizes do not fit the arrangement, there are more
            elements than a picture can show, or matplotlib knows no such format or colour.
        MissingPackageError: matplotlib is not installed.
    """
    drawn = _levels_of(tensor)
    try:
        import matplotlib.pyplot as plt
        from matplotlib.colors import is_color_like
    except ImportError as error:
        raise MissingPackageError(
            "`visualize` draws with matplotlib, which cannot be imported "
            f"({error}): pip install 'ninetoothed[visualization]'. "
            "`visualize_arrangement` makes a page for the browser and needs none.",
            caller_location(),
        ) from error
    if color is not None and not is_color_like(color):
        raise ArrangementError(f"{color!r} is no colour of matplotlib's")
    figure = plt.gcf()
    if save_path is not None:
        _check_format(figure, save_path)
    tensors = _drawn.setdefault(figure, [])
    tensors.append(drawn._replace(color=f"C{len(tensors)}" if color is None else color))
    _draw(figure, tensors)
    if save_path is not None:
        figure.savefig(save_path, bbox_inches="tight")


def _levels_of(tensor: Any) -> _Drawn:
    if not isinstance(tensor, Level):
        raise ArrangementError(
            f"`visualize` draws a ninetoothed.Tensor, not {type(tensor).__name__}"
        )
    sizes = [*tensor.source.shape, *(size for level in tensor.levels for size in level.shape)]
    unknown = dict.fromkeys(str(leaf) for size in sizes for leaf in as_symbol(size).leaves())
    if unknown:
        raise ArrangementError(
            f"`visualize` draws a tensor of known sizes, but {', '.join(unknown)} "
            f"of {tensor!r} {'is' if len(unknown) == 1 else 'are'} not known; replace symbols by "
            'numbers first, as in visualize(t.subs({x: {"shape": (4, 8)}, BLOCK_SIZE: 2})), or give '
            "numbers to begin with, as in Tensor(shape=(4, 8))"
        )
    shapes = tuple(
        tuple(as_symbol(size).evaluate({}) for size in level.shape) for level in tensor.levels
    )
    count = math.prod(size for shape in shapes for size in shape)
    if count > MOST_ELEMENTS:
        raise ArrangementError(
            f"{tensor!r} has {count} elements, and a picture shows {MOST_ELEMENTS} at most; "
            "draw it with smaller sizes"
        )
    name = tensor.source.display_name or "source"
    levels = " of ".join(map(shape_text, shapes))
    title = f"{name} {shape_text(tensor.source.shape)}"
    is_arranged = tensor is not tensor.source
    return _Drawn(
        shapes, eval(tensor), None, f"{title}, arranged as {levels}" if is_arranged else title
    )


def _check_format(figure: Any, path: str | PathLike[str]) -> None:
    known = sorted(figure.canvas.get_supported_filetypes())
    ending = str(path).rpartition(".")[2].lower()
    if ending not in known:
        raise ArrangementError(
            f"{str(path)!r} ends with no format of a picture; matplotlib writes {', '.join(known)}"
        )


class Box(NamedTuple):
    """A rectangle, in elements, from the top left; ``element`` is None but in the innermost level."""

    x: float
    y: float
    width: float
    height: float
    depth: int
    element: int | None


def boxes(shapes: Sequence[tuple[int, ...]], elements: Any) -> Iterator[Box]:
    """The boxes of a tensor's levels, outer ones first, and the elements within them."""
    yield from _level(list(shapes), elements.reshape(-1).tolist(), 0.0, 0.0, 0)


def _level(
    shapes: list[tuple[int, ...]], elements: list[int], x: float, y: float, depth: int
) -> Iterator[Box]:
    width, height = _extent(shapes)
    yield Box(x, y, width, height, depth, None)
    count = math.prod(shapes[0])
    if not count:
        return
    is_innermost = len(shapes) == 1
    each = len(elements) // count
    step_x, step_y = _inner(shapes[1:])
    for place in range(count):
        left, top = _position(shapes[0], place, step_x, step_y)
        left, top = x + _MARGIN + left, y + _MARGIN + top
        if is_innermost:
            yield Box(left, top, 1.0, 1.0, depth + 1, elements[place])
        else:
            part = elements[place * each : (place + 1) * each]
            yield from _level(shapes[1:], part, left, top, depth + 1)


def _inner(shapes: list[tuple[int, ...]]) -> tuple[float, float]:
    """How far elements of a level are from one another: elements touch, tiles do not."""
    if not shapes:
        return 1.0, 1.0
    width, height = _extent(shapes)
    return width + _MARGIN, height + _MARGIN


def _extent(shapes: list[tuple[int, ...]]) -> tuple[float, float]:
    """Width and height of a level's box."""
    count = math.prod(shapes[0])
    step_x, step_y = _inner(shapes[1:])
    gap = _MARGIN if len(shapes) > 1 else 0.0
    if not count:
        return 2 * _MARGIN, 2 * _MARGIN
    right, bottom = _position(shapes[0], count - 1, step_x, step_y)
    return right + step_x - gap + 2 * _MARGIN, bottom + step_y - gap + 2 * _MARGIN


def _position(
    shape: tuple[int, ...], place: int, step_x: float, step_y: float
) -> tuple[float, float]:
    """Where an element lies: dimensions run across and down in turns, from the last to the first."""
    steps, at = [step_x, step_y], [0.0, 0.0]
    for turn, size in enumerate(reversed(shape)):
        place, index = divmod(place, size)
        axis = turn % 2
        at[axis] += index * steps[axis]
        # Beyond two dimensions a picture is a row or a column of pictures, with room between.
        steps[axis] = steps[axis] * size + 2 * _MARGIN
    return at[0], at[1]


def _draw(figure: Any, tensors: list[_Drawn]) -> None:
    """Draws all tensors of a figure, from the top down."""
    figure.clear()
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    extents = [_extent(list(tensor.shapes)) for tensor in tensors]
    right = max(8.0, *(width for width, _ in extents))
    scale = min(_ELEMENT, _MOST_INCHES / max(right, sum(height for _, height in extents)))
    top, line = 0.0, _LINE / scale
    for tensor, (_, height) in zip(tensors, extents):
        axes.text(0, top + line * 0.7, tensor.title, fontsize=9, color="0.3")
        _draw_tensor(axes, tensor, top + line, 20 * scale)
        top += line + height
    axes.set_xlim(-_MARGIN, right + _MARGIN)
    axes.set_ylim(top + _MARGIN, 0)
    figure.set_size_inches((right + 2 * _MARGIN) * scale, (top + _MARGIN) * scale)


def _draw_tensor(axes: Any, tensor: _Drawn, top: float, font: float) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    base = to_rgb(tensor.color)
    light = tuple(1 - 0.35 * (1 - part) for part in base)
    ink = "white" if 0.3 * base[0] + 0.59 * base[1] + 0.11 * base[2] < 0.6 else "black"
    kinds: dict[str, list[Any]] = {"level": [], "element": [], "padding": []}
    is_numbered = tensor.elements.size <= MOST_NUMBERED
    for box in boxes(tensor.shapes, tensor.elements):
        patch = Rectangle((box.x, box.y + top), box.width, box.height)
        kind = "level" if box.element is None else "padding" if box.element < 0 else "element"
        kinds[kind].append(patch)
        if kind == "element" and is_numbered:
            middle = (box.x + 0.5, box.y + top + 0.5)
            number = str(box.element)
            axes.text(*middle, number, ha="center", va="center", fontsize=font, color=ink)
    looks: dict[str, dict[str, Any]] = {
        "level": {"facecolor": "none", "edgecolor": base, "linewidth": 0.8},
        "element": {"facecolor": base, "edgecolor": "white", "linewidth": 0.6},
        "padding": {"facecolor": "white", "edgecolor": light, "linewidth": 0.6, "hatch": "////"},
    }
    for kind, patches in kinds.items():
        axes.add_collection(PatchCollection(patches, **looks[kind]))
