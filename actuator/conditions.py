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
    dated = _dated(before, wanted, format_time(now))
    if before is None:
        return [*conditions, dated]
    return [dated if condition is before else condition for condition in conditions]


def _dated(before: Condition | None, wanted: Condition, now: str) -> Condition:
    since = before.last_transition_time if before and before.status == wanted.status else None
    if before is not None:
        times = (before.last_transition_time, before.last_update_time)
        same = attrs.evolve(wanted, last_transition_time=times[0], last_update_time=times[1])
        if same == before:
            return before
    return attrs.evolve(wanted, last_transition_time=since or now, last_update_time=now)
