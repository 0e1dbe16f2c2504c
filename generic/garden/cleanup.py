"""What gardenlet clears out of a shoot's namespace itself, finalizers of others included.

Only in the namespace of the shoot. Source: gardener `pkg/gardenlet/operation/botanist` and
`pkg/utils/gardener` ("shallow deletion" of machine objects, cleaner of the force deletion).
"""

from __future__ import annotations

from actuator.errors import NotFound
from actuator.interface import Client, Resource
from actuator.meta import Raw

__all__ = ["MANAGED_RESOURCES", "clear_machines", "clear_managed_resources", "clear_rest"]

MANAGED_RESOURCES = Resource("resources.gardener.cloud/v1alpha1", "managedresources")
_MACHINE = "machine.sapcloud.io/v1alpha1"
_MACHINES = [
    Resource(_MACHINE, plural)
    for plural in ("machinedeployments", "machinesets", "machines", "machineclasses")
]
_REST = [Resource("v1", "configmaps"), Resource("v1", "secrets")]
_NOBODY = {"metadata": {"finalizers": None}}


def clear_machines(client: Client, namespace: str) -> None:
    """Machine objects go at once: nobody runs that would let go of them."""
    for resource in _MACHINES:
        _finalize(client, resource, namespace)


def clear_managed_resources(client: Client, namespace: str) -> None:
    """All are deleted with what they brought; those of the shoot's class also let go of.

    Those of another class have a resource manager in the seed, which has to finish them.
    """
    for mr in _list(client, MANAGED_RESOURCES, namespace):
        name = mr["metadata"]["name"]
        try:
            keep_nothing = {"spec": {"keepObjects": False}}
            client.patch(MANAGED_RESOURCES, name, namespace, keep_nothing)
            client.delete(MANAGED_RESOURCES, name, namespace)
            if not mr["spec"].get("class"):
                client.patch(MANAGED_RESOURCES, name, namespace, _NOBODY)
        except NotFound:
            continue


def clear_rest(client: Client, namespace: str) -> None:
    """ConfigMaps and Secrets, the last things that could hold the namespace."""
    for resource in _REST:
        _finalize(client, resource, namespace)


def managed_resources_left(client: Client, namespace: str) -> list[str]:
    """What gardenlet still waits for, and what its resource manager says of it."""
    return [_said(mr) for mr in _list(client, MANAGED_RESOURCES, namespace)]


def _said(mr: Raw) -> str:
    conditions = (mr.get("status") or {}).get("conditions") or []
    messages = [c["message"] for c in conditions if c["type"] == "ResourcesApplied"]
    return f"ManagedResource {mr['metadata']['name']} ({'; '.join(messages) or 'no condition'})"


def _finalize(client: Client, resource: Resource, namespace: str) -> None:
    for obj in _list(client, resource, namespace):
        name = obj["metadata"]["name"]
        try:
            client.delete(resource, name, namespace)
            client.patch(resource, name, namespace, _NOBODY)
        except NotFound:
            continue


def _list(client: Client, resource: Resource, namespace: str) -> list[Raw]:
    try:
        return client.list(resource, namespace)
    except NotFound:  # the seed has no such kind
        return []
