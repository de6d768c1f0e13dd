"""Makes a package of AOTInductor that calls an operator, or loads it: `make FILE`, `load FILE`."""

from __future__ import annotations

import sys

import torch

import ninetoothed
from ninetoothed import Tensor, like


def arrangement(*tensors):
    return tuple(tensor.tile((16,)) for tensor in tensors)


def cube(input, output):
    output = input * input * input  # noqa: F841


kernel = ninetoothed.make(arrangement, cube, (Tensor(1), Tensor(1)))
cubed = ninetoothed.op("packaged::cube", kernel, {"output": like("input")})


class Module(torch.nn.Module):
    """An operator of ours, alone."""

    def forward(self, x):
        return cubed(x)


def main(command, file):
    """Makes or loads, and says which sizes were right."""
    if command == "make":
        shapes = ({0: torch.export.Dim("size", min=2)},)
        program = torch.export.export(Module(), (torch.randn(40),), dynamic_shapes=shapes)
        options = {"aot_inductor.compile_wrapper_opt_level": "O0"}
        torch._inductor.aoti_compile_and_package(
            program, package_path=file, inductor_configs=options
        )
        return
    module = torch._inductor.aoti_load_package(file)
    for size in (2, 33, 100):
        x = torch.randn(size)
        torch.testing.assert_close(module(x), x**3)
        print(size)


if __name__ == "__main__":
    main(*sys.argv[1:])
