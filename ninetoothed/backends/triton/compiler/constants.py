"""What a kernel's compile-time constants are to Triton."""

from __future__ import annotations

import enum
import operator
from typing import Any

from ninetoothed.errors import ArgumentError
from ninetoothed.language import LanguageFunction
from ninetoothed.language.dtypes import DType


def constant_of(value: Any) -> Any:
    """A compile-time constant as Triton has it: the parser knows enumerations by their values."""
    if isinstance(value, enum.Enum):
        return constant_of(value.value)
    if isinstance(value, DType):
        import triton.language as tl

        return getattr(tl, value.triton_name)
    if isinstance(value, LanguageFunction):
        if value.name.startswith("libdevice."):
            raise ArgumentError(
                f"{value!r} cannot be a constant on a GPU: Triton has such functions only where its "
                "source names them. Call it in the application, and hand over what decides whether."
            )
        import triton.language as tl

        return operator.attrgetter(value.name)(tl)
    return value
