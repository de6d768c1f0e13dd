"""Which configuration: the estimate, the space, the search, what was found. No device code."""
