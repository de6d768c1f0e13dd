"""What each option of the Triton backend gains: ``python -m benchmarks.option_trials``."""
