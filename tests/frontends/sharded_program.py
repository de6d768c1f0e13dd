"""One of some processes that share tensors by DTensor: `RANK WORLD FILE`; prints what was right."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

import ninetoothed
from examples import fused_rms_norm, mm, softmax
from examples.training import attention
from ninetoothed import like

LIKE = {"output": like("input")}
PRODUCT = {"output": ((mm.tensors[0].shape[0], mm.tensors[1].shape[1]), "input")}


def made(kernel, outputs):
    return ninetoothed.op(f"sharded::{kernel.name}", kernel, outputs, backward="derive")


def cases():
    """For each: the function, the inputs' shapes, their placements, what the output's must be."""
    product, rows = made(mm.kernel, PRODUCT), made(softmax.kernel, LIKE)
    normal = made(fused_rms_norm.kernel, LIKE)
    whole = Replicate()
    for one, other, wanted in [
        (Shard(0), whole, Shard(0)),
        (whole, Shard(1), Shard(1)),
        (Shard(1), Shard(0), Partial()),
        (whole, whole, whole),
        (Shard(1), whole, None),
    ]:
        yield "mm", product, ((6, 10), (10, 4)), (one, other), wanted
    for placement in (Shard(0), Shard(1), whole):
        wanted = placement if placement != Shard(1) else None
        yield "softmax", rows, ((6, 10),), (placement,), wanted
        function = lambda x, weight: normal(x, weight, 1e-6)  # noqa: E731
        yield "rms_norm", function, ((6, 10), (10,)), (placement, whole), wanted
    for dim in (0, 1, 2, 3):
        wanted = Shard(dim) if dim in (0, 2) else None
        for is_causal in (False, True):
            function = lambda *given, c=is_causal: attention(*given, is_causal=c)  # noqa: E731
            yield "attention", function, ((2, 34, 2, 16),) * 3, (Shard(dim),) * 3, wanted


def main(rank, world, file):
    """Values and gradients of each case, against one process's."""
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(0)
    for name, function, shapes, placements, wanted in cases():
        given = [torch.randn(shape).requires_grad_() for shape in shapes]
        divided = [
            distribute_tensor(each.detach(), mesh, [placement]).requires_grad_()
            for each, placement in zip(given, placements)
        ]
        output, reference = function(*divided), function(*given)
        assert wanted is None or output.placements == (wanted,), (name, output.placements)
        torch.testing.assert_close(output.full_tensor(), reference, rtol=1e-4, atol=1e-5)
        weight = torch.randn_like(reference)
        (output.full_tensor() * weight).sum().backward()
        (reference * weight).sum().backward()
        for one, other in zip(divided, given):
            torch.testing.assert_close(one.grad.full_tensor(), other.grad, rtol=1e-4, atol=1e-5)
        if rank == 0:
            print(name, *placements, "right", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
