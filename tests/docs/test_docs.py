"""Every Python block of the user's documentation runs, and prints what the page says it prints.

In a page, a block marked ``python`` is run, in order, in one namespace a page. A block marked
``python raises`` must raise an error of the package. A ``text output`` block after either holds
what it prints, or the error's text, with ``...`` for what may differ.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [
    "README.md",
    "docs/architecture.md",
    "docs/index.md",
    "docs/language.md",
    "docs/llama.md",
    "docs/plugins.md",
    "docs/semantics-in-detail.md",
    "docs/semantics.md",
    "docs/switching.md",
    "docs/visualization.md",
    "docs/write-a-frontend.md",
]
FENCE = re.compile(r"^```(.*)$")

#: Every page that says something of the repository.
TEXTS = ["README.md", "CONTRIBUTING.md"] + sorted(
    str(page.relative_to(REPOSITORY)) for page in (REPOSITORY / "docs").rglob("*.md")
)
FOLDERS = ("benchmarks", "docs", "examples", "ninetoothed", "plugins", "requirements", "tests")
#: A file or a folder between backquotes, as `options/swizzle.py` or `passes/`.
PATH = re.compile(r"`((?:[\w.-]+/)*[\w.-]+(?:\.(?:py|c|json|md|toml|txt)|/))`")
#: What a page names that is on its reader's machine.
NOT_OURS = {
    "docs/aot.md": {"manifest.json", "rust/"},
    "docs/llama.md": {"config.json"},
    "docs/tuning.md": {"binaries/"},
    "docs/write-a-frontend.md": {"toy_conformance.py"},
}


@dataclass(frozen=True)
class Block:
    """A fenced block: its info string, its text, and the number of its first line."""

    kind: str
    text: str
    line: int


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a Markdown text, in order."""
    blocks, kind, start = [], None, 0
    lines = page.splitlines()
    for number, line in enumerate(lines, start=1):
        fence = FENCE.match(line)
        if fence is None:
            continue
        if kind is None:
            kind, start = fence[1].strip(), number
        else:
            text = "".join(f"{line}\n" for line in lines[start : number - 1])
            blocks.append(Block(kind, text, start + 1))
            kind = None
    assert kind is None, f"the block that starts at line {start} has no end"
    return blocks


def source_of(page: str, blocks: list[Block]) -> str:
    """The page with everything but its Python blanked, so that line numbers stay the page's."""
    lines = [""] * len(page.splitlines())
    for block in blocks:
        if block.kind.startswith("python"):
            text = block.text.splitlines()
            lines[block.line - 1 : block.line - 1 + len(text)] = text
    return "\n".join(lines) + "\n"


def run_block(block: Block, file: Path, namespace: dict[str, object]) -> str:
    """Run a block as part of ``file``; what it printed, or the text of the error it had to raise."""
    from ninetoothed.errors import NineToothedError

    # Padded, because the compiler takes the line numbers from the text it is given.
    code = compile("\n" * (block.line - 1) + block.text, str(file), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if block.kind != "python raises":
            exec(code, namespace)
            return printed.getvalue()
        with pytest.raises(NineToothedError) as raised:
            exec(code, namespace)
    return f"{raised.type.__name__}: {raised.value}\n"


def check_output(wanted: str, got: str) -> None:
    """Compare by doctest's rules; ``...`` in ``wanted`` stands for anything."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    checker = doctest.OutputChecker()
    if not checker.check_output(wanted, got, flags):
        pytest.fail(checker.output_difference(doctest.Example("", wanted), got, flags))


def run_page(page: str, file: Path) -> int:
    """Run the blocks of a page, checking its outputs; the number of blocks that were run."""
    blocks = blocks_of(page)
    file.write_text(source_of(page, blocks))
    namespace: dict[str, object] = {"__name__": "__main__", "__file__": str(file)}
    ran, printed = 0, None
    for block in blocks:
        if block.kind in ("python", "python raises"):
            printed = run_block(block, file, namespace)
            ran += 1
        elif block.kind == "text output":
            assert printed is not None, f"line {block.line}: an output after no Python block"
            check_output(block.text, printed)
            printed = None
    return ran


@pytest.mark.parametrize("name", PAGES)
def test_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (REPOSITORY / name).read_text()
    for framework, use in (("torch", "import torch"), ("matplotlib", "import visualize\n")):
        if use in page:
            pytest.importorskip(framework, reason=f"the page uses {framework}")
    monkeypatch.setenv("MPLBACKEND", "agg")
    # A page may write files.
    monkeypatch.chdir(tmp_path)

    ran = run_page(page, tmp_path / f"{Path(name).stem}.py")

    assert ran == page.count("```python")


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_somewhere(name: str) -> None:
    """A link to a file of this repository names one that exists, and a heading that it has."""
    page = REPOSITORY / name
    text = re.sub(r"`[^`\n]+`", "", page.read_text())
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", text)

    missing = [
        (link, heading)
        for link, heading in links
        if not (page.parent / link).exists()
        or (heading and heading not in headings_of(page.parent / link if link else page))
    ]

    assert missing == []


def headings_of(page: Path) -> set[str]:
    """The names by which a page's headings are linked to."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.fixture(scope="module")
def files() -> set[str]:
    """The repository's files and folders, from its root, these with a slash at the end."""
    found = set()
    for folder in FOLDERS:
        for path in (REPOSITORY / folder).rglob("*"):
            name = str(path.relative_to(REPOSITORY))
            found.add(f"{name}/" if path.is_dir() else name)
    return found | {f"{folder}/" for folder in FOLDERS}


def missing_paths(text: str, files: set[str]) -> list[str]:
    """The paths in a text that no file has: from the root, or, as `passes/`, the end of one."""
    named = dict.fromkeys(PATH.findall(text))
    return [
        path
        for path in named
        if path not in files
        and not (REPOSITORY / path).exists()
        and (
            path.partition("/")[0] in FOLDERS
            or not any(file.endswith(f"/{path}") for file in files)
        )
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_paths_exist(name: str, files: set[str]) -> None:
    text = (REPOSITORY / name).read_text()

    missing = missing_paths(text, files)

    assert set(missing) <= NOT_OURS.get(name, set())


def test_a_wrong_path_is_noticed(files: set[str]) -> None:
    text = "`ninetoothed/expr.py`, `passes/hoist_loads.py`, `passes/hoist_stores.py`, `rooms/`"

    assert missing_paths(text, files) == ["ninetoothed/expr.py", "passes/hoist_stores.py", "rooms/"]


def test_a_wrong_output_is_noticed(tmp_path: Path) -> None:
    page = "```python\nprint(1 + 1)\n```\n\n```text output\n3\n```\n"

    with pytest.raises(pytest.fail.Exception, match="Expected"):
        run_page(page, tmp_path / "page.py")


def test_a_missing_error_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        run_page("```python raises\n1 + 1\n```\n", tmp_path / "page.py")
