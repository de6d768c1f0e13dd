"""From text to a binary, for a target; no device is needed."""
