"""Conditions in a status: find one, and set one without losing its transition time.

The meaning of a condition belongs to the code that sets it.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import attrs

from actuator.meta import Condition, format_time


def find_condition(conditions: Iterable[Condition], type: str) -> Condition | None:
    """Return the condition of that type, or None."""
    return next((condition for condition in conditions if condition.type == type), None)


def set_condition(
    conditions: Sequence[Condition], wanted: Condition, now: datetime
) -> list[Condition]:
    """Return the conditions with `wanted` in its place, with correct times.

    lastTransitionTime changes only with the status, lastUpdateTime with any field (Gardener
    documentation, "Extension contract", conditions). An unchanged condition keeps both.
    """
    before = find_condition(conditions, wanted.type)
    time = format_time(now)
    if before is None:
        return [*conditions, attrs.evolve(wanted, last_transition_time=time, last_update_time=time)]
    since = before.last_transition_time
    updated = before.last_update_time
    dated = attrs.evolve(wanted, last_transition_time=since, last_update_time=updated)
    if dated != before:
        since = since if since and before.status == wanted.status else time
        dated = attrs.evolve(wanted, last_transition_time=since, last_update_time=time)
    return [dated if condition is before else condition for condition in conditions]
