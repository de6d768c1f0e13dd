"""The Triton backend: kernels on GPUs. Importing it imports neither Triton nor a framework."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ninetoothed import threads
from ninetoothed.backends.base import Backend, Call, Lent, Plan
from ninetoothed.language.dtypes import DType, element_type
from ninetoothed.plugins.hookspecs import hookimpl

if TYPE_CHECKING:
    from ninetoothed.kernels.ahead import Edition, Fixed, Image, Variant
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.tuning.results import Entry
    from ninetoothed.tuning.space import Effort, Tuned

NINETOOTHED_CONTRACT = 1


class TritonBackend(Backend):
    """Emits Triton source, compiles it with Triton and launches it directly."""

    name = "triton"
    device_kinds = ("cuda", "hip")

    def plan(self, kernel: Definition, call: Call, values: tuple[Any, ...] | None = None) -> Plan:
        """What runs ``kernel`` for every call of this key; see `Backend.plan`."""
        return _planning().Planner(kernel, call).plan(values)

    def element_type(self, item: object) -> DType | None:
        """The element type that one of Triton's is."""
        kind = type(item)
        is_one = kind.__module__ == "triton.language.core" and kind.__name__ == "dtype"
        return element_type(str(item)) if is_one else None

    def tune(
        self, kernel: Definition, call: Call, values: tuple[Any, ...], effort: Effort
    ) -> Tuned:
        """Searches for the fastest configuration of a call; see `ninetoothed.tune`."""
        return _planning().Planner(kernel, call).tune(values, effort)

    def source(self, kernel: Definition) -> str:
        """The Triton source of a kernel, with nothing known of the arguments."""
        from ninetoothed.backends.triton.translation import source_of

        return source_of(kernel)

    def compile(self, kernel: Definition, call: Call, target: Any, *choices: Any) -> Any:
        """Triton's ``CompiledKernel``; see `Backend.compile`."""
        return _planning().compile_for_target(kernel, call, target, *choices)

    def targets(self) -> tuple[str, ...]:
        """What kernels are compiled for ahead of time."""
        from ninetoothed.backends.triton.ahead.devices import DEVICES

        return tuple(DEVICES)

    def editions(
        self,
        kernel: Definition,
        fixed: Fixed,
        target: str,
        found: Sequence[Entry] = (),
        device: str | None = None,
    ) -> Sequence[Edition]:
        """The kernel as it is best for a target; see `Backend.editions`."""
        from ninetoothed.backends.triton.ahead.tuned import editions_of

        return editions_of(kernel, fixed, target, found, device)

    def images(self, variant: Variant, target: str, with_text: bool) -> Sequence[Image]:
        """A variant, compiled by Triton; see `Backend.images`."""
        from ninetoothed.backends.triton.ahead.variants import images_of

        return images_of(variant.work, target, with_text)

    def devices(self, kind: str) -> list[str]:
        """The devices of a kind, as their own driver tells of them."""
        from ninetoothed.backends.triton.runtime.device_api import runtime

        library = runtime(kind)
        return [library.limits(index).described() for index in range(library.device_count())]

    def lent(self, kind: str, contents: Sequence[bytes]) -> AbstractContextManager[Lent]:
        """Memory of the first device of a kind."""
        from ninetoothed.backends.triton.runtime.device_api import lent

        return lent(kind, contents)

    def on_device(self, index: int, addresses: Sequence[int]) -> Callable[..., bool] | None:
        """The driver's answer, for several addresses at once; see `Backend.on_device`."""
        from ninetoothed.backends.triton.runtime.device_addresses import on_device

        return on_device(index, addresses)


@functools.cache
def _planning() -> ModuleType:
    """The planner, imported with all that it needs by the first call."""
    with threads.without_collections():
        from ninetoothed.backends.triton.compiler import versions
        from ninetoothed.backends.triton.planning import planner

        versions.version()
    return planner


BACKEND = TritonBackend()


@hookimpl
def ninetoothed_backends() -> Iterable[Backend]:
    """The Triton backend."""
    return (BACKEND,)
