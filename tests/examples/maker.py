"""Random tensors for the tests and the benchmarks, without any of the examples."""

from __future__ import annotations

import torch


class Maker:
    """Makes random tensors of one element type, on one device, in one layout."""

    def __init__(self, dtype: torch.dtype, device: str = "cpu", layout: str = "contiguous") -> None:
        self.dtype, self.device, self.layout = dtype, device, layout
        self.generator = torch.Generator(device).manual_seed(0)

    def __call__(self, *shape: int) -> torch.Tensor:
        """A tensor of normally distributed values with this shape.

        "transposed" has its last two dimensions swapped in memory (one dimension: every third
        element), "sliced" is every second element but the first of a larger tensor.
        """
        if self.layout == "transposed" and len(shape) > 1:
            return self._random(*shape[:-2], shape[-1], shape[-2]).transpose(-1, -2)

        if self.layout == "transposed":
            return self._random(*shape[:-1], 3 * shape[-1])[..., ::3]

        if self.layout == "sliced":
            larger = self._random(*(2 * size + 1 for size in shape))
            return larger[tuple(slice(1, None, 2) for _ in shape)]

        return self._random(*shape)

    def _random(self, *shape: int) -> torch.Tensor:
        values = torch.randn(*shape, generator=self.generator, device=self.device)
        return values.to(self.dtype)
