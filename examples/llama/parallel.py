"""Processes that share a model's weights, each with some of the columns and rows of every product.

As Megatron-LM has it (Shoeybi et al., 2019, section 3): the first product of a block is shared by its
outputs, the second by its inputs, so that one sum over processes follows each block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import _symmetric_memory as symmetric_memory


@dataclass(frozen=True)
class Group:
    """The processes of `torch.distributed`, and which of them this is."""

    rank: int = 0
    size: int = 1

    @classmethod
    def here(cls) -> Group:
        """All processes that `torchrun` started."""
        return cls(dist.get_rank(), dist.get_world_size())

    def part(self, weight: torch.Tensor, dimension: int) -> torch.Tensor:
        """This process's part of a weight along a dimension.

        Raises:
            ValueError: it has no equal parts for so many processes.
        """
        if self.size == 1:
            return weight
        if weight.shape[dimension] % self.size:
            raise ValueError(
                f"dimension {dimension} of a weight {tuple(weight.shape)} has no {self.size} equal parts; "
                "start another number of processes"
            )
        return weight.chunk(self.size, dimension)[self.rank].contiguous()

    def shared(self, *shape: int, dtype: torch.dtype, device: Any) -> torch.Tensor:
        """Memory for what is summed: on GPUs, what the others' kernels read."""
        if self.size == 1 or torch.device(device).type != "cuda":
            return torch.empty(shape, dtype=dtype, device=device)
        tensor = symmetric_memory.empty(shape, dtype=dtype, device=device)
        symmetric_memory.rendezvous(tensor, dist.group.WORLD)
        return tensor

    def sum(self, part: torch.Tensor, output: torch.Tensor, is_shared: bool = False) -> None:
        """The sum of all processes' parts.

        One launch reads all parts that are in `shared` memory: few bytes are there sooner than NCCL has
        passed them on.
        """
        if is_shared and part.is_cuda:
            name = dist.group.WORLD.group_name
            torch.ops.symm_mem.one_shot_all_reduce_out(part, "sum", name, output)
        else:
            dist.all_reduce(part)
            output.copy_(part)

    def columns(self, tensor: torch.Tensor) -> torch.Tensor:
        """The columns (n, all) of which each process has some (n, columns)."""
        if self.size == 1:
            return tensor
        parts = [torch.empty_like(tensor) for _ in range(self.size)]
        dist.all_gather(parts, tensor)
        return torch.cat(parts, 1)


#: One process with all the weights.
ALONE = Group()
