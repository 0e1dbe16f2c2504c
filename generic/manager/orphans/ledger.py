"""Ledger: lists Orphans, finds them by name or actuator, and writes their status.

Not here: creating them (`record`), and verifying them (`verification`).
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

import attrs

from actuator.codec import decode, encode
from actuator.errors import ActuatorError, ConfigurationError, DecodeError, Invalid, NotFound
from actuator.interface import Actuator, Client, resource_of
from actuator.meta import Kind, Object, Raw, format_time
from generic.kube.client import each
from generic.kube.dropped import require_stored
from generic.kube.patches import add, test
from generic.reconciler.origin import UNKNOWN_VALUE
from generic.reconciler.orphans.kind import ORPHANS, Orphan, OrphanedFrom, OrphanState, OrphanStatus

R = TypeVar("R", bound=Object)

_CUTS = ((8, 4), (8, 16), (18, 16))
"""Characters of the object's UID and of the digest in a short name; the first unique cut wins."""
_MAX_NAMES = 5
"""Names in an error."""

MAX_NOTE = 1000
"""Characters of a note that are stored."""


@attrs.frozen
class Closer:
    """A user by the name in the API server; `verified` if a policy refuses any other name."""

    name: str
    verified: bool

    def __str__(self) -> str:
        return self.name if self.verified else f"{self.name} (not verified)"


def stored_records(client: Client, cls: type[Object], *, label_selector: str = "") -> Iterator[Raw]:
    """Yield all records of a kind as the API server stores them; see `each`.

    Raises ConfigurationError if their CRD is not installed, and ApiError.
    """
    name = cls.KIND.name
    try:
        yield from each(client, resource_of(cls.KIND), label_selector=label_selector)
    except NotFound as error:
        raise ConfigurationError(
            f"The CustomResourceDefinition of {name} is not installed in this cluster; install "
            f"the output of `actuator crds generic:{name}`"
        ) from error


def read_records(client: Client, cls: type[R], *, label_selector: str = "") -> Iterator[R]:
    """Yield all records of a kind; see `each`.

    Raises as `stored_records`, and ActuatorError if one cannot be read.
    """
    for manifest in stored_records(client, cls, label_selector=label_selector):
        yield _decoded(cls, manifest)


def read_orphans(client: Client, *, label_selector: str = "") -> list[Orphan]:
    """Return all Orphans, oldest first. Raises as `read_records`."""
    read = read_records(client, Orphan, label_selector=label_selector)
    return sorted(read, key=lambda orphan: (orphan.spec.recorded_at, orphan.metadata.name))


def closed_by(orphan: Orphan) -> str:
    """Return the user who closed the Orphan, or ""."""
    status = orphan.status
    return str(Closer(status.closed_by, status.closed_by_verified)) if status.closed_by else ""


def find(orphans: Sequence[Orphan], name: str) -> Orphan:
    """Return the Orphan of that full or short name. Raises ConfigurationError."""
    matching = [orphan for orphan in orphans if orphan.metadata.name == name]
    matching = matching or [
        orphan for orphan in orphans if _is_short_for(name, orphan.metadata.name)
    ]
    if not matching:
        raise ConfigurationError(
            f"Orphan {name} not found; run `actuator orphans list --all` to list all orphans"
        )
    if len(matching) > 1:
        names = ", ".join(obj.metadata.name for obj in matching[:_MAX_NAMES])
        more = f" and {len(matching) - _MAX_NAMES} more" if len(matching) > _MAX_NAMES else ""
        raise ConfigurationError(
            f"{name} is ambiguous, it matches {names}{more}; write more of the name"
        )
    return matching[0]


def short_names(orphans: Sequence[Orphan]) -> dict[str, str]:
    """Return each name with the shortest cut that is unique; `find` accepts both."""
    names = [orphan.metadata.name for orphan in orphans]
    for uid, digest in _CUTS:
        short = {name: _cut(name, uid, digest) for name in names}
        if len(set(short.values())) == len(names):
            return short
    return {name: name for name in names}


def write_status(client: Client, orphan: Orphan, status: OrphanStatus) -> None:
    """Write the status, if the Orphan is unchanged since it was read.

    Raises ActuatorError if it changed, and ApiError.
    """
    name = orphan.metadata.name
    patch = [
        test("/metadata/uid", orphan.metadata.uid),
        test("/metadata/resourceVersion", orphan.metadata.resource_version),
        add("/status", encode(status)),
    ]
    try:
        answer = client.patch(ORPHANS, name, "", patch, subresource="status")
    except NotFound as error:
        raise ActuatorError(f"Orphan {name} was deleted concurrently") from error
    except Invalid as error:
        raise ActuatorError(f"Orphan {name} was modified concurrently; retry") from error
    require_stored(ORPHANS, encode(status), answer.get("status"), "status")


def close(
    client: Client, orphan: Orphan, now: datetime, by: Closer, *, note: str, existing: bool
) -> bool:
    """Set the state Closed, without touching the resource; return False if nothing changed.

    An Orphan with state Exists is closed only with `existing`, and without a note only one with
    state Gone, else ConfigurationError. Raises ActuatorError if it changed meanwhile, and ApiError.
    """
    if orphan.state is OrphanState.GONE:
        when = orphan.status.verified_at or UNKNOWN_VALUE
        note = note or f"verified at {when}: the resource does not exist"
    if orphan.state is OrphanState.EXISTS and not existing:
        raise ConfigurationError(
            f"Orphan {orphan.metadata.name}: {orphan.spec.resource} still existed at "
            f"{orphan.status.verified_at}; remove it and verify it again, or set --even-if-exists"
        )
    if orphan.state is not OrphanState.CLOSED and not note.strip():
        raise ConfigurationError(
            f"Orphan {orphan.metadata.name}: {orphan.spec.resource} is not verified to be gone; "
            "set --note with the reason for closing it"
        )
    status = attrs.evolve(orphan.status, note=note[:MAX_NOTE] or orphan.status.note)
    if orphan.state is not OrphanState.CLOSED:
        status.state = OrphanState.CLOSED.value
        status.closed_at = format_time(now)
        status.closed_by = by.name
        status.closed_by_verified = by.verified
    if status == orphan.status:
        return False
    write_status(client, orphan, status)
    return True


def reopen(client: Client, orphan: Orphan, *, note: str) -> bool:
    """Set the state Unverified again; return False if the Orphan is open.

    Raises ActuatorError if it changed meanwhile, and ApiError.
    """
    if orphan.is_open:
        return False
    text = note[:MAX_NOTE] or orphan.status.note
    write_status(client, orphan, OrphanStatus(state=OrphanState.UNVERIFIED.value, note=text))
    return True


def _decoded(cls: type[R], manifest: Raw) -> R:
    try:
        return decode(cls, manifest)
    except DecodeError as error:
        name = (manifest.get("metadata") or {}).get("name")
        raise ActuatorError(f"cannot read {cls.KIND.name} {name}: {error}") from error


def _cut(name: str, uid: int, digest: int) -> str:
    head, dash, tail = name.rpartition("-")
    return f"{head[:uid].rstrip('-')}{dash}{tail[:digest]}"


def _is_short_for(short: str, name: str) -> bool:
    short_head, dash, short_tail = short.rpartition("-")
    head, _, tail = name.rpartition("-")
    if not dash:  # only a prefix of the object's UID
        return bool(short) and head.startswith(short)
    return bool(short_head) and head.startswith(short_head) and tail.startswith(short_tail)


class Serving(Protocol):
    """A registered actuator."""

    @property
    def kind(self) -> Kind:
        """The kind of its objects."""

    @property
    def types(self) -> Sequence[str]:
        """Their types; empty for all."""

    @property
    def actuator(self) -> Actuator[Any]:
        """The actuator itself."""


def serving(added: Iterable[Serving], former: OrphanedFrom) -> Serving | None:
    """Return the first actuator that served the object, in any API version, or None."""
    for item in added:
        group = former.api_version.rpartition("/")[0]
        same_kind = (item.kind.name, item.kind.group) == (former.kind, group)
        if same_kind and (not item.types or former.type in item.types):
            return item
    return None
