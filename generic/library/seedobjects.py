"""Creates, deletes and awaits objects of an extension in a shoot's namespace of the seed.

A `SeedObjects` describes a group of them. Every object of the group has the labels of its selector:
an object without these labels belongs to another owner and is not changed. Its finalizers are those
of other controllers. They are set when an object is created, so that it is not deleted before its
controller sees it, and only a force deletion strips them.
"""

from collections.abc import Collection, Iterable, Iterator

from actuator.errors import ActuatorError, ErrorCode, RequeueAfter
from actuator.interface import Client, Context, Permission, SeedObjects
from actuator.meta import Raw, parse_time
from generic.kube.deleting import request_deletion
from generic.kube.writing import write
from generic.library.lookup import find
from generic.reconciler.stripping import HeldObject, list_group

__all__ = ["check_deleted", "delete", "ensure", "ensure_only", "permission"]

_LOOK_AGAIN = 5.0
"""Seconds between two checks for results of another controller."""
_NAMED = 3
"""Maximum objects of a group that a message names."""


def permission(group: SeedObjects) -> Permission:
    """Return the permission of these functions for the group."""
    return group.resource.permission("get", "list", "create", "patch", "delete")


def ensure(client: Client, group: SeedObjects, wanted: Raw) -> None:
    """Create or update an object of the group; its labels are added to the manifest.

    An update removes the fields that the manifest no longer has (`generic.kube.writing`), and
    leaves finalizers alone: they belong to their controllers. Raises ActuatorError if
    another owner's object has the name, RequeueAfter while ours is being deleted, and ApiError.
    """
    meta: Raw = wanted["metadata"]
    labels = dict(pair.split("=") for pair in group.label_selector.split(",") if pair)
    meta = {**meta, "labels": {**(meta.get("labels") or {}), **labels}}
    found = find(client, group.resource, meta["name"], meta["namespace"])
    if found is not None:
        _check_usable(group, labels, found["metadata"])
    written = {**wanted, "metadata": meta}
    write(client, group.resource, written, found, finalizers=group.finalizers)


def ensure_only(client: Client, group: SeedObjects, wanted: Iterable[Raw], namespace: str) -> None:
    """Ensure the wanted objects, and request the deletion of the group's others, as `delete`."""
    names = set()
    for item in wanted:
        ensure(client, group, item)
        names.add(item["metadata"]["name"])
    delete(client, [group], namespace, keep=names)


def delete(
    client: Client, groups: Iterable[SeedObjects], namespace: str, *, keep: Collection[str] = ()
) -> None:
    """Request the deletion of the groups' objects but those named in `keep`. Does not wait."""
    for group in groups:
        for meta in _found(client, group, namespace):
            if meta["name"] not in keep:
                request_deletion(client, group.resource, meta)


def check_deleted(
    ctx: Context,
    groups: Iterable[SeedObjects],
    namespace: str,
    *,
    patience: float = 0.0,
) -> None:
    """Return if no object of the groups exists.

    Raises RequeueAfter that names objects and their finalizers; without `patience` as an error with
    the code ERR_CLEANUP_CLUSTER_RESOURCES. Raises ActuatorError with that code once the oldest
    deletion has taken longer than `patience` seconds; `math.inf` waits without limit.
    """
    texts: list[str] = []
    times: list[str] = []
    for group in groups:
        metas = list(_found(ctx.client, group, namespace))
        texts += [str(HeldObject.of(group, meta)) for meta in metas[:_NAMED]]
        if len(metas) > _NAMED:
            texts.append(f"{len(metas) - _NAMED} more {group.resource.plural}")
        times += [meta["deletionTimestamp"] for meta in metas if meta.get("deletionTimestamp")]
    if not texts:
        return
    text = f"Waiting for the deletion of {'; '.join(texts)}"
    taken = (ctx.clock.now() - parse_time(min(times))).total_seconds() if times else 0.0
    if patience and taken <= patience:
        raise RequeueAfter(_LOOK_AGAIN, text)
    error = ActuatorError(text, codes=[ErrorCode.ERR_CLEANUP_CLUSTER_RESOURCES])
    if patience:
        raise error
    raise RequeueAfter(_LOOK_AGAIN, cause=error)


def _check_usable(group: SeedObjects, labels: dict[str, str], meta: Raw) -> None:
    if not labels.items() <= (meta.get("labels") or {}).items():
        raise ActuatorError(
            f"{group.resource} {meta['namespace']}/{meta['name']} exists without our label "
            f"{group.label_selector}; rename or remove it",
            codes=[ErrorCode.ERR_CONFIGURATION_PROBLEM],
        )
    if meta.get("deletionTimestamp"):
        text = f"Waiting for its deletion before creating it again: {HeldObject.of(group, meta)}"
        raise RequeueAfter(_LOOK_AGAIN, text)


def _found(client: Client, group: SeedObjects, namespace: str) -> Iterator[Raw]:
    yield from (obj["metadata"] for obj in list_group(client, namespace, group))
