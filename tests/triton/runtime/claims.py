"""What the scripts about fake drivers share: what a fake was told to launch, and how claims are told."""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable, Sequence


class Launch(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("count", ctypes.c_uint),
        ("stream", ctypes.c_uint64),
        ("function", ctypes.c_uint64),
        ("context", ctypes.c_uint64),
    )


def tell(claims: Sequence[Callable[[], None]]) -> None:
    """A line for each: whether it holds, or how it fails."""
    for claim in claims:
        try:
            claim()
            print(f"{claim.__name__}: holds", flush=True)
        except BaseException:
            print(f"{claim.__name__}: {traceback.format_exc()}".replace("\n", "\n    "), flush=True)
