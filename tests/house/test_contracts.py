"""The house's order: each contract of `pyproject.toml` holds, and fails where it is broken; no circles."""

from __future__ import annotations

import fnmatch
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.house.import_graph import circles, edges_of, graph_of, without

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIGURATION = REPOSITORY / "pyproject.toml"
TRITON = "ninetoothed.backends.triton"

#: The public names are loaded when they are asked for: of these imports there are types only.
PUBLIC_NAMES = ("ninetoothed", "ninetoothed.*")


def written_as(import_: str, how: str) -> str:
    """An import at the top, inside of a function, or for types only."""
    return {
        "top": import_,
        "lazy": f"def late():\n    {import_}",
        "types": f"from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    {import_}",
    }[how]


#: Contract, file, the import that it forbids there, how it is written.
BREACHES = [
    ("house", "symbols/__init__.py", "import ninetoothed.language.dtypes", "top"),
    ("house", "language/__init__.py", "import ninetoothed.tensors", "lazy"),
    ("house", "tensors/__init__.py", "import ninetoothed.program", "types"),
    ("house", "program/__init__.py", "import ninetoothed.parsing", "lazy"),
    ("house", "passes/__init__.py", "import ninetoothed.parsing", "types"),
    ("house", "parsing/__init__.py", "import ninetoothed.passes", "top"),
    ("house", "kernels/__init__.py", "import ninetoothed.tuning", "top"),
    ("house", "kernels/__init__.py", "import ninetoothed.visualization", "lazy"),
    ("house", "visualization/__init__.py", "import ninetoothed.launch.make", "lazy"),
    ("house", "tuning/__init__.py", "import ninetoothed.backends.base", "types"),
    ("house", "backends/base.py", "import ninetoothed.plugins", "lazy"),
    ("house", "plugins/__init__.py", "import ninetoothed.frontends.torch", "top"),
    ("house", "backends/numpy/__init__.py", "import ninetoothed.launch.generate", "lazy"),
    ("house", "launch/__init__.py", "import ninetoothed.doctor", "types"),
    ("house", "aot/__init__.py", "import ninetoothed.launch", "lazy"),
    ("plugins", "aot/__init__.py", "import ninetoothed.backends.triton.backend", "lazy"),
    ("triton-road", "backends/triton/planning/__init__.py", f"import {TRITON}.ahead", "top"),
    ("plugins", "launch/__init__.py", "import ninetoothed.backends.numpy.backend", "lazy"),
    ("plugins", "backends/numpy/__init__.py", "import ninetoothed.backends.triton", "top"),
    ("torch", "launch/__init__.py", "import torch", "lazy"),
    ("paddle", "frontends/torch.py", "import paddle", "types"),
    ("triton", "backends/triton/printers/__init__.py", "import triton.language", "lazy"),
    ("triton-road", "backends/triton/specialization/__init__.py", f"import {TRITON}.ir", "top"),
    ("triton-road", "backends/triton/analysis/__init__.py", f"import {TRITON}.ir", "types"),
    ("triton-road", "backends/triton/ir/__init__.py", f"import {TRITON}.options", "lazy"),
    ("triton-road", "backends/triton/options/__init__.py", f"import {TRITON}.planning", "lazy"),
    ("triton-road", "backends/triton/printers/__init__.py", f"import {TRITON}.options", "types"),
    ("triton-options", "backends/triton/options/new.py", f"import {TRITON}.options.swizzle", "top"),
    ("triton-decisions", "backends/triton/options/new.py", f"import {TRITON}.runtime", "lazy"),
    (
        "triton-machinery",
        "backends/triton/runtime/__init__.py",
        f"import {TRITON}.options",
        "types",
    ),
]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[bool, bool]]:
    """For each breach whether the contract held before it, and with it."""
    pytest.importorskip(
        "importlinter", reason="needs import-linter, which requirements/test.txt installs"
    )
    folder = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "ninetoothed", folder / "ninetoothed", ignore=ignored)
    cases = [
        (contract, f"ninetoothed/{file}", written_as(import_, how))
        for contract, file, import_, how in BREACHES
    ]
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("break_contracts.py"), CONFIGURATION],
        input=json.dumps(cases),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "breach", range(len(BREACHES)), ids=[f"{c}-{f}-{how}" for c, f, _, how in BREACHES]
)
def test_a_contract_holds_until_it_is_broken(
    verdicts: list[tuple[bool, bool]], breach: int
) -> None:
    held, holds = verdicts[breach]

    assert held
    assert not holds


def test_each_contract_is_broken_once() -> None:
    contracts = {contract["id"] for contract in _contracts()}

    assert contracts == {contract for contract, *_ in BREACHES}


def test_each_module_has_its_place_in_the_order() -> None:
    house = next(contract for contract in _contracts() if contract["id"] == "house")
    placed = [
        name.strip(" ()") for line in house["layers"] for name in line.replace("|", ":").split(":")
    ]
    graph = graph_of(REPOSITORY / "ninetoothed")
    homeless = [
        module
        for module in graph
        if not any(f"{module}.".startswith(f"{place}.") for place in placed if place)
    ]

    assert homeless == ["ninetoothed", "ninetoothed.backends", "ninetoothed.frontends"]


def test_no_modules_import_one_another() -> None:
    """Imports for types only may point up within one folder."""
    graph = graph_of(REPOSITORY / "ninetoothed")
    allowed = {
        (importer, imported)
        for importer, imported, types_only in edges_of(graph)
        if (types_only and importer.rpartition(".")[0] == imported.rpartition(".")[0])
        or _matches((importer, imported), PUBLIC_NAMES)
    }
    kept = without(graph, allowed)

    assert circles(kept) == []


@pytest.mark.parametrize("how", ["top", "lazy", "types"])
def test_a_circle_is_found_however_the_imports_are_written(how: str, tmp_path: Path) -> None:
    package = tmp_path / "some"
    package.mkdir()
    for name, text in {
        "__init__": "",
        "one": "import some.two",
        "two": written_as("from some import three", how),
        "three": "from some.one import anything",
        "four": "import some.one",
    }.items():
        (package / f"{name}.py").write_text(text)

    graph = graph_of(package)

    assert circles(graph) == [["some.one", "some.three", "some.two"]]
    assert graph["some.two"] == {"some.three": how == "types"}


def _contracts() -> list[dict[str, Any]]:
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11, which reads TOML")
    return tomllib.loads(CONFIGURATION.read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]


def _matches(edge: tuple[str, str], entry: tuple[str, str]) -> bool:
    return all(map(fnmatch.fnmatchcase, edge, entry))
