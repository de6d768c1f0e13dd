"""What the text of a function is: its definition, and walks over that."""
