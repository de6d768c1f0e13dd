"""What the host alone does: importing, making, compiling, remembering; and the size of the code. No device."""
