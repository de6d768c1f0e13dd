"""Kernels compiled ahead of time: C sources that launch them, built without a device, run without Python."""
