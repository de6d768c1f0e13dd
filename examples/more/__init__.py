"""Twenty-two kernels from the guide alone: windows, norms, attention, gathers, scatters, constants.

Each file has one kernel and a function that takes and returns PyTorch tensors; which words of the
language it is about stands in its first line.
"""
