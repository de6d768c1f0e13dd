"""From a kernel to Triton's or Gluon's text."""
