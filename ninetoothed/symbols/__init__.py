"""Integer expressions, and what can be proved of them."""
