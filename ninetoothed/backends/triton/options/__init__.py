"""What may be done beyond the plain translation, an option a file."""
