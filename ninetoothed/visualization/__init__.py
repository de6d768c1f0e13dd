"""Pictures of arranged tensors: levels as nested boxes, and a page that lights what a program touches.

`visualize` draws with matplotlib, which the extra ``visualization`` installs. The page needs nothing
but a browser, and no network. Nothing here knows of plugins, backends or launches.
"""

from __future__ import annotations

from ninetoothed.visualization.figure import visualize
from ninetoothed.visualization.page import Page, visualize_arrangement, visualize_kernel

__all__ = ["Page", "visualize", "visualize_arrangement", "visualize_kernel"]
