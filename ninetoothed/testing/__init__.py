"""Tools for those who write a frontend: the checks that one must pass. Needs pytest to be run.

`FrontendConformance` is subclassed in a test module of the frontend's own package; the guide on
writing a frontend shows one.
"""

from __future__ import annotations

from ninetoothed.testing.conformance import FrontendConformance, failures
from ninetoothed.testing.expectations import ConformanceError

__all__ = ["ConformanceError", "FrontendConformance", "failures"]
