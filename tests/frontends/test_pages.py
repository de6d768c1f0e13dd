"""The pages on Paddle run as they stand, where the frameworks that they use are installed."""

from __future__ import annotations

import pytest

from tests.docs.test_docs import REPOSITORY, run_page


@pytest.mark.parametrize(
    ("name", "frameworks"), [("paddle", ["paddle"]), ("mixing-frameworks", ["torch", "paddle"])]
)
def test_the_page_runs(name, frameworks, tmp_path):
    for framework in frameworks:
        pytest.importorskip(framework, reason=f"the page uses {framework}")
    page = (REPOSITORY / "docs" / f"{name}.md").read_text()
    assert run_page(page, tmp_path / "page.py") == page.count("```python")
