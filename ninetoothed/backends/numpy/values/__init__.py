"""Tiles as NumPy arrays, with Triton's types."""
