"""One call of attention, ours and cuDNN's, for a profiler to look at; prints nothing itself.

ncu --clock-control none -k "regex:sdpa|cudnn" --metrics METRICS python -m benchmarks.profiled

The metrics of docs/performance/tma-pipeline.md: ``gpu__time_duration.sum``,
``launch__registers_per_thread``, and
``.avg.pct_of_peak_sustained_active`` of ``sm__pipe_tensor_cycles_active``,
``sm__inst_executed_pipe_xu``, ``smsp__issue_active`` and ``sm__warps_active``.
"""

from __future__ import annotations

import os

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from examples import sdpa


def main() -> None:
    """Run both once."""
    # The profiler would time the tuner's trials too.
    os.environ["NINETOOTHED_TUNE"] = "none"
    query, key, value = (
        torch.randn(4, 48, 1024, 64, device="cuda", dtype=torch.float16) for _ in range(3)
    )
    sdpa.sdpa(query, key, value)

    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        torch.nn.functional.scaled_dot_product_attention(query, key, value)

    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
