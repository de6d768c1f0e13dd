"""What `make` knows of a kernel; no plan, no plugin and no device."""
