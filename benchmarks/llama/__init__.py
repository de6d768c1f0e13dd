"""A Llama: what a step takes, and its products."""
