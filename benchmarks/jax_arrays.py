"""The least that JAX takes for one new array, whatever is in it, by each way that there is.

A kernel's results on JAX's arrays are new arrays, so a call takes no less. The ways marked * are no
part of JAX's interface: they are what its own functions come to.

python -m benchmarks.jax_arrays
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.common.report import table
from benchmarks.common.spread import Spread

#: What makes one new array.
Way = Callable[[], Any]

_CALLS = 500
_ROUNDS = 9


def ways(device: Any, size: int) -> dict[str, Way]:
    """Ways to a new array of ``size`` float16 elements on a device of JAX's, by name."""
    import jax
    import jax.numpy as jnp
    import numpy

    host = numpy.ones(size, numpy.float16)
    array = jax.device_put(host, device)
    with jax.default_device(device):
        filled = jax.jit(lambda: jnp.zeros(size, jnp.float16))
    found: dict[str, Way] = {
        "a compiled function of nothing": filled,
        "a copy from the host": lambda: jax.device_put(host, device),
        "other memory, by DLPack": lambda: jax.dlpack.from_dlpack(array),
    }
    found |= dict(_inner_ways(array, host, device))
    return {name: way for name, way in found.items() if _works(way)}


def _inner_ways(array: Any, host: Any, device: Any) -> Iterator[tuple[str, Way]]:
    with contextlib.suppress(ImportError, AttributeError):
        from jax._src.lib import xla_client

        put = getattr(xla_client, "batched_device_put", None)
        aval, sharding = array.aval, array.sharding
        yield "a copy from the host *", lambda: put(aval, sharding, [host], [device])
    with contextlib.suppress(ImportError, AttributeError):
        from jax._src.lib import _jax

        stream = None
        if device.platform != "cpu":
            stream = device.get_stream_for_external_ready_events()
        take = getattr(_jax, "dlpack_managed_tensor_to_buffer", None)
        yield "other memory, by DLPack *", lambda: take(array.__dlpack__(), device, stream)


def _works(way: Way) -> bool:
    import jax

    try:
        return isinstance(way(), jax.Array)
    except Exception:  # What is no part of the interface comes and goes.
        return False


def microseconds(way: Way) -> float:
    """The host's time for one array; each goes when the next one is there."""
    made = way()
    made.block_until_ready()
    start = time.perf_counter()
    for _ in range(_CALLS):
        made = way()
    spent = time.perf_counter() - start
    made.block_until_ready()
    return 1e6 * spent / _CALLS


def main() -> None:
    """Measures each way in turns on JAX's first device, and prints a table."""
    import jax

    device = jax.devices()[0]
    found = ways(device, 1024)
    times: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(_ROUNDS):
        for name, way in found.items():
            times[name].append(microseconds(way))
    spreads = {name: Spread.of(values) for name, values in times.items()}
    rows = [(name, f"{s.median:.2f}", f"{s.least:.2f}") for name, s in spreads.items()]
    print(f"JAX {jax.__version__}, {device.device_kind}, microseconds of the host's time\n")
    print(table(("a new array by", "median", "least"), rows))


if __name__ == "__main__":
    main()
