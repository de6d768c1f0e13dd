"""Triton's language in NumPy."""
