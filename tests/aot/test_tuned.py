"""Results of a machine with a device choose for the sizes that they were found for."""

from __future__ import annotations

import ctypes
import functools
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

triton = pytest.importorskip("triton", reason="needs Triton")

from ninetoothed.backends.triton.ahead.default_config import large_call  # noqa: E402
from ninetoothed.backends.triton.ahead.devices import limits_of  # noqa: E402
from ninetoothed.backends.triton.ahead.variants import Work, edition_of, images_of  # noqa: E402
from ninetoothed.backends.triton.compiler import versions  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of, specialize  # noqa: E402
from ninetoothed.cache import Cache  # noqa: E402
from ninetoothed.errors import DeviceError, NineToothedError  # noqa: E402
from ninetoothed.kernels.ahead import Within  # noqa: E402
from ninetoothed.tuning.results import (  # noqa: E402
    Results,
    Subject,
    arguments_from,
    arguments_text,
    export_results,
)
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.aot.kernels import PREMAKES, defined_of  # noqa: E402
from tests.aot.making import Loaded, built, driver, library, needs_cc, run  # noqa: E402
from tests.aot.reference import View, holds  # noqa: E402

COMPILER = "triton " + ".".join(map(str, versions.version()))

DISASSEMBLER = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "nvdisasm"

SMALL = Config((("BLOCK_SIZE_K", 64), ("BLOCK_SIZE_M", 16), ("BLOCK_SIZE_N", 64)), 4, 4)
LARGE = Config((("BLOCK_SIZE_K", 64), ("BLOCK_SIZE_M", 128), ("BLOCK_SIZE_N", 256)), 8, 3)


def exported(
    folder: Path,
    found: Sequence[tuple[tuple[int, int, int], Config]],
    device: str = "NVIDIA H200",
    dtype: str = "float16",
) -> Path:
    """A file of what was found for products of some sizes."""
    store = Cache("tuning", folder / "store")
    for (m, n, k), config in found:
        shapes = {"input": (m, k), "other": (k, n), "output": (m, n)}
        text = arguments_text(
            ((name, shape, dtype) for name, shape in shapes.items()), {"of_the_call": 1}
        )
        results = Results(f"{m}-{n}-{k}", Subject("mm", device, COMPILER, text), store)
        results.record(config, 1.0)
        results.finish("quick", config)
    export_results(folder / "found.json", store=store)
    return folder / "found.json"


def tensors(m: int, n: int, k: int) -> list[Any]:
    """A product's."""
    return [View(shape, (shape[1], 1)).dlpack() for shape in ((m, k), (k, n), (m, n))]


def launched(c: Loaded, *sizes: int) -> tuple[str, int]:
    """The binary and the number of programs of a product."""
    given = tensors(*sizes)
    assert c.library.mm_launch(None, *map(ctypes.byref, given)) == 0, c.message()
    return c.last().label(), c.last().grid


def workspace_size(c: Loaded, *sizes: int) -> int:
    found, given = ctypes.c_int64(-1), tensors(*sizes)
    function = c.library.mm_workspace_size
    assert function(ctypes.byref(found), *map(ctypes.byref, given)) == 0, c.message()
    return found.value


@needs_cc
def test_a_call_takes_what_was_found_for_the_least_bucket_that_holds_its_sizes(
    tmp_path: Path,
) -> None:
    found = exported(
        tmp_path, [((16, 4096, 4096), SMALL), ((32, 4096, 4096), SMALL), ((4096,) * 3, LARGE)]
    )
    made = built("mm", tmp_path / "mm", configs=(((), {}, {}),), targets=("sm_90",), tuned=found)
    (unit,) = made.units
    # One bucket holds the other, and both have the same choice.
    assert [b.num_warps for b in unit.binaries] == [4, 8]
    assert len({f for f in made.files if f.endswith(".cubin")}) == sum(
        len(b.images) for b in unit.binaries
    )
    c = Loaded(library(made), driver(tmp_path / "driver"))
    for size, tile in (((32, 4096, 4096), (16, 64)), ((9, 4000, 64), (16, 64))):
        assert launched(c, *size)[1] == -(-size[0] // tile[0]) * -(-size[1] // tile[1])
    for size in ((33, 4096, 4096), (32, 4097, 4096), (8192, 8192, 64)):
        assert launched(c, *size)[1] == -(-size[0] // 128) * -(-size[1] // 256)
    sizes = json.loads((made.folder / "manifest.json").read_text())["kernels"][0]["binaries"]
    assert {tuple(b["sizes"]) for b in sizes} == {
        (
            "input_size_0 <= 32",
            "input_size_1 <= 4096",
            "other_size_0 <= 4096",
            "other_size_1 <= 4096",
        )
        + ("output_size_0 <= 32", "output_size_1 <= 4096"),
        (),
    }


@needs_cc
def test_a_reduction_is_divided_where_that_was_found_to_be_best(tmp_path: Path) -> None:
    divided = replace(SMALL, options=(("split_k", 4),))
    found = exported(tmp_path, [((16, 4096, 4096), divided), ((4096,) * 3, LARGE)])
    made = built("mm", tmp_path / "mm", configs=(((), {}, {}),), targets=("sm_90",), tuned=found)
    c = Loaded(library(made), driver(tmp_path / "driver"))
    for rows, tiles in ((16, 64), (5, 64)):
        label, programs = launched(c, rows, 4096, 4096)
        assert (label, programs) == (f"<sm_90 mm {'full' if rows == 16 else 'divided'}>", 4 * tiles)
        # Counters, and a sum of a tile for each part.
        assert workspace_size(c, rows, 4096, 4096) == 65536 + 4 * tiles * 16 * 64 * 4
    assert launched(c, 64, 4096, 4096)[1] == 16
    assert workspace_size(c, 64, 4096, 4096) == 0


@pytest.mark.skipif(not DISASSEMBLER.exists(), reason="needs the nvdisasm that Triton brings")
def test_a_call_of_the_size_that_was_tuned_runs_what_python_runs(tmp_path: Path) -> None:
    """Machine code and all: attention, whose source has more to leave out than any other."""
    config = Config(
        (("BLOCK_SIZE_M", 64), ("BLOCK_SIZE_N", 128)),
        4,
        3,
        (
            ("dependent_launch", 1),
            ("descriptors", 1),
            ("partial_reduction_sinking", 1),
            ("tma_pipeline", 1),
        ),
    )
    shape = (4, 64, 1024, 64)
    kernel, fixed = defined_of(functools.partial(PREMAKES["sdpa"], is_causal=False), "sdpa")
    call = large_call(kernel, fixed, dict.fromkeys(("query", "key", "value", "output"), shape))
    variant = edition_of(kernel, fixed, "sm_90", None, (call, config)).variants[0]
    assert variant.name == "alike"
    values = environment_of(kernel, call, config)
    assert all(holds(asked, values, {}) for asked in variant.added if isinstance(asked, Within))

    specialized = specialize(kernel, call, config)
    same = replace(
        variant.work,
        source=specialized.emitted.text,
        signature=tuple(specialized.signature.items()),
        constants=tuple(specialized.constants.items()),
        divisors=tuple(specialized.divisors.items()),
        most_registers=specialized.most_registers,
    )
    ahead = instructions(variant.work, tmp_path)
    assert len(ahead) > 100
    assert ahead == instructions(same, tmp_path)


def instructions(work: Work, folder: Path) -> list[str]:
    """What a device runs: machine code without its addresses."""
    (image,) = images_of(work, "sm_90", False)
    (folder / "code.cubin").write_bytes(image.data)
    text = run(DISASSEMBLER, "-c", folder / "code.cubin")
    return [
        re.sub(r"/\*[0-9a-f]+\*/", "", line).strip() for line in text.splitlines() if ";" in line
    ]


@pytest.mark.parametrize(
    "further", [{"device": "NVIDIA A100"}, {"dtype": "bfloat16"}], ids=["device", "dtype"]
)
def test_what_was_found_for_others_chooses_nothing(tmp_path: Path, further: Any) -> None:
    found = exported(tmp_path, [((4096,) * 3, SMALL)], **further)
    (unit,) = built(
        "mm", tmp_path / "mm", configs=(((), {}, {}),), targets=("sm_90",), tuned=found
    ).units
    assert [b.num_warps for b in unit.binaries] == [8]


def test_a_file_without_results_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nothing.json").write_text("{}")
    with pytest.raises(NineToothedError, match="holds no tuning results"):
        built("mm", tmp_path / "mm", tuned=tmp_path / "nothing.json")


def test_arguments_are_read_as_they_are_written() -> None:
    tensors = [("input", (4, 1), "float16"), ("eps", (), "float32")]
    text = arguments_text(tensors, {"is_causal": True, "what": "text"})
    assert arguments_from(text) == (
        {"input": ((4, 1), "float16"), "eps": ((), "float32")},
        {"is_causal": "True"},
    )


def test_the_estimate_is_for_the_device_that_is_named() -> None:
    assert limits_of("sm_90").name == "NVIDIA H100"
    assert limits_of("sm_90", "H200").name == "NVIDIA H200"
    assert limits_of("sm_90", "NVIDIA H100 80GB HBM3").name == "NVIDIA H100"
    # Of another target's nothing is taken.
    assert limits_of("sm_80", "NVIDIA H200").name == "NVIDIA A100"
    with pytest.raises(DeviceError, match="of 'H20' nothing is known here.*NVIDIA H200"):
        limits_of("sm_90", "H20")
