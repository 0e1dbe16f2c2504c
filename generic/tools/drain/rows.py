"""The rows of a drain's output: one for each object, the same for every format."""

from collections.abc import Sequence
from enum import StrEnum

import attrs

from generic.tools.drain.release import Release
from generic.tools.drain.survey import NOT_SERVED, Held

_AGAIN = "the finalizer was added again: stop the extension"


class State(StrEnum):
    """The state of an object."""

    DELETING = "Deleting"
    """Under deletion, and waits for the extension."""
    ALIVE = "Alive"
    """Would wait for the extension once it is deleted."""
    RELEASED = "Released"
    """Does not wait for the extension any more."""


@attrs.frozen(kw_only=True)
class Row:
    """One object; times in the API server's format."""

    namespace: str
    kind: str
    name: str
    uid: str
    state: State
    created_at: str
    deleted_at: str | None
    last_error: str
    """The error in its status, in one line; "" for none."""
    note: str = ""
    """A remark about its release."""

    @property
    def is_held(self) -> bool:
        """Whether it still has our finalizer."""
        return self.state is not State.RELEASED


def rows_of_held(held: Sequence[Held]) -> list[Row]:
    """Return the rows of objects with our finalizer, those under deletion first."""
    rows = [
        _row(
            one,
            State.DELETING if one.is_deleting else State.ALIVE,
            "" if one.is_served else NOT_SERVED,
        )
        for one in held
    ]
    return sorted(rows, key=lambda row: (row.state is State.ALIVE, row.namespace))


def rows_of_released(done: Sequence[Release], held: Sequence[Held]) -> list[Row]:
    """Return the rows of released objects, and of those still held with the reason."""
    problems = {one.held.header.uid: one.problem for one in done if one.problem}
    back = {one.header.uid for one in held}
    released = [
        _row(one.held, State.RELEASED, _note(one))
        for one in done
        if not one.problem and one.held.header.uid not in back
    ]
    still = [attrs.evolve(row, note=problems.get(row.uid) or _AGAIN) for row in rows_of_held(held)]
    return [*still, *released]


def _row(held: Held, state: State, note: str = "") -> Row:
    return Row(
        namespace=held.request.namespace,
        kind=held.registration.kind.name,
        name=held.request.name,
        uid=held.header.uid,
        state=state,
        created_at=held.created_at,
        deleted_at=held.header.deletion_timestamp,
        last_error=held.last_error,
        note=note,
    )


def _note(one: Release) -> str:
    parts = [f"{one.orphans} Orphan{'s' if one.orphans > 1 else ''}"] if one.orphans else []
    if one.held_by and one.held.is_deleting:
        parts.append(f"waits for {', '.join(one.held_by)}")
    return "; ".join(parts)
