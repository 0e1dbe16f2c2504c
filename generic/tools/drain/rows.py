"""The rows of a drain's output: one for each object, the same for every format."""

from collections.abc import Sequence
from enum import StrEnum

import attrs

from generic.kube.headers import as_dict
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
    rows = [_row(one, None, "" if one.is_served else NOT_SERVED) for one in held]
    return sorted(rows, key=lambda row: (row.state is State.ALIVE, row.namespace))


def rows_of_released(done: Sequence[Release], held: Sequence[Held]) -> list[Row]:
    """Return the rows of released objects, and of those still held with the reason."""
    problems = {one.held.header.uid: one.problem for one in done if one.problem}
    gone = [one for one in done if not one.problem]
    still = [attrs.evolve(row, note=problems.get(row.uid) or _AGAIN) for row in rows_of_held(held)]
    back = {row.uid for row in still}
    released = [_row(one.held, State.RELEASED, one.note) for one in gone]
    return [*still, *(row for row in released if row.uid not in back)]


def _row(held: Held, state: State | None, note: str) -> Row:
    meta, status = as_dict(held.raw.get("metadata")), as_dict(held.raw.get("status"))
    error = as_dict(status.get("lastError")).get("description") or ""
    return Row(
        namespace=held.request.namespace,
        kind=held.registration.kind.name,
        name=held.request.name,
        uid=held.header.uid,
        state=state or (State.DELETING if held.is_deleting else State.ALIVE),
        created_at=str(meta.get("creationTimestamp") or ""),
        deleted_at=held.header.deletion_timestamp,
        last_error=" ".join(str(error).split()),
        note=note,
    )
