"""Which ManagedResources and Secrets are ours: found, told from foreign ones, patched."""

from __future__ import annotations

from collections.abc import Sequence

from actuator.codec import decode
from actuator.errors import ActuatorError, NotFound, RequeueAfter
from actuator.interface import Client, Permission, Resource
from actuator.meta import ObjectMeta, Raw
from generic.finalizers import patch_tested
from generic.managedresources.kind import MANAGED_RESOURCES, ORIGIN, ManagedResource
from generic.patches import test

__all__ = [
    "DEFAULT_ORIGIN",
    "LOOK_AGAIN",
    "PERMISSIONS",
    "SECRETS",
    "find",
    "find_ours",
    "is_ours",
    "patch_spec",
    "refuse_foreign",
]

DEFAULT_ORIGIN = "actuator"
LOOK_AGAIN = 5.0
"""Seconds between two looks at what the resource manager has to finish."""

SECRETS = Resource("v1", "secrets")

PERMISSIONS = tuple(
    Permission(
        api_version=resource.api_version,
        resource=resource.plural,
        verbs=["get", "create", "patch", "delete"],
    )
    for resource in (SECRETS, MANAGED_RESOURCES)
)
"""What deploying and deleting does in the API."""


def find(client: Client, namespace: str, name: str) -> ManagedResource | None:
    """The one of this name, whoever deployed it. Raises ApiError."""
    try:
        return decode(ManagedResource, client.get(MANAGED_RESOURCES, name, namespace))
    except NotFound:
        return None


def find_ours(client: Client, namespace: str, name: str, origin: str) -> ManagedResource | None:
    """The one of this name, if it is ours."""
    found = find(client, namespace, name)
    return found if found is not None and is_ours(found.metadata, origin) else None


def is_ours(meta: ObjectMeta, origin: str) -> bool:
    """Whether our mark is on it."""
    return meta.labels.get(ORIGIN) == origin


def refuse_foreign(meta: ObjectMeta, what: str, origin: str) -> None:
    """Raises ActuatorError where it is not ours, RequeueAfter where it is being deleted."""
    if not is_ours(meta, origin):
        raise ActuatorError(
            f"{what} is there already without the label {ORIGIN}={origin}, so it belongs to"
            " somebody else; delete it, or put the label on it to hand it over"
        )
    if meta.deletion_timestamp is not None:
        raise RequeueAfter(LOOK_AGAIN, f"Waiting for the deletion of the old {what}")


def patch_spec(client: Client, managed: ManagedResource, changes: Sequence[Raw]) -> None:
    """Changes that very object. Raises NotFound where it is another one by now, and ApiError."""
    meta = managed.metadata
    patch = [test("/metadata/uid", meta.uid), *changes]
    patch_tested(client, MANAGED_RESOURCES, meta.name, meta.namespace, patch)
