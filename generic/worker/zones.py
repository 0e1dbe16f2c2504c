"""How a pool's numbers are shared out to its zones (Gardener extension library, `worker`)."""

from __future__ import annotations

import math

__all__ = ["share_of_zone"]


def share_of_zone(amount: int | str, index: int, zones: int, total: int) -> int | str:
    """The share of zone number `index`: of a number, or of a percentage like "25%".

    What cannot be shared evenly goes to the first zones. `total` is the pool's maximum: where
    that is uneven, a percentage is weighted by the zone's part of it, rounded up.
    """
    if isinstance(amount, int):
        return _share(amount, index, zones)
    if total % zones == 0:
        return amount
    weight = _share(total, index, zones) * zones / total
    return f"{math.ceil(int(amount.removesuffix('%')) * weight)}%"


def _share(amount: int, index: int, zones: int) -> int:
    each, left = divmod(amount, zones)
    return each + (1 if index < left else 0)
