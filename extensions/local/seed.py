"""The objects of one extension object in its namespace of the seed: made, asked to go, awaited.

All carry the labels of `metadata`; what has one of their names without them is somebody else's
and is not touched. Which objects there are is the actuators' business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta

import attrs

from actuator import (
    ActuatorError,
    Client,
    Context,
    ErrorCode,
    Object,
    Permission,
    RequeueAfter,
    Resource,
    SeedObjects,
)
from actuator.errors import AlreadyExists, NotFound
from actuator.meta import Kind, Raw, parse_time

_KIND = "local.provider.extensions.gardener.cloud/kind"
_OWNER = "local.provider.extensions.gardener.cloud/owner"
_LOOK_AGAIN = 5.0
"""Seconds between two looks at what another controller has to finish."""
PATIENCE = timedelta(seconds=30)
"""From an object's deletionTimestamp on: what takes longer is an error."""


def metadata(obj: Object, name: str, **labels: str) -> Raw:
    """Metadata of a seed object that belongs to `obj`."""
    own = {_KIND: obj.KIND.name, _OWNER: obj.metadata.uid}
    return {"name": name, "namespace": obj.metadata.namespace, "labels": {**labels, **own}}


def group(kind: Kind, resource: Resource, finalizers: Sequence[str] = ()) -> SeedObjects:
    """The declaration of what actuators of `kind` make of one resource."""
    return SeedObjects(
        resource.api_version, resource.plural, finalizers, label_selector=f"{_KIND}={kind.name}"
    )


def permission(resource: Resource) -> Permission:
    """What this module does to objects of that resource."""
    verbs = ["get", "list", "create", "patch", "delete"]
    return Permission(api_version=resource.api_version, resource=resource.plural, verbs=verbs)


def narrowed(groups: Iterable[SeedObjects], obj: Object) -> list[SeedObjects]:
    """The groups, without what belongs to other objects of the kind."""
    return [attrs.evolve(one, label_selector=_selector(obj)) for one in groups]


def ensure(client: Client, resource: Resource, wanted: Raw) -> None:
    """Afterwards the object is as `wanted`.

    Raises ActuatorError where it is not ours, RequeueAfter while somebody deletes it.

    Finalizers are set when it is created; from then on they belong to those who put them.
    """
    meta: Raw = wanted["metadata"]
    try:
        client.create(resource, wanted)
        return
    except AlreadyExists:
        there = client.get(resource, meta["name"], meta["namespace"])
    found: Raw = there["metadata"]
    if (found.get("labels") or {}).get(_OWNER) != meta["labels"][_OWNER]:
        raise ActuatorError(
            f"{resource} {meta['namespace']}/{meta['name']} exists and belongs to somebody else; "
            "rename or remove it",
            codes=[ErrorCode.ERR_CONFIGURATION_PROBLEM],
        )
    if found.get("deletionTimestamp"):
        held = _say_what_holds(resource, found)
        raise RequeueAfter(_LOOK_AGAIN, f"Waiting to make it again, once it is gone: {held}")
    kept = {key: value for key, value in meta.items() if key != "finalizers"}
    client.apply(resource, {**wanted, "metadata": kept})


def remove(client: Client, resource: Resource, obj: Object, *, but: Iterable[str] = ()) -> None:
    """Asks for the deletion of what belongs to `obj`, the names in `but` aside. Does not wait."""
    kept = set(but)
    for meta in _of(client, resource, obj):
        if meta["name"] not in kept and meta.get("deletionTimestamp") is None:
            with suppress(NotFound):
                client.delete(resource, meta["name"], meta["namespace"], uid=meta["uid"])


def wait_until_gone(ctx: Context, resource: Resource, obj: Object) -> None:
    """Returns when nothing that belongs to `obj` is left.

    Raises RequeueAfter, and ActuatorError for what is being deleted for more than PATIENCE.
    """
    metas = list(_of(ctx.client, resource, obj))
    if not metas:
        return
    held = "; ".join(_say_what_holds(resource, meta) for meta in metas)
    since = min(m["deletionTimestamp"] for m in metas if m.get("deletionTimestamp"))
    if ctx.clock.now() - parse_time(since) > PATIENCE:
        raise ActuatorError(
            f"Not gone, although deleted since {since}: {held}",
            codes=[ErrorCode.ERR_CLEANUP_CLUSTER_RESOURCES],
        )
    raise RequeueAfter(_LOOK_AGAIN, f"Waiting for the deletion of {held}")


def _of(client: Client, resource: Resource, obj: Object) -> Iterator[Raw]:
    try:
        found = client.list(resource, obj.metadata.namespace, label_selector=_selector(obj))
    except NotFound:  # the CRD was never installed here
        return
    yield from (one["metadata"] for one in found)


def _selector(obj: Object) -> str:
    return f"{_KIND}={obj.KIND.name},{_OWNER}={obj.metadata.uid}"


def _say_what_holds(resource: Resource, meta: Raw) -> str:
    finalizers = meta.get("finalizers") or []
    holders = f"held by {', '.join(finalizers)}" if finalizers else "being deleted"
    return f"{resource} {meta['name']} ({holders})"
