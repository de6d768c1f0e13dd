"""Makes a package of AOTInductor on the GPU, or loads it and compares: `make|load LIBRARY FILE`.

LIBRARY has the operator ninetoothed_gpu::addmm.
"""

from __future__ import annotations

import sys

import torch

SHAPES = ((256, 512), (256, 128), (128, 512))


class Module(torch.nn.Module):
    def forward(self, input, mat1, mat2):
        output = torch.empty_like(input)
        torch.ops.ninetoothed_gpu.addmm(input, mat1, mat2, 0.5, 2.0, output)
        return output + 1


def main(command: str, library: str, file: str) -> None:
    given = tuple(torch.randn(shape, dtype=torch.float16, device="cuda") for shape in SHAPES)
    torch.ops.load_library(library)
    if command == "make":
        exported = torch.export.export(Module(), given)
        torch._inductor.aoti_compile_and_package(exported, package_path=file)
        return
    found = torch._inductor.aoti_load_package(file)(*given)
    input, mat1, mat2 = (each.double() for each in given)
    wanted = torch.addmm(input, mat1, mat2, beta=0.5, alpha=2.0) + 1
    torch.testing.assert_close(found.double(), wanted, rtol=2e-3, atol=2e-2)


if __name__ == "__main__":
    main(*sys.argv[1:])
