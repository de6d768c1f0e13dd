"""Questions about a kernel, answered without running it."""
