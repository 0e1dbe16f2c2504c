"""Requests a deletion, confirmed where Gardener's webhook denies one that is not.

Source: Gardener documentation, "gardener-resource-manager" (deletion protection of extension
objects and of etcd-druid's; all kinds of both groups).
"""

from contextlib import suppress

from actuator.errors import Conflict, NotFound
from actuator.interface import Client, Resource
from actuator.meta import Raw
from generic.kube.finalizers import Stale, patch_tested
from generic.kube.patches import add, escape, test

CONFIRM_DELETION = "confirmation.gardener.cloud/deletion"
_PROTECTED_GROUPS = frozenset({"extensions.gardener.cloud", "druid.gardener.cloud"})


def request_deletion(client: Client, resource: Resource, meta: Raw) -> None:
    """Request the deletion of the object with these metadata, unless it was requested.

    Its deletion, replacement or change by another client meanwhile counts as success: look again.
    Needs the permissions `delete`, and for a protected kind `get` and `patch`. Raises ApiError.
    """
    if meta.get("deletionTimestamp") is not None:
        return
    name = meta["name"]
    namespace = meta.get("namespace", "")
    with suppress(Conflict, NotFound, Stale):
        if resource.group in _PROTECTED_GROUPS:
            patch_tested(client, resource, name, namespace, _confirmation(meta))
        client.delete(resource, name, namespace, uid=meta["uid"])


def _confirmation(meta: Raw) -> list[Raw]:
    """Return the patch that confirms the deletion of this object; other annotations stay."""
    path = "/metadata/annotations"
    uid = test("/metadata/uid", meta["uid"])
    parent = [] if meta.get("annotations") else [test(path, None), add(path, {})]
    return [uid, *parent, add(f"{path}/{escape(CONFIRM_DELETION)}", "true")]
