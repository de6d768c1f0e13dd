"""What several rounds say together."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """Figures of several rounds: their median, least and greatest."""

    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, figures: list[float]) -> Spread:
        """The spread of at least one figure."""
        return cls(statistics.median(figures), min(figures), max(figures))

    @property
    def inverse(self) -> Spread:
        """That of one over each figure."""
        return Spread(1 / self.median, 1 / self.greatest, 1 / self.least)

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.least:.3f}–{self.greatest:.3f})"


def ratios(times: Mapping[str, list[float]], name: str, peer: str) -> Spread:
    """The times of one contender over another's, round by round."""
    return Spread.of([mine / its for mine, its in zip(times[name], times[peer], strict=True)])
