"""Keys and values of the positions so far: a row of room for each request, or pages by a table.

Both are pages (pages, heads, positions of a page, size) to the kernels. Without a table each request has
one page, of the longest length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from examples.llama.config import Config


@dataclass
class Cache:
    """A cache of all layers.

    Attributes:
        keys, values: (layers, pages, heads, positions of a page, size).
        table: int32 (requests, pages of a request), where there are pages to look up.
        length: so many positions a request has room for.
    """

    keys: torch.Tensor
    values: torch.Tensor
    table: torch.Tensor | None
    length: int

    @property
    def is_paged(self) -> bool:
        """Whether a table says where pages are."""
        return self.table is not None


def _pages(config: Config, shape: tuple[int, ...], dtype: torch.dtype, device: Any) -> Any:
    """Zeros: what is not yet written is multiplied by weights of 0, and must not be NaN."""
    whole = (config.num_hidden_layers, *shape, config.head_dim)
    return [torch.zeros(whole, dtype=dtype, device=device) for _ in range(2)]


def static_cache(
    config: Config, requests: int, length: int, dtype: torch.dtype, device: Any, heads: int
) -> Cache:
    """Room for so many positions of each request."""
    return Cache(*_pages(config, (requests, heads, length), dtype, device), None, length)


def paged_cache(
    config: Config,
    requests: int,
    length: int,
    dtype: torch.dtype,
    device: Any,
    heads: int,
    page_size: int = 64,
    order: torch.Tensor | None = None,
) -> Cache:
    """Pages for so many positions of each request, whose numbers are in a table.

    Args:
        order: which page is whose: a permutation of all; by default they are in order.
    """
    each = -(-length // page_size)
    keys, values = _pages(config, (requests * each, heads, page_size), dtype, device)
    order = torch.arange(requests * each) if order is None else order
    table = order.reshape(requests, each).to(device, torch.int32)

    return Cache(keys, values, table, each * page_size)
