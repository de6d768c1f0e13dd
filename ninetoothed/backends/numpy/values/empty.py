"""The mask of a tile that has a size of 0: no element, in the one lane that a dimension has at least.

A dimension of one lane looks, in a mask, as one that it does not depend on. What a tile is reduced to along the
dimension of size 0 exists, and along another one it does not: so this mask says of each dimension which it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ninetoothed.language.promotion import refuse


class EmptyMask(np.ndarray):
    """That a tile has no element, because of a size of 0.

    Attributes:
        along: an array without elements in the tile's dimensions: of size 0 is the one that the mask depends on.
    """

    along: np.ndarray

    def __array_finalize__(self, source: Any) -> None:
        self.along = getattr(source, "along", np.empty(self.shape, bool))

    def __array_ufunc__(self, ufunc: Any, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        """What is computed with it is a mask as others are."""
        plain = (np.asarray(each) if isinstance(each, EmptyMask) else each for each in inputs)
        return getattr(ufunc, method)(*plain, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        return _of(self.along[key])

    def transpose(self, *axes: Any) -> Any:
        return _of(self.along.transpose(*axes))

    def swapaxes(self, one: Any, other: Any) -> Any:
        return _of(self.along.swapaxes(one, other))

    def squeeze(self, axis: Any = None) -> Any:
        return _of(self.along.squeeze(axis))


def _of(along: np.ndarray) -> EmptyMask:
    mask = np.zeros([max(size, 1) for size in along.shape], bool).view(EmptyMask)
    mask.along = along
    return mask


def empty_mask(dim: int, ndim: int) -> EmptyMask:
    """That a tile of so many dimensions has a size of 0 in one."""
    return _of(np.empty([0 if other == dim else 1 for other in range(ndim)], bool))


def is_reduced(mask: EmptyMask, axis: int) -> bool:
    """Whether what is left of a tile along a dimension exists all the same."""
    return mask.along.shape[axis] == 0


def check_any(function: str, ndim: int, *validities: Iterable[Any]) -> None:
    """`CompilationError` where a function moves a tile without elements to several dimensions.

    Nothing would say for which rows that is so.
    """
    if ndim > 1 and any(isinstance(mask, EmptyMask) for each in validities for mask in each):
        raise refuse(
            f"ntl.{function} moves the elements of a tile that has none in this call: one of its sizes is 0. "
            "Launch the kernel only where there are some, or move them in one dimension."
        )
