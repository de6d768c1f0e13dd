"""Triton's statements as Gluon's, in which a program loads a loop's tiles to buffers itself."""
