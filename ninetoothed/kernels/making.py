"""From an arrangement, an application and tensors to the `Specializations` of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ninetoothed.errors import ArrangementError
from ninetoothed.kernels.definition import Integers, Specializations, define
from ninetoothed.kernels.naming import default_name, default_symbols
from ninetoothed.parsing.source import application_of
from ninetoothed.symbols.leaf import Fresh
from ninetoothed.tensors.arrange import arrange
from ninetoothed.tensors.tensor import Tensor


def specializations_of(
    arrangement: Callable[..., Any],
    application: Callable[..., Any],
    tensors: Sequence[Any],
    kernel_name: str | None = None,
    num_warps: Integers = None,
    num_stages: Integers = None,
    max_num_configs: int | None = None,
    specialize: str = "classes",
) -> Specializations:
    """A kernel without a device; see `ninetoothed.make`."""
    application = application_of(application)
    if isinstance(tensors, Tensor | str) or not isinstance(tensors, Iterable):
        raise ArrangementError(
            "`make` takes the tensors as a tuple: `make(arrangement, application, (tensor,))`, not "
            f"{tensors!r}"
        )
    tensors = tuple(tensors)
    names = default_symbols(arrangement)
    for symbol, name in names.items():
        if isinstance(symbol.leaf.owner, Fresh) and symbol.leaf.owner.label is None:
            symbol.leaf.owner.label = name
    return define(
        arrange(arrangement, application, tensors),
        application,
        kernel_name or default_name(arrangement, application),
        names,
        num_warps,
        num_stages,
        max_num_configs,
        specialize,
    )
