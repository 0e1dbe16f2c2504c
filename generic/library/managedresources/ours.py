"""Ownership of ManagedResources and Secrets: finds ours, rejects foreign ones, patches."""

from collections.abc import Mapping, Sequence

from actuator.codec import decode
from actuator.errors import ActuatorError, RequeueAfter
from actuator.interface import SECRETS, Client
from actuator.meta import ObjectMeta, Raw
from generic.kube.finalizers import Stale, patch_tested
from generic.kube.patches import test
from generic.library import lookup
from generic.library.managedresources import kind

DEFAULT_ORIGIN = "actuator"
LOOK_AGAIN = 5.0
"""Seconds between two checks for results of the resource manager."""

GO_LIBRARY: Mapping[str, str] = {
    "extension-controlplane-configuration-seed": kind.SEED_CLASS,
    "extension-controlplane-seed": kind.SEED_CLASS,
    "extension-controlplane-shoot": "",
    "extension-controlplane-shoot-crds": "",
    "extension-controlplane-shoot-webhooks": "",
    "extension-controlplane-storageclasses": "",
}
"""Name and class ("": the shoot's) of the Go library's objects, which have no label `origin`.

An extension that takes over from a Go extension adopts these in the shoot's namespace, and no
others (gardener, `extensions/pkg/controller/controlplane/genericactuator`).
"""


PERMISSIONS = tuple(
    resource.permission("get", "create", "patch", "delete")
    for resource in (SECRETS, kind.MANAGED_RESOURCES)
)
"""The permissions for deploying and deleting."""


def find(client: Client, name: str, namespace: str) -> kind.ManagedResource | None:
    """Return the one of this name, of any owner. Raises ApiError."""
    found = lookup.find(client, kind.MANAGED_RESOURCES, name, namespace)
    return None if found is None else decode(kind.ManagedResource, found)


def find_ours(
    client: Client, name: str, namespace: str, origin: str
) -> kind.ManagedResource | None:
    """Return the one of this name, if it is ours."""
    found = find(client, name, namespace)
    return found if found is not None and is_ours(found.metadata, origin, found) else None


def is_ours(meta: ObjectMeta, origin: str, managed: kind.ManagedResource | None = None) -> bool:
    """Whether it has our label, or is adopted: a ManagedResource in GO_LIBRARY, or its Secret.

    The Secret must be named `<name>` or `<name>-<hash>`; `managed` refers to it.
    """
    if kind.ORIGIN in meta.labels or managed is None:
        return meta.labels.get(kind.ORIGIN) == origin
    name = managed.metadata.name
    known = GO_LIBRARY.get(name) == (managed.spec.class_ or "")
    return known and (meta is managed.metadata or f"{meta.name}-".startswith(f"{name}-"))


def refuse_foreign(
    meta: ObjectMeta, what: str, origin: str, managed: kind.ManagedResource | None = None
) -> None:
    """Raise ActuatorError if it is not ours, RequeueAfter while it is being deleted."""
    if not is_ours(meta, origin, managed):
        raise ActuatorError(
            f"{what} exists without the label {kind.ORIGIN}={origin} and belongs to another owner;"
            " delete it, or set the label to hand it over"
        )
    if meta.deletion_timestamp is not None:
        raise RequeueAfter(LOOK_AGAIN, f"Waiting for the deletion of the old {what}")


def patch_spec(client: Client, managed: kind.ManagedResource, changes: Sequence[Raw]) -> None:
    """Patch that object. Raises RequeueAfter if it changed since it was read, and ApiError."""
    meta = managed.metadata
    patch = [test("/metadata/uid", meta.uid), *changes]
    try:
        patch_tested(client, kind.MANAGED_RESOURCES, meta.name, meta.namespace, patch)
    except Stale as error:
        raise RequeueAfter(LOOK_AGAIN, str(error)) from error
