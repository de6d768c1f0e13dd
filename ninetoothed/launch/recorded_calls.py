"""The list of what a process called, in a file: what `warm_up` compiles for in another."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ninetoothed import threads
from ninetoothed.errors import NineToothedError
from ninetoothed.kernels.call import Argument, Call, Device
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType

if TYPE_CHECKING:
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.launch.kernel import Kernel


class Recorder:
    """Adds the calls that are planned to the file that ``$NINETOOTHED_RECORD`` names, each once."""

    def __init__(self) -> None:
        self._known: set[tuple[str, str]] = set()
        self._lock = threads.lock()

    def note(self, kernel: Kernel, definition: Definition, call: Call) -> None:
        """Adds a call; one that another process could not make is left out."""
        path = os.environ.get("NINETOOTHED_RECORD")
        if not path:
            return
        line = _line(kernel, definition, call)
        with self._lock:
            if line is None or (path, line) in self._known:
                return
            self._known.add((path, line))
            try:
                with Path(path).open("a", encoding="utf-8") as file:
                    file.write(line)
            except OSError as error:
                raise NineToothedError(
                    f"NINETOOTHED_RECORD={path} cannot be written: {error.strerror}"
                ) from None


RECORDER = Recorder()


def _line(kernel: Kernel, definition: Definition, call: Call) -> str | None:
    """A call as a line; None where its kernel has no name in a module or a constant is no plain one."""
    try:
        _, (module, name) = kernel.__reduce__()
        pickle.dumps(kernel)
        entry = {
            "kernel": [module, name],
            "tensors": {
                name: [list(a.shape), list(a.strides), a.dtype.name, a.alignment]
                for name, a in call.arguments.items()
            },
            "scalars": {name: dtype.name for name, dtype in call.scalars.items()},
            "scales": sorted(call.scales),
            "constants": {name: _to_json(value) for name, value in call.constants.items()},
            "device": [call.device.kind, call.device.index],
        }
        if module == "__main__" or definition_of(kernel, call) is not definition:
            return None
    except (NineToothedError, pickle.PicklingError, KeyError, TypeError):
        return None
    return json.dumps(entry, sort_keys=True) + "\n"


def _to_json(value: Any) -> Any:
    if isinstance(value, DType):
        return {"dtype": value.name}
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"{value!r} is no plain constant")


def call_of(entry: dict[str, Any]) -> Call:
    """The call that a line holds."""
    return Call(
        {
            name: Argument(tuple(shape), tuple(strides), dtypes.by_name(dtype), alignment)
            for name, (shape, strides, dtype, alignment) in entry["tensors"].items()
        },
        {name: dtypes.by_name(dtype) for name, dtype in entry["scalars"].items()},
        {
            name: dtypes.by_name(value["dtype"]) if isinstance(value, dict) else value
            for name, value in entry["constants"].items()
        },
        Device(*entry["device"]),
        scales=frozenset(entry.get("scales", ())),
    )


def definition_of(kernel: Kernel, call: Call) -> Definition:
    """The definition that a call is of."""
    declared = kernel.declaration
    names = [*declared.constants, *(declared.names[symbol] for symbol in declared.symbols)]
    return kernel.specializations.of({name: call.constants[name] for name in names})
