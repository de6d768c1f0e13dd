"""Binaries on a device: the driver, its memory, launches and their times."""
