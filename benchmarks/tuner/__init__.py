"""What the tuner is fitted to, and what first calls take."""
