"""An application run as Python, a program at a time."""
