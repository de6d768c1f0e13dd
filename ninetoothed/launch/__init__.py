"""From a call to its plan: the callable kernel and its generated launch functions."""
