"""The Issuers of a shoot in its namespace of the seed: made, asked to go, looked for.

All carry our label; what has one of their names without it is somebody else's and is not touched.
An Issuer is created with its controller's finalizer in place, so that it cannot go before that
controller saw it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress

from actuator import ActuatorError, Client, ErrorCode, Permission, RequeueAfter, SeedObjects
from actuator.errors import AlreadyExists, NotFound
from actuator.meta import Raw
from extensions.certificate.config import IssuerConfig
from extensions.certificate.issuers import ISSUERS, Issuer

_LABEL = ("app.kubernetes.io/managed-by", "certificate-service")
_LOOK_AGAIN = 5.0
"""Seconds between two looks at what the other controller has to finish."""

GROUP = SeedObjects(
    ISSUERS.api_version,
    ISSUERS.plural,
    [Issuer.KIND.finalizer],
    label_selector="=".join(_LABEL),
)
PERMISSION = Permission(
    api_version=ISSUERS.api_version,
    resource=ISSUERS.plural,
    verbs=["get", "list", "create", "patch", "delete"],
)


def ensure(client: Client, namespace: str, issuer: IssuerConfig) -> None:
    """Afterwards the Issuer is as asked for.

    Raises ActuatorError where it is not ours, RequeueAfter while an older one goes.
    """
    meta: Raw = {"name": issuer.name, "namespace": namespace, "labels": dict([_LABEL])}
    wanted: Raw = {
        "apiVersion": ISSUERS.api_version,
        "kind": Issuer.KIND.name,
        "metadata": meta,
        "spec": {"server": issuer.server, "email": issuer.email},
    }
    try:
        guarded = {**meta, "finalizers": list(GROUP.finalizers)}
        client.create(ISSUERS, {**wanted, "metadata": guarded})
    except AlreadyExists:
        _check_usable(client.get(ISSUERS, issuer.name, namespace)["metadata"])
        client.apply(ISSUERS, wanted)


def remove(client: Client, namespace: str, *, but: Collection[str] = ()) -> None:
    """Asks for the deletion of our Issuers, the names in `but` aside. Does not wait."""
    for meta in _ours(client, namespace):
        if meta["name"] not in but and meta.get("deletionTimestamp") is None:
            with suppress(NotFound):
                client.delete(ISSUERS, meta["name"], namespace, uid=meta["uid"])


def check_gone(client: Client, namespace: str) -> None:
    """Returns if none of ours is there. Raises RequeueAfter, which names what holds them."""
    held = [
        f"Issuer {meta['name']} (held by {', '.join(meta.get('finalizers') or ['nobody'])})"
        for meta in _ours(client, namespace)
    ]
    if held:
        message = f"Waiting for the deletion of {'; '.join(held)}"
        error = ActuatorError(message, codes=[ErrorCode.ERR_CLEANUP_CLUSTER_RESOURCES])
        raise RequeueAfter(_LOOK_AGAIN, cause=error)


def _check_usable(meta: Raw) -> None:
    key, value = _LABEL
    where = f"Issuer {meta['namespace']}/{meta['name']}"
    if (meta.get("labels") or {}).get(key) != value:
        raise ActuatorError(
            f"{where} exists without our label {key}={value}; rename or remove it",
            codes=[ErrorCode.ERR_CONFIGURATION_PROBLEM],
        )
    if meta.get("deletionTimestamp"):
        raise RequeueAfter(_LOOK_AGAIN, f"Waiting to make {where} again, once the old one is gone")


def _ours(client: Client, namespace: str) -> Iterator[Raw]:
    try:
        found = client.list(ISSUERS, namespace, label_selector=GROUP.label_selector)
    except NotFound:  # the third party was never installed here
        return
    yield from (one["metadata"] for one in found)
