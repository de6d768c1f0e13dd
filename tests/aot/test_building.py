"""`build` and `make` for callers in C: what is written, the same each time, and what must be declared."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from examples import add, softmax  # noqa: E402
from ninetoothed import Symbol, Tensor  # noqa: E402
from ninetoothed.aot.build import build  # noqa: E402
from ninetoothed.errors import ApplicationError, ArgumentError, CompilationError, DeviceError  # noqa: E402
from tests.aot.kernels import PREMAKES, premake_add, premake_silu  # noqa: E402
from tests.aot.making import HERE, Loaded, built, built_of, driver, labelled, library, needs_cc, run  # noqa: E402
from tests.aot.reference import View  # noqa: E402

ROOT = HERE.parents[1]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def _prints_shapes(x: Any, y: Any) -> None:
    ntl.static_print("PRINTED", x.shape, (x.shape[0] * 2, "a'b{c}"), ((1,), ()), sep="|")
    y = x  # noqa: F841


def test_a_tuple_prints_when_compiled_as_python_prints_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))

    def premake() -> Any:
        tensors = tuple(Tensor(1, dtype=ninetoothed.float32) for _ in range(2))
        return (lambda x, y: (x.tile((16,)), y.tile((16,)))), _prints_shapes, tensors

    build(premake, [((), {}, {"num_warps": 4})], output_dir=tmp_path / "out", targets=("sm_90",))
    arrangement, application, tensors = premake()
    x = torch.ones(16)
    ninetoothed.make(arrangement, application, tensors)(x, torch.empty(16))
    printed = set(capsys.readouterr().out.splitlines())
    assert printed == {"""PRINTED|(16,)|(32, "a'b{c}")|((1,), ())"""}


@needs_cc
@pytest.mark.parametrize(
    "names",
    [
        ("NULL", "NineToothedTensor", "main"),
        ("INT32_MAX", "DBL_MAX", "int"),
        ("DLTensor", "int64_t", "stdin"),
        ("call_numbers", "errno", "uint8_t"),
        ("EOF", "ERANGE", "atomic_load"),
    ],
)
def test_parameters_that_c_or_its_headers_know(names: tuple[str, ...], tmp_path: Path) -> None:
    x, shift, y = names
    source = f"def application({x}, {shift}, {y}):\n    {y} = {x} + {shift}\n"
    (tmp_path / "written.py").write_text(source)
    spec = importlib.util.spec_from_file_location("written", tmp_path / "written.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def premake() -> Any:
        half = [Tensor(1, dtype=ninetoothed.float16) for _ in range(2)]
        tensors = half[0], Tensor(0, dtype=ninetoothed.float32), half[1]
        return (lambda a, s, b: (a.tile((64,)), s, b.tile((64,)))), module.application, tensors

    made = built_of(premake, "named", tmp_path / "named")
    library(made)
    (tmp_path / "user.cpp").write_text('#include <cerrno>\n#include <cstdio>\n#include "named.h"\n')
    run("c++", "-fsyntax-only", "-Wall", "-Werror", f"-I{made.folder}", tmp_path / "user.cpp")


_SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from ninetoothed import build
from tests.aot.kernels import defined, premake_add
if {is_after_jit}:
    # The same source, under the name of a file in the cache: Triton's keys do not tell the two apart.
    from ninetoothed.backends.triton.ahead.variants import edition_of
    from ninetoothed.backends.triton.compiler.compile import compile_source
    from ninetoothed.backends.triton.specialization.target import Target
    work = edition_of(*defined("add", num_warps=4), "sm_80").variants[0].work
    told = (dict(work.signature), dict(work.constants), dict(work.divisors))
    compile_source(work.source, "add", *told, Target("cuda", 80, 32), 4, work.num_stages)
build(premake_add, [((), {{}}, {{"num_warps": 4}})], kernel_name="add", output_dir={folder!r},
      targets=("sm_80", "sm_90", "sm_100", "gfx942"))
"""


def test_the_binaries_of_each_target_and_the_same_bytes_in_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled by Triton, with no device; the second time with empty caches and in another order of hashes."""
    for number, seed in enumerate("12"):
        environment = {
            "PATH": "/usr/bin:/bin",
            "PYTHONHASHSEED": seed,
            "NINETOOTHED_CACHE_DIR": str(tmp_path / f"cache{number}"),
            "TRITON_CACHE_DIR": str(tmp_path / f"triton{number}"),
            "HOME": str(tmp_path / f"home{number}"),
        }
        script = _SCRIPT.format(
            root=str(ROOT), folder=str(tmp_path / f"out{number}"), is_after_jit=number == 1
        )
        run(sys.executable, "-c", script, env=environment, cwd=tmp_path)
    first, second = contents(tmp_path / "out0"), contents(tmp_path / "out1")
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    for target, ending in (
        ("sm_80", "cubin"),
        ("sm_90", "cubin"),
        ("sm_100", "cubin"),
        ("gfx942", "hsaco"),
    ):
        for variant in ("full", "plain"):
            assert first[f"add_0.c.{target}.{variant}.{ending}"].startswith(b"\x7fELF")
    assert b".target sm_80" in first["add_0.c.ptx_80.full.ptx"]
    # Nothing tells where it was made.
    made_at = [
        name
        for name, data in first.items()
        if str(tmp_path).encode() in data or str(ROOT).encode() in data
    ]
    assert made_at == []
    manifest = json.loads(first["manifest.json"])
    told = {(b["target"], b["variant"]): b["bytes"] for b in manifest["kernels"][0]["binaries"]}
    assert told["gfx942", "full"] == len(first["add_0.c.gfx942.full.hsaco"])
    assert manifest["kernels"][0]["editions"][0]["variants"][-1] == {"name": "plain", "assumes": []}


def make_add(folder: Path, block: Any = 1024, dtype: Any = ninetoothed.float16) -> Any:
    arrangement, application, _ = premake_add(BLOCK_SIZE=block)
    tensors = tuple(Tensor(1, dtype=dtype) for _ in range(3))
    with labelled():
        return ninetoothed.make(
            arrangement,
            application,
            tensors,
            caller="cuda",
            kernel_name="plus",
            output_dir=folder,
            num_warps=4,
        )


@needs_cc
def test_make_for_a_caller_in_c(tmp_path: Path) -> None:
    made = make_add(tmp_path / "plus")
    assert made.source_path == tmp_path / "plus" / "plus.c"
    assert (
        "NineToothedResult launch_plus(NineToothedStream stream, NineToothedTensor input,"
        in made.source
    )
    assert "int plus_prepare(int device)" in made.source
    c = Loaded(library(made), driver(tmp_path / "driver"))
    modules = ctypes.c_int.in_dll(c.driver, "modules_loaded")
    before = modules.value
    assert c.library.plus_prepare(0) == 0
    # All five variants of the one target that the device runs, and once.
    assert modules.value == before + 5
    assert c.library.plus_prepare(0) == 0
    assert modules.value == before + 5


def test_by_default_there_are_targets_for_every_later_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_add(tmp_path / "plus")
    assert {b.target for b in made.units[0].binaries} == {"sm_80", "ptx_80", "sm_90"}
    monkeypatch.setenv("NINETOOTHED_TARGETS", "gfx942, sm_120")
    made = make_add(tmp_path / "others")
    assert {b.target for b in made.units[0].binaries} == {"sm_120", "gfx942"}
    monkeypatch.setenv("NINETOOTHED_TARGETS", "sm_91")
    with pytest.raises(ArgumentError, match=r"'sm_91' is no target.*Did you mean.*sm_90"):
        make_add(tmp_path / "none")


def test_an_element_type_must_be_declared(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"type of `input` is not declared.*Tensor\(1, dtype="):
        make_add(tmp_path, dtype=None)


def test_declared_element_types_must_make_sense(tmp_path: Path) -> None:
    def application(input: Any, output: Any) -> None:
        output = input // input.source.shape[0]  # noqa: F841

    tensors = Tensor(1, dtype=ninetoothed.uint8), Tensor(1, dtype=ninetoothed.uint8)
    with pytest.raises(ApplicationError, match="one signedness, but got uint8 and a size"):
        ninetoothed.make(
            lambda *tensors: tuple(tensor.tile((8,)) for tensor in tensors),
            *(application, tensors),
            **{"caller": "cuda", "output_dir": tmp_path},
        )


def test_a_constant_must_have_a_value(tmp_path: Path) -> None:
    symbol = Symbol("BLOCK_SIZE", constexpr=True)
    with pytest.raises(ArgumentError, match="`BLOCK_SIZE` is a compile-time constant"):
        make_add(tmp_path, symbol)


def test_a_size_of_a_tile_must_be_declared(tmp_path: Path) -> None:
    tensors = tuple(Tensor(2, dtype=ninetoothed.float16) for _ in range(2))
    with pytest.raises(
        ArgumentError, match=r"`input_size_1` decides a tile's shape.*shape=\(None, 4096\)"
    ):
        ninetoothed.make(
            softmax.arrangement, softmax.application, tensors, caller="cuda", output_dir=tmp_path
        )


def test_a_constant_may_be_an_argument_of_the_configuration(tmp_path: Path) -> None:
    """By its name: `premake` need not hand it on."""

    def premake(dtype: Any, BLOCK_SIZE: int) -> Any:
        return add.arrangement, add.application, tuple(Tensor(1, dtype=dtype) for _ in range(3))

    with labelled():
        made = build(
            premake,
            [((ninetoothed.float16,), {"BLOCK_SIZE": 256}, {})],
            output_dir=tmp_path,
            kernel_name="plus",
        )
    assert made.units[0].fixed.constants["BLOCK_SIZE"] == 256
    header = (tmp_path / "plus.h").read_text()
    assert "NineToothedTensor output, int dtype, int BLOCK_SIZE);" in header
    assert "dtype == NINETOOTHED_FLOAT16 && BLOCK_SIZE == 256" in made.source


def test_meta_parameters_are_not_the_caller_s(tmp_path: Path) -> None:
    configs = [
        ((ninetoothed.float16,), {"BLOCK_SIZE": size}, {"num_warps": 2}) for size in (512, 1024)
    ]
    made = built("silu", tmp_path, configs, meta_parameters=("BLOCK_SIZE",))
    assert len(made.units) == 1
    assert "int dtype);" in (tmp_path / "silu.h").read_text()


def test_of_what_the_caller_does_not_choose_the_fastest_is_built(tmp_path: Path) -> None:
    """By the estimate, in whatever order they are given: a program of 32 elements is slow."""
    sizes = (32, 2048)
    for number, order in enumerate((sizes, sizes[::-1])):
        configs = [((ninetoothed.float16,), {"BLOCK_SIZE": size}, {}) for size in order]
        made = built("silu", tmp_path / str(number), configs, meta_parameters=("BLOCK_SIZE",))
        assert "2048" in made.units[0].editions[0].variants[0].source


def test_what_is_equal_is_compiled_once(tmp_path: Path) -> None:
    """Two configurations whose kernels differ in nothing but the name that a caller chooses by."""

    def premake(number: int) -> Any:
        return premake_silu()

    done: list[tuple[int, int]] = []
    configs = [((number,), {}, {"num_warps": 4}) for number in range(3)]
    with labelled():
        made = build(
            premake,
            configs,
            kernel_name="silu",
            output_dir=tmp_path,
            targets=("sm_90",),
            progress=lambda *counts: done.append(counts),
        )
    assert len(made.units) == 3
    assert done[-1] == (5, 5)


@pytest.mark.parametrize(
    ("configs", "text"),
    [
        ([], "at least one configuration"),
        (5, "configurations are a list of"),
        ([((), {})], r"a configuration is \(arguments, keywords, options\)"),
        ([((1, 2, 3), {}, {})], "too many positional"),
        (
            [((), {}, {"num_wraps": 4})],
            "options are num_warps, num_stages, max_num_configs, not 'num_wraps'",
        ),
        (
            [((ninetoothed.float16, (1, 2)), {}, {})],
            r"`BLOCK_SIZE` is \(1, 2\); a caller in C gives an integer",
        ),
        ([((ninetoothed.float16, 2**40), {}, {})], "is 1099511627776, and .* an int of 32 bits"),
    ],
)
def test_a_configuration_that_is_none(configs: Any, text: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=text):
        build(premake_silu, configs, output_dir=tmp_path)


@pytest.mark.parametrize(
    ("premake", "tuned", "text"),
    [
        (None, (), "takes a function that gives what `make` takes, not None"),
        (lambda: 3, (), r"premake gives \(arrangement, application, tensors\), not 3"),
        (lambda: "abc", (), "premake gives .*, not 'abc'"),
        (premake_silu, ("BLOCK_SIZ",), "no parameter of premake.*Did you mean.*BLOCK_SIZE"),
    ],
)
def test_what_gives_no_kernels(premake: Any, tuned: Any, text: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=text):
        build(premake, [((), {}, {})], meta_parameters=tuned, output_dir=tmp_path)


def test_configurations_with_other_parameters(tmp_path: Path) -> None:
    def premake(count: int) -> Any:
        return PREMAKES["silu" if count == 2 else "add"]()

    with (
        pytest.raises(ArgumentError, match="all configurations must have the same parameters"),
        labelled(),
    ):
        build(premake, [((2,), {}, {}), ((3,), {}, {})], output_dir=tmp_path)


def test_a_tensor_whose_number_of_sequences_varies_is_refused_by_name(tmp_path: Path) -> None:
    tensors = (
        Tensor(2, jagged_dim=0, dtype=ninetoothed.float16),
        Tensor(2, dtype=ninetoothed.float16),
    )

    def arrangement(x: Tensor, y: Tensor) -> Any:
        return x.tile((16, 16)), y.tile((16, 16))

    def application(x: Any, y: Any) -> None:
        y = x  # noqa: F841

    with pytest.raises(ArgumentError, match="`x` was declared with jagged_dim=0"):
        ninetoothed.make(arrangement, application, tensors, caller="cuda", output_dir=tmp_path)


@needs_cc
def test_the_command_line(tmp_path: Path) -> None:
    command = (
        *(sys.executable, "-m", "ninetoothed", "build", "tests.aot.kernels:premake_add"),
        *("--targets", "sm_90,gfx942", "--out", str(tmp_path / "out"), "--name", "plus"),
        *("--libraries", "static"),
    )
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert re.search(r"^plus_0 +sm_90 +full +\d+", finished.stdout, re.MULTILINE)
    assert re.search(r"^plus_0 +gfx942 +plain +\d+", finished.stdout, re.MULTILINE)
    assert re.search(r"10 binaries, [\d ]+ bytes, [\d.]+ s, in ", finished.stdout)
    assert "10 of 10" in finished.stderr
    assert (tmp_path / "out" / "plus.h").exists()
    assert (tmp_path / "out" / "libplus.a").exists()
    wrong = subprocess.run(
        [*command[:4], "tests.aot.kernels:nothing", "--out", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert wrong.returncode == 1
    assert "has no `nothing`" in wrong.stderr


@needs_cc
def test_libraries_of_the_sources(tmp_path: Path) -> None:
    made = [
        built("add", tmp_path / each, libraries=("static", "shared"))
        for each in ("first", "second")
    ]
    for name in ("libadd.a", "libadd.so"):
        assert name in made[0].files
        first, second = ((each.folder / name).read_bytes() for each in made)
        # The same wherever it is made.
        assert first == second
        assert str(tmp_path).encode() not in first
    c = Loaded(made[0].folder / "libadd.so", driver(tmp_path / "driver"))
    views = [View((128,), (1,)).dlpack() for _ in range(3)]
    assert c.library.add_launch(None, *map(ctypes.byref, views)) == 0, c.message()
    assert b"add_launch" in (made[0].folder / "libadd.a").read_bytes()


def test_libraries_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="'dynamic' is no kind of library: there are static"):
        built("add", tmp_path, libraries=("dynamic",))
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(CompilationError, match="`no-such-compiler`, which is not here"):
        built("add", tmp_path, libraries=("static",))
    monkeypatch.setenv("CC", "false")
    with pytest.raises(CompilationError, match="`false -std=c11 .* failed"):
        built("add", tmp_path, libraries=("static",))


@needs_cc
def test_a_variant_that_a_target_has_no_room_for_is_left_out_there(tmp_path: Path) -> None:
    with labelled(too_large=[("sm_90", "contiguous")]):
        made = build(
            PREMAKES["add"],
            [((), {}, {})],
            kernel_name="add",
            output_dir=tmp_path / "add",
            targets=("sm_80", "sm_90"),
        )
    cubins = {file.split(".", 2)[2] for file in made.files if file.endswith(".cubin")}
    assert {"sm_80.contiguous.cubin", "sm_90.aligned.cubin"} <= cubins
    assert "sm_90.contiguous.cubin" not in cubins
    c = Loaded(library(made), driver(tmp_path / "driver"))

    def launched(stride: int, address: int) -> str:
        views = [View((128,), (stride,), address).dlpack() for _ in range(3)]
        assert c.library.add_launch(None, *map(ctypes.byref, views)) == 0, c.message()
        return c.last().label()

    assert launched(1, 0x7000_0000) == "<sm_90 add aligned>"
    assert launched(1, 0x7000_0002) == "<sm_90 add narrow>"
    # What the variant that is not there asked for, the one that assumes more still does.
    assert launched(2, 0x7000_0000) == "<sm_90 add narrow>"


@pytest.mark.parametrize("name", ["full", "plain"])
def test_a_target_without_room_for_the_first_or_the_last_variant_is_an_error(
    name: str, tmp_path: Path
) -> None:
    with (
        labelled(too_large=[("sm_80", name)]),
        pytest.raises(DeviceError, match=f"sm_80 has no room for {name}"),
    ):
        build(PREMAKES["add"], [((), {}, {})], output_dir=tmp_path, targets=("sm_80",))
