"""A kernel as an operator of PyTorch, in C++ by the stable interface: no Python between the call and the launch."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from tests.aot.making import HERE, Loaded, built, driver, environment, needs_cc, run  # noqa: E402

HEADERS = Path(torch.__file__).parent / "include"
LIBRARIES = HEADERS.with_name("lib")

PROGRAMS = HERE / "programs"

pytestmark = [
    needs_cc,
    pytest.mark.skipif(
        not (HEADERS / "torch/csrc/stable/library.h").exists(),
        reason="needs a PyTorch with a stable interface",
    ),
]

#: What PyTorch has where it has CUDA. The library takes its own in any case: a build with CUDA has one
#: too, which asks a real driver.
STREAM = """
#include <cstdint>
extern "C" int aoti_torch_get_current_cuda_stream(int32_t, void **stream) {
  *stream = reinterpret_cast<void *>(4711);
  return 0;
}
"""


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = tmp_path_factory.mktemp("operator")
    made = built("addmm", folder / "addmm", torch_library="ninetoothed_test")
    (folder / "stream.cpp").write_text(STREAM)
    for source in made.folder.glob("*.c"):
        run("cc", "-std=c11", "-fPIC", "-c", source, "-o", source.with_suffix(".o"))
    library = folder / "libaddmm.so"
    # A machine's own memory is taken for a device's: the driver runs nothing.
    run(
        *("c++", "-std=c++20", "-O0", "-DNT_TORCH_DISPATCH_KEY=CPU", "-shared", "-fPIC"),
        "-Wl,-Bsymbolic-functions",
        *(f"-I{HEADERS}", f"-I{made.folder}", made.folder / "addmm_torch.cpp"),
        *(folder / "stream.cpp", *made.folder.glob("*.o"), "-o", library),
        *(f"-L{LIBRARIES}", "-ltorch_cpu", "-ldl", "-lpthread"),
    )
    c = Loaded(library, driver(folder / "driver"))
    torch.ops.load_library(str(library))
    return c


def arguments(dtype: torch.dtype = torch.float16, device: str = "cpu") -> list:
    shapes = ((64, 48), (64, 32), (32, 48))
    input, mat1, mat2 = (torch.zeros(shape, dtype=dtype, device=device) for shape in shapes)
    return [input, mat1, mat2, 0.5, 2.0, torch.empty_like(input)]


class Module(torch.nn.Module):
    def forward(self, input, mat1, mat2):
        output = torch.empty_like(input)
        torch.ops.ninetoothed_test.addmm(input, mat1, mat2, 0.5, 2.0, output)
        return output


def test_a_call_of_the_operator_is_a_launch(c: Loaded) -> None:
    given = arguments()
    given[2] = torch.zeros(48, 32, dtype=torch.float16).T
    assert torch.ops.ninetoothed_test.addmm(*given) is None
    last = c.last()
    # Columns that are contiguous are no rows that are.
    assert (last.label(), last.stream) == ("<sm_90 addmm narrow>", 4711)
    addresses = {struct.unpack("<Q", bytes(last.arguments[place])[:8])[0] for place in range(3)}
    assert addresses <= {each.data_ptr() for each in given if isinstance(each, torch.Tensor)}
    with pytest.raises(RuntimeError, match="`input` has elements of .*declared with float16"):
        torch.ops.ninetoothed_test.addmm(*arguments(torch.float32))


def test_the_schema_says_what_is_written(c: Loaded) -> None:
    (schema,) = torch._C._jit_get_schemas_for_operator("ninetoothed_test::addmm")
    assert [a.name for a in schema.arguments if a.is_out or a.alias_info] == ["output"]
    assert str(schema).endswith("float beta, float alpha, Tensor(a!) output) -> ()")


def test_the_operator_is_traced_without_a_launch(c: Loaded) -> None:
    before = c.last().launches
    torch.ops.ninetoothed_test.addmm(*arguments(device="meta"))

    exported = torch.export.export(Module(), tuple(arguments()[:3]))
    assert "ninetoothed_test.addmm" in exported.graph_module.code
    assert c.last().launches == before


@pytest.fixture(scope="module")
def package(c: Loaded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("package") / "module.pt2"
    exported = torch.export.export(Module(), tuple(arguments()[:3]))
    return Path(torch._inductor.aoti_compile_and_package(exported, package_path=str(file)))


def test_a_package_of_aotinductor_launches_the_kernel(c: Loaded, package: Path) -> None:
    module = torch._inductor.aoti_load_package(str(package))
    before = c.last().launches
    module(*arguments()[:3])
    assert c.last().launches == before + 1


def test_a_package_of_aotinductor_runs_without_python(c: Loaded, package: Path) -> None:
    program, recording = package.with_name("program"), package.with_name("recording")
    run(
        *("c++", "-std=c++20", "-O0", PROGRAMS / "package.cpp", f"-I{HEADERS}"),
        *(f"-I{HEADERS}/torch/csrc/api/include", f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}"),
        *("-ltorch", "-ltorch_cpu", "-lc10", "-ldl", "-o", program),
    )
    variables = {**environment(c.folder), "NT_RECORDING": str(recording)}
    assert run(program, package, c.library._name, env=variables) == "1 output, without Python\n"
    assert recording.read_text().startswith("<sm_90 addmm ")
