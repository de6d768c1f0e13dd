"""From a kind of call to a compiled kernel: the space, its ranking, the search, the plan."""
