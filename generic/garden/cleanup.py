"""What gardenlet clears out of a shoot's namespace itself, finalizers of others included.

Only in the namespace of the shoot. Source: gardener `pkg/gardenlet/operation/botanist` and
`pkg/utils/gardener` ("shallow deletion" of machine objects, cleaner of the force deletion).
"""

from __future__ import annotations

from contextlib import suppress

from actuator.errors import NotFound
from actuator.interface import Client, Resource
from actuator.meta import Raw
from generic.finalizers import take_off
from generic.machines import (
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    MC_FINALIZER,
    MCM_FINALIZER,
)
from generic.managedresources import MANAGED_RESOURCES

__all__ = [
    "clear_machines",
    "clear_managed_resources",
    "clear_rest",
    "hand_over_machines",
    "managed_resources_left",
]

_MACHINES = [MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES, MACHINE_CLASSES]
_CONFIGMAPS, _SECRETS = Resource("v1", "configmaps"), Resource("v1", "secrets")
_PURPOSE = "gardener.cloud/purpose"
_NOBODY = {"metadata": {"finalizers": None}}


def clear_machines(client: Client, namespace: str) -> None:
    """Machine objects go at once, whoever holds them: nobody runs that would let go of them."""
    for resource in _MACHINES:
        _finalize(client, resource, namespace)


def hand_over_machines(client: Client, namespace: str) -> None:
    """Machine objects go, the machines stay: only what the machine-controllers hold comes off."""
    for resource in _MACHINES:
        for obj in _list(client, resource, namespace):
            _let_go(client, resource, obj["metadata"], delete=True)
    for purpose, delete in (("machineclass", True), ("cloudprovider", False)):
        for obj in client.list(_SECRETS, namespace, label_selector=f"{_PURPOSE}={purpose}"):
            _let_go(client, _SECRETS, obj["metadata"], delete=delete)


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
    for resource in (_CONFIGMAPS, _SECRETS):
        _finalize(client, resource, namespace)


def managed_resources_left(client: Client, namespace: str) -> list[str]:
    """What gardenlet still waits for, and what its resource manager says of it."""
    return [_said(mr) for mr in _list(client, MANAGED_RESOURCES, namespace)]


def _said(mr: Raw) -> str:
    conditions = (mr.get("status") or {}).get("conditions") or []
    messages = [c["message"] for c in conditions if c["type"] == "ResourcesApplied"]
    return f"ManagedResource {mr['metadata']['name']} ({'; '.join(messages) or 'no condition'})"


def _let_go(client: Client, resource: Resource, meta: Raw, *, delete: bool) -> None:
    name, namespace = meta["name"], meta["namespace"]
    held = {MCM_FINALIZER, MC_FINALIZER} & set(meta.get("finalizers") or [])
    with suppress(NotFound):
        if delete:
            client.delete(resource, name, namespace)
        if held:
            client.patch(resource, name, namespace, take_off(held, meta["uid"], meta["finalizers"]))


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
