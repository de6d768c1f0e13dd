"""The hand-written kernels that ours are set against, and programs for the published package."""
