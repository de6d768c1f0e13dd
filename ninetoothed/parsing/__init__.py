"""From an application to a Program: names resolved, helpers inlined, positions kept.

Pure: no device, no framework, no file but the user's source. An application is evaluated
symbolically, statement by statement: what is known at compile time is computed, and the rest becomes
statements of the Program.

- ``source``: a user's function: its tree with true positions, and what its free names mean
- ``values``: what an expression can stand for
- ``objects``: Python objects as values
- ``decisions``: what constexpr symbols decide
- ``frames``: one function being evaluated: its variables, its errors, its output
- ``bindings``: what variables hold, in which order, and where ways meet
- ``tiles``: what may be done with a parameter
- ``expressions``, ``operators``, ``language_calls``, ``builtin_calls`` (Python's own functions),
  ``calls``, ``assignments``, ``statements``, ``application``: Python's syntax, each on top of the
  ones before
"""

from ninetoothed.parsing.application import parse
from ninetoothed.parsing.compile_time import Decisions

__all__ = ["Decisions", "parse"]
