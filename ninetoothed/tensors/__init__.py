"""Symbolic tensors, their arrangement, and which element of its source each tile's element is."""
