"""Removes our finalizer, on explicit request, after recording remaining external resources.

Guarantees, for every object:
- The API server has acknowledged its Orphans before our finalizer is removed. An object that
  another seed took over by migration has none.
- Only our finalizer is removed; every patch tests the uid and the whole list (`finalizers`).
- The guard on a Secret (`behaviours.secret_guard`) is removed before the object's finalizer, and
  only if no other object of the kind, served by any controller, still needs the Secret.
- A failure is reported for its object, and the others continue. The release can be repeated:
  completed steps count as success.

Assumption: the extension does not run (`check_no_leader`). While it runs, it adds finalizers
again. Nothing is deleted and no actuator operation is called: `external_resources` does no I/O.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import StrEnum

import attrs

from actuator.cluster import Cluster, ClusterState, Verdict
from actuator.codec import decode
from actuator.errors import ActuatorError, ApiError, DecodeError, Forbidden, NotFound, Unavailable
from actuator.interface import SECRETS, Client, Clock, ExternalResource
from actuator.meta import ObjectMeta, Raw
from generic.kube.clusters import CLUSTERS
from generic.kube.finalizers import remove_finalizers
from generic.kube.headers import Request, as_dict
from generic.kube.refusals import explained
from generic.kube.seedidentity import SeedIdentity
from generic.manager.leaderelection import LEASES, SERVES, Timing
from generic.manager.registry import Registration, served
from generic.reconciler.behaviours.secret_guard import GuardsSecret
from generic.reconciler.operation import Nothing, Operation, choose_operation
from generic.reconciler.origin import origin_of, version_of
from generic.reconciler.orphans import ORPHANS, OrphanedFrom, OrphanReason, record_all, remaining
from generic.tools.drain.survey import OwnedObject, Survey, may

_PAUSE = 0.5
_MIGRATED = (Operation.RELEASE, Nothing.MIGRATED)
_AGAIN = "the finalizer was added again: stop the extension"


class ReleaseState(StrEnum):
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
    state: ReleaseState
    created_at: str
    deleted_at: str | None
    last_error: str
    """The error in its status, in one line; "" for none."""
    note: str = ""
    """Why our finalizer is still present, or the result of its release: the number of recorded
    Orphans, and the finalizers for which the object still waits."""

    @property
    def is_held(self) -> bool:
        """Whether it still has our finalizer."""
        return self.state is not ReleaseState.RELEASED

    def __str__(self) -> str:
        return f"{self.kind} {Request(self.namespace, self.name)}"


def check_no_leader(client: Client, namespace: str, name: str) -> None:
    """Return at once if the Lease was released, else after its duration without a renewal.

    As in leader election (`generic.manager.leaderelection`), a renewal is a change of the record
    while it is observed; the times in the record are ignored.

    Raises ActuatorError if it is renewed, does not exist, or may not be read; ApiError.
    """
    record = _read_lease(client, namespace, name)
    promised = record.get("leaseDurationSeconds") or Timing().lease_duration
    until = time.monotonic() + float(promised)
    while record.get("holderIdentity") and time.monotonic() < until:
        time.sleep(_PAUSE)
        fresh = _read_lease(client, namespace, name)
        if fresh.get("holderIdentity") and fresh != record:
            raise ActuatorError(
                f"{fresh['holderIdentity']} holds the Lease {namespace}/{name} and would add the "
                "finalizers again; scale the extension's Deployment to zero first"
            )
        record = fresh


def check_own_leases(client: Client, registrations: Sequence[Registration]) -> bool:
    """Check each Lease of a manager that serves one of these kinds and types, in all namespaces.

    Returns False if the account may not list Leases, as with the roles of an extension alone.
    Raises ActuatorError as `check_no_leader`; ApiError.
    """
    ours = set(served(registrations).split())
    try:
        leases = client.list(LEASES)
    except Forbidden:
        return False
    for meta in (lease["metadata"] for lease in leases):
        serves = str((meta.get("annotations") or {}).get(SERVES, "")).split()
        if ours & set(serves):
            check_no_leader(client, meta["namespace"], meta["name"])
    return True


def _read_lease(client: Client, namespace: str, name: str) -> Raw:
    try:
        with may("get", LEASES):
            return as_dict(client.get(LEASES, name, namespace).get("spec"))
    except NotFound:
        raise ActuatorError(
            f"Lease {namespace}/{name} not found; set the leader election Lease of the extension "
            "(--leader-election-namespace/--leader-election-id of its Deployment), or none "
            "if it had none or its namespace was deleted"
        ) from None


def release(client: Client, found: Survey, clock: Clock) -> Iterator[Row]:
    """Release the objects of `survey`, one by one. Raises Unavailable: retry later."""
    seed = SeedIdentity(client, clock)
    needing = {item.header.uid: item for item in (*found.held, *found.of_others)}
    for held in found.held:
        try:
            done = _row(held, _release(client, held, needing, clock, seed), ReleaseState.RELEASED)
            del needing[held.header.uid]
        except Unavailable:
            raise
        except (ActuatorError, ApiError) as error:
            done = _row(held, explained(error) if isinstance(error, ApiError) else str(error))
        yield done


def _release(
    client: Client,
    held: OwnedObject,
    needing: dict[str, OwnedObject],
    clock: Clock,
    seed: SeedIdentity,
) -> str:
    """Record, remove the guard, remove the finalizer; return a note about the result.

    Raises ActuatorError or ApiError.
    """
    orphans = _record(client, held, clock, seed)
    notes = [f"{orphans} Orphan{'s' if orphans > 1 else ''}"] if orphans else []
    if _guards_alone(held, needing):
        _unguard(client, held)
    rest: list[str] = []
    with may("patch", held.resource), suppress(NotFound):
        rest = remove_finalizers(client, held.resource, held.raw, [held.finalizer])
    if rest and held.is_deleting:
        notes.append(f"waits for {', '.join(rest)}")
    return "; ".join(notes)


def _record(client: Client, held: OwnedObject, clock: Clock, seed: SeedIdentity) -> int:
    kind = held.registration.kind
    request = held.request
    former = OrphanedFrom(
        api_version=kind.api_version,
        kind=kind.name,
        namespace=request.namespace,
        name=request.name,
        uid=held.header.uid,
        type=held.header.type,
        origin=origin_of(
            _cluster(client, request.namespace),
            held.raw,
            seed_identity=seed.read(),
            extension_version=version_of(held.registration.actuator),
        ),
    )
    state = "the object was terminating" if held.is_deleting else "the object was not deleted"
    message = f"disowned by `actuator drain --release`; {state}"
    left = _remaining_resources(held)
    with may("create", ORPHANS):
        record_all(client, former, left, OrphanReason.DRAINED, message, clock.now())
    return len(left)


def _cluster(client: Client, namespace: str) -> Cluster:
    """Return the Cluster, or one with only its name if it cannot be read."""
    with suppress(ApiError, DecodeError):
        return decode(Cluster, client.get(CLUSTERS, namespace)) if namespace else Cluster()
    return Cluster(metadata=ObjectMeta(name=namespace))


def _remaining_resources(held: OwnedObject) -> list[ExternalResource]:
    """Return possibly remaining external resources; unknown if the actuator cannot name them."""
    one = held.registration
    nowhere = Verdict(ClusterState.NOT_NEEDED)
    if choose_operation(one.kind, held.header, nowhere) in _MIGRATED:
        return []
    return remaining(one.actuator, one.cls, held.raw)[0]


def _guards_alone(held: OwnedObject, needing: dict[str, OwnedObject]) -> bool:
    """Return whether this object is the only one that needs its guarded Secret."""
    if not isinstance(held.registration.actuator, GuardsSecret) or held.header.secret is None:
        return False
    return not any(
        other.header.secret == held.header.secret and other.finalizer == held.finalizer
        for uid, other in needing.items()
        if uid != held.header.uid
    )


def _unguard(client: Client, held: OwnedObject) -> None:
    assert held.header.secret is not None
    namespace, name = held.header.secret
    with suppress(NotFound):
        with may("get", SECRETS):
            secret = client.get(SECRETS, name, namespace)
        with may("patch", SECRETS):
            remove_finalizers(client, SECRETS, secret, [held.finalizer])


def rows_of_held(held: Sequence[OwnedObject]) -> list[Row]:
    """Return the rows of objects with our finalizer, those under deletion first."""
    rows = [_row(item, "") for item in held]
    return sorted(rows, key=lambda row: (row.state is ReleaseState.ALIVE, row.namespace))


def rows_of_released(done: Sequence[Row], held: Sequence[OwnedObject]) -> list[Row]:
    """Return the rows of released objects, and of those still held with the reason."""
    problems = {row.uid: row.note for row in done if row.is_held}
    still = [attrs.evolve(row, note=problems.get(row.uid) or _AGAIN) for row in rows_of_held(held)]
    back = {row.uid for row in still}
    return [*still, *(row for row in done if not row.is_held and row.uid not in back)]


def _row(held: OwnedObject, note: str, state: ReleaseState | None = None) -> Row:
    meta = as_dict(held.raw.get("metadata"))
    status = as_dict(held.raw.get("status"))
    error = as_dict(status.get("lastError")).get("description") or ""
    return Row(
        namespace=held.request.namespace,
        kind=held.registration.kind.name,
        name=held.request.name,
        uid=held.header.uid,
        state=state or (ReleaseState.DELETING if held.is_deleting else ReleaseState.ALIVE),
        created_at=str(meta.get("creationTimestamp") or ""),
        deleted_at=held.header.deletion_timestamp,
        last_error=" ".join(str(error).split()),
        note=note,
    )
