"""The Program: what one program does with its tiles, as data."""
