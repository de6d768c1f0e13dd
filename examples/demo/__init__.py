"""The ten kernels of the paper, run here: ``python -m examples.demo``."""
