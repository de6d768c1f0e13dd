"""Whether several elements of a tensor lie at one address: what is stored to one of them is in the others."""

from __future__ import annotations

from collections.abc import Sequence

#: So many differences of positions are tried; a tensor that takes more is taken for one without overlap.
_MOST_STEPS = 100_000


def overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two positions have the same offset.

    They do where a difference of positions that is not 0 has the offset 0: along each dimension of n
    elements it is between 1 - n and n - 1.
    """
    if 0 in shape:
        return False
    reach = 0
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size > 1 and stride <= reach:
            break
        reach += (size - 1) * stride
    else:
        # Each dimension steps over all that lies behind it, as usual.
        return False
    dims = sorted(((abs(stride), n) for n, stride in zip(shape, strides) if n > 1), reverse=True)
    if dims and dims[-1][0] == 0:
        return True
    # How far the dimensions after each one reach: the difference along it can only be so large.
    reaches = [
        sum((n - 1) * stride for stride, n in dims[place:]) for place in range(len(dims) + 1)
    ]
    pending, steps = [(0, 0, False)], 0
    while pending and steps < _MOST_STEPS:
        place, offset, is_moved = pending.pop()
        steps += 1
        if place == len(dims):
            if is_moved and offset == 0:
                return True
            continue
        stride, n = dims[place]
        reach = reaches[place + 1]
        least = max(-((offset + reach) // stride), 1 - n)
        most = min((reach - offset) // stride, n - 1)
        if not is_moved:
            # A difference and its opposite are alike.
            least = max(least, 0)
        pending += [
            (place + 1, offset + stride * step, is_moved or step != 0)
            for step in range(least, min(most, least + _MOST_STEPS) + 1)
        ]
    return False
