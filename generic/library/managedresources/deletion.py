"""Deletes or keeps a ManagedResource, and waits until some are deleted, or healthy."""

from contextlib import suppress
from datetime import timedelta

from actuator.codec import decode
from actuator.errors import ActuatorError, ErrorCode, NotFound, RequeueAfter
from actuator.interface import SECRETS, Client, Clock
from actuator.meta import ObjectMeta, parse_time
from generic.kube.patches import add
from generic.library.managedresources import kind, ours
from generic.library.managedresources.kind import MANAGED_RESOURCES, ManagedResource, is_healthy

_MAX_WAIT = timedelta(minutes=2)


def delete(
    client: Client,
    name: str,
    namespace: str,
    *,
    origin: str = ours.DEFAULT_ORIGIN,
    adopted: bool = True,
) -> None:
    """Request the deletion: the Secrets first, which the resource manager's finalizer keeps.

    A deleted or foreign one counts as success; without `adopted`, also one without our label.
    Raises ApiError.
    """
    managed = ours.find_ours(client, name, namespace, origin)
    if managed is None or not (adopted or ours.is_ours(managed.metadata, origin)):
        return
    for reference in managed.spec.secret_refs:
        _delete_secret(client, managed, reference.name, origin)
    with suppress(NotFound):
        client.delete(MANAGED_RESOURCES, name, namespace, uid=managed.metadata.uid)


def is_deployed(
    client: Client, name: str, namespace: str, *, origin: str = ours.DEFAULT_ORIGIN
) -> bool:
    """Whether it exists, is ours, and is not being deleted. Raises ApiError."""
    managed = ours.find_ours(client, name, namespace, origin)
    return managed is not None and managed.metadata.deletion_timestamp is None


def set_keep_objects(
    client: Client, name: str, namespace: str, *, keep: bool, origin: str = ours.DEFAULT_ORIGIN
) -> None:
    """Set whether the objects stay when the ManagedResource is deleted.

    Without one of ours this succeeds (Gardener documentation, "Control Plane Migration"). Raises
    ApiError.
    """
    managed = ours.find_ours(client, name, namespace, origin)
    if managed is None or managed.spec.keep_objects is keep:
        return
    with suppress(NotFound):
        ours.patch_spec(client, managed, [add("/spec/keepObjects", keep)])


def check_deleted(
    client: Client, clock: Clock, *names: str, namespace: str, origin: str = ours.DEFAULT_ORIGIN
) -> None:
    """Return if none of these exists any more.

    Raises RequeueAfter while it waits; ActuatorError with the resource manager's message if it
    failed, or took longer than 2 minutes since deletionTimestamp; and ApiError.
    """
    waiting = []
    for name in names:
        managed = ours.find_ours(client, name, namespace, origin)
        if managed is not None:
            _refuse_stuck(managed, clock)
            waiting.append(name)
    if waiting:
        raise RequeueAfter(
            ours.LOOK_AGAIN, f"Waiting for the deletion of ManagedResource {', '.join(waiting)}"
        )


def wait_until_healthy(
    client: Client, clock: Clock, *names: str, namespace: str, origin: str = ours.DEFAULT_ORIGIN
) -> None:
    """Return if all of these are applied in their current state, and healthy; call it after deploy.

    Raises RequeueAfter, with the resource manager's messages, while it waits; ActuatorError with
    message and codes of a condition that is False for longer than 2 minutes; and ApiError.
    """
    waiting: dict[str, list[str]] = {}
    for name in names:
        managed = ours.find_ours(client, name, namespace, origin)
        if managed is None or not is_healthy(managed):
            waiting[name] = _failures(managed, clock) if managed is not None else []
    if waiting:
        why = "; ".join(text for texts in waiting.values() for text in texts)
        text = f"Waiting for ManagedResource {', '.join(waiting)} to be healthy"
        raise RequeueAfter(ours.LOOK_AGAIN, f"{text}: {why}" if why else text)


def _failures(managed: ManagedResource, clock: Clock) -> list[str]:
    """Return the messages of failed conditions. Raises ActuatorError if one failed long ago."""
    failed = [c for c in managed.status.conditions if c.type in kind.HEALTH and c.status == "False"]
    current = managed.status.observed_generation == managed.metadata.generation
    for item in failed:
        since = item.last_transition_time
        if current and since and clock.now() - parse_time(since) > _MAX_WAIT:
            raise ActuatorError(
                f"ManagedResource {managed.key}: {item.type} is False for more than "
                f"{_MAX_WAIT.total_seconds():.0f} s: {item.message}",
                codes=[ErrorCode(code) for code in item.codes if code in set(ErrorCode)],
            )
    return [item.message for item in failed]


def _delete_secret(client: Client, managed: ManagedResource, name: str, origin: str) -> None:
    namespace = managed.metadata.namespace
    with suppress(NotFound):
        meta = decode(ObjectMeta, client.get(SECRETS, name, namespace)["metadata"])
        if ours.is_ours(meta, origin, managed):
            client.delete(SECRETS, name, namespace, uid=meta.uid)


def _refuse_stuck(managed: ManagedResource, clock: Clock) -> None:
    applied = next((c for c in managed.status.conditions if c.type == "ResourcesApplied"), None)
    failed = applied is not None and applied.reason == "DeletionFailed"
    since = managed.metadata.deletion_timestamp
    late = since is not None and clock.now() - parse_time(since) > _MAX_WAIT
    if not failed and not late:
        return
    said = applied.message if applied else "gardener-resource-manager reported no reason"
    problem = "failed" if failed else "took more than 2 minutes"
    raise ActuatorError(
        f"The deletion of ManagedResource {managed.key} {problem}: {said}",
        codes=[ErrorCode.ERR_CLEANUP_CLUSTER_RESOURCES],
    )
