"""Draws the pictures of docs/visualization.md, the paper's figures of section 3: run it from the root.

python -m docs.images.draw [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt

from examples import conv2d, mm
from ninetoothed import Tensor
from ninetoothed.visualization import visualize

FOLDER = Path(__file__).parent
#: Texts stay texts, so that a picture is small, and equal pictures are equal files.
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "ninetoothed"}


def meta_operations() -> dict[str, list[Tensor]]:
    """Section 3.1: what each meta-operation makes of its operand."""
    x, row, pair = (Tensor(shape=s, name="x") for s in ((4, 4), (1, 4), (1, 2)))
    tiled = x.tile((2, 2))
    return {
        "tile": [x, tiled],
        "expand": [row, row.expand((3, -1))],
        "squeeze": [pair, pair.squeeze(0)],
        "permute": [x, x.permute((1, 0))],
        "flatten": [x, x.flatten()],
        "ravel": [tiled, tiled.ravel()],
        "pad": [row, row.pad(((1, 1), (0, 2)))],
        "not-full": [Tensor(shape=(3, 5), name="x").tile((2, 2))],
    }


def product() -> dict[str, list[Tensor]]:
    """Section 3.2: the arrangement of a product of 4 × 4 matrices, step by step."""
    input, other, output = (Tensor(shape=(4, 4), name=n) for n in ("input", "other", "output"))
    tiles = (input.tile((2, 2)), other.tile((2, 2)))
    rows, columns = tiles[0].tile((1, -1)), tiles[1].tile((-1, 1))
    arranged = mm.arrangement(input, other, output, 2, 2, 2)
    return {
        "mm-input": [input, tiles[0], rows, rows.expand((-1, 2)), arranged[0]],
        "mm-other": [other, tiles[1], columns, columns.expand((2, -1)), arranged[1]],
        "mm-output": [output, arranged[2]],
    }


def convolution() -> dict[str, list[Tensor]]:
    """Section 3.3: windows of an image, and filters, as matrices."""
    shapes = ((1, 2, 3, 3), (2, 2, 2, 2), (1, 2, 2, 2))
    tensors = [Tensor(shape=s, name=n) for s, n in zip(shapes, ("input", "filter", "output"))]
    blocks = {mm.BLOCK_SIZE_M: 2, mm.BLOCK_SIZE_N: 2, mm.BLOCK_SIZE_K: 4}
    arranged = [tensor.subs(blocks) for tensor in conv2d.arrangement(*tensors)]
    return {f"conv2d-{t.name}": [t, a] for t, a in zip(tensors, arranged)}


def pictures() -> Iterator[tuple[str, list[Tensor]]]:
    for figures in (meta_operations(), product(), convolution()):
        yield from figures.items()


def draw(folder: Path) -> None:
    """Writes all pictures."""
    with matplotlib.rc_context(SETTINGS):
        for name, tensors in pictures():
            for tensor in tensors:
                color = {"input": "C0", "other": "C1", "filter": "C1", "output": "C2", "x": "C0"}
                visualize(tensor, color[tensor.source.name])
            metadata = {"Date": None}
            plt.savefig(folder / f"{name}.svg", bbox_inches="tight", metadata=metadata)
            plt.close()


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
