"""Kernels compiled ahead of their calls: what each variant assumes, its source, its binary."""
