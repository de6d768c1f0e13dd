"""A kernel compiled ahead of time as an operator of PyTorch in C++, on the GPU: called, traced, and from a package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from ninetoothed.aot.build import build  # noqa: E402
from tests.aot.kernels import PREMAKES  # noqa: E402

HEADERS = Path(torch.__file__).parent / "include"

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

#: A C++ compiler that binds a library's functions to each other.
BOUND = """#!/bin/sh
case " $* " in
  *" -shared "*) exec c++ "$@" -Wl,-Bsymbolic ;;
  *) exec c++ "$@" ;;
esac
"""

pytestmark = pytest.mark.skipif(
    not (HEADERS / "torch/csrc/stable/library.h").exists(),
    reason="needs a PyTorch with a stable interface",
)


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The operator ninetoothed_gpu::addmm, compiled as docs/aot.md has it."""
    folder = tmp_path_factory.mktemp("operator") / "addmm"
    major, minor = torch.cuda.get_device_capability()
    build(
        PREMAKES["addmm"],
        [((), {}, {})],
        kernel_name="addmm",
        output_dir=folder,
        targets=(f"sm_{major}{minor}",),
        torch_library="ninetoothed_gpu",
    )
    for source in folder.glob("*.c"):
        objects = str(source.with_suffix(".o"))
        subprocess.run(
            ["cc", "-std=c11", "-O2", "-fPIC", "-c", str(source), "-o", objects], check=True
        )
    made = folder / "libmine.so"
    command = ["c++", "-std=c++20", "-O2", "-shared", "-fPIC", f"-I{HEADERS}", f"-I{folder}"]
    command += [*map(str, (*folder.glob("*_torch.cpp"), *folder.glob("*.o")))]
    command += [f"-L{HEADERS.parent / 'lib'}", "-Wl,--no-as-needed", "-ltorch", "-o", str(made)]
    subprocess.run(command, check=True)
    torch.ops.load_library(str(made))
    return made


class Module(torch.nn.Module):
    def forward(self, input, mat1, mat2):
        output = torch.empty_like(input)
        torch.ops.ninetoothed_gpu.addmm(input, mat1, mat2, 0.5, 2.0, output)
        return output + 1


def given(m: int, k: int, n: int) -> list[torch.Tensor]:
    shapes = ((m, n), (m, k), (k, n))
    return [torch.randn(shape, dtype=torch.float16, device="cuda") for shape in shapes]


def check(found: torch.Tensor, arguments: list[torch.Tensor]) -> None:
    input, mat1, mat2 = (each.double() for each in arguments)
    wanted = torch.addmm(input, mat1, mat2, beta=0.5, alpha=2.0) + 1
    torch.testing.assert_close(found.double(), wanted, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("sizes", [(256, 128, 512), (65, 33, 129)], ids=str)
def test_the_operator_computes(sizes: tuple[int, int, int]) -> None:
    arguments = given(*sizes)
    check(Module()(*arguments), arguments)


def test_it_goes_to_pytorch_s_current_stream() -> None:
    arguments = given(512, 256, 512)
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        Module()(*arguments)
    stream.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        found = Module()(*arguments)
    for each in arguments:
        each.normal_()
    graph.replay()
    check(found, arguments)


def test_wrong_arguments_are_refused_by_name() -> None:
    input, mat1, mat2 = given(64, 32, 48)
    with pytest.raises(RuntimeError, match="`mat1` has elements of .*declared with float16"):
        Module()(input, mat1.float(), mat2)


def packaged(library: Path, file: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Makes a package and loads it, each in a process of its own: that of who loads it last.

    Where loading crashes, what it prints tells in which functions.
    """
    handler = file.with_suffix(".so")
    subprocess.run(
        ["cc", "-O1", "-shared", "-fPIC", str(HERE / "crash_stack.c"), "-o", str(handler)],
        check=True,
    )
    for command, more in (("make", {}), ("load", {"LD_PRELOAD": str(handler)})):
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.gpu.ahead.package_program"),
                *(command, str(library), str(file)),
            ],
            cwd=ROOT,
            env={**os.environ, **variables, **more},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            break
    return done


def test_a_package_of_aotinductor_computes(library: Path, tmp_path: Path) -> None:
    done = packaged(library, tmp_path / "module.pt2")
    if "parse_device_str" in done.stderr:
        # AOTInductor's own code ends in a std::regex, before it looks an operator up. Where the functions of a
        # package are bound to each other, none of them can be another library's of the same name.
        compiler = tmp_path / "c++"
        compiler.write_text(BOUND)
        compiler.chmod(0o755)
        print("\n".join(done.stderr.split("crashed in")[-1].splitlines()[:12]))
        done = packaged(
            library,
            tmp_path / "bound.pt2",
            CXX=str(compiler),
            TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "cache"),
        )
    if "parse_device_str" in done.stderr:
        stack = done.stderr.split("crashed in")[-1].split()[:4]
        pytest.skip(f"PyTorch {torch.__version__} crashes in its own parse_device_str: {stack}")
    assert done.returncode == 0, done.stderr
