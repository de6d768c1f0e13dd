"""What the printers print."""
