"""How a pool's numbers are shared out to its zones (Gardener extension library, `worker`)."""

from __future__ import annotations

import math
import re


def share_of_zone(amount: int | str, index: int, zones: int, total: int) -> int | str:
    """The share of zone number `index`: of a number, or of a percentage like "25%".

    The first zones get the remainder. `total` is the pool's maximum, for maxUnavailable its
    minimum: if the zones cannot share it evenly, a percentage is weighted by the zone's part of it,
    rounded up. Raises ValueError for a text that is not a percentage.
    """
    if isinstance(amount, int):
        return _share(amount, index, zones)
    percentage = re.fullmatch(r"(\d{1,9})%", amount, re.ASCII)
    if percentage is None:
        raise ValueError(f"expected a number or a percentage such as 25%, got {amount!r}")
    if total % zones == 0:
        return amount
    ratio = 100.0 / (total / zones) * _share(total, index, zones)  # Go's order: the same rounding
    return f"{math.ceil(ratio * int(percentage[1]) / 100.0)}%"


def _share(amount: int, index: int, zones: int) -> int:
    each, left = divmod(amount, zones)
    return each + (1 if index < left else 0)
