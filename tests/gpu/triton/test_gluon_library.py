"""What kernels in Gluon call, on the GPU: a row's one reciprocal gives the bits of a division."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from ninetoothed.backends.triton.compiler import versions  # noqa: E402

pytestmark = pytest.mark.fixes_options("its kernel is written by hand")

if versions.has_gluon():
    from triton.experimental import gluon
    from triton.experimental.gluon import language as gl

    from ninetoothed.backends.triton.gluon_library import divide_rows

    @gluon.jit
    def divide(value_ptr, divisor_ptr, each_ptr, rows_ptr, ROWS: gl.constexpr):
        layout: gl.constexpr = gl.NVMMADistributedLayout(
            version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16]
        )
        row = gl.program_id(0) * ROWS + gl.arange(0, ROWS, gl.SliceLayout(1, layout))
        place = row[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, layout))[None, :]
        value = gl.load(value_ptr + place)
        divisor = gl.load(divisor_ptr + row)[:, None]
        gl.store(each_ptr + place, value / divisor)
        gl.store(rows_ptr + place, divide_rows(value, divisor))


ROWS, COLUMNS = 16384, 64

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    2.0**126,
    2.0**127,
    2.0**-126,
    2.0**-127,
    2.0**-149,
    torch.inf,
    torch.nan,
]


def any_floats(*shape: int) -> torch.Tensor:
    """Any bits: subnormal numbers and those whose reciprocals are, infinities, none."""
    bits = torch.randint(-(2**31), 2**31, shape, dtype=torch.int64)
    return bits.to(torch.int32).view(torch.float32)


def test_quotients_of_any_numbers():
    if torch.cuda.get_device_capability() != (9, 0) or not versions.has_gluon():
        pytest.skip("needs Hopper and Triton 3.6's Gluon")
    torch.manual_seed(0)
    divisor = any_floats(ROWS)
    divisor[: len(SPECIAL)] = torch.tensor(SPECIAL)
    value = any_floats(ROWS, COLUMNS)
    # Every other row's quotients are near 1, however small or large the numbers are.
    value[::2] = divisor[::2, None] * (torch.rand(ROWS // 2, COLUMNS) + 0.5)
    value, divisor = value.cuda(), divisor.cuda()
    each, rows = torch.empty_like(value), torch.empty_like(value)
    divide[(ROWS // 64,)](value, divisor, each, rows, ROWS=64, num_warps=4)

    missing = each.isnan()

    assert torch.equal(missing, rows.isnan()) and missing.sum() < value.numel() / 10
    assert torch.equal(each[~missing], rows[~missing])
