"""Tiles as NumPy arrays, with Triton's types."""

# Tiles have their operators wherever they are: this module adds them to `Tile`.
from ninetoothed.backends.numpy.values import operators  # noqa: F401
