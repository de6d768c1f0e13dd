"""Kernels as a user would write them: an arrangement, an application, `make`, and a function.

The kernels themselves know no framework. The functions beside them take and return PyTorch tensors,
through the tensors' own methods, so that nothing here imports PyTorch.
"""
