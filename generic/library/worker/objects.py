"""The machine objects of a namespace, read at one time; and small writes to them."""

from collections.abc import Iterable
from contextlib import suppress
from typing import TypeVar

import attrs

from actuator.codec import decode
from actuator.errors import Conflict, NotFound, RequeueAfter
from actuator.interface import SECRETS, Client, Resource
from actuator.meta import Object, ObjectMeta
from generic.library.lookup import DEPLOYMENTS, find_all
from generic.library.machines import (
    FORCE_DELETION,
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineClass,
    MachineDeployment,
    MachineSet,
)

LOOK_AGAIN = 5.0
"""Seconds between two checks for results of the machine-controller-manager."""

WAIT_SECONDS = 300.0
"""The time limit of a deletion (Gardener extension library, `worker/genericactuator`)."""

PODS = Resource("v1", "pods")
MANAGER = "machine-controller-manager"
MANAGER_PODS = f"role={MANAGER}"

PERMISSIONS = (
    *(
        resource.permission("get", "list", "create", "patch", "delete")
        for resource in (MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES, MACHINE_CLASSES, SECRETS)
    ),
    PODS.permission("list", "delete"),
    DEPLOYMENTS.permission("get", "patch"),
)
"""The permissions of a Worker."""

T = TypeVar("T", bound=Object)


@attrs.frozen
class MachineObjects:
    """All machine objects of a namespace."""

    deployments: list[MachineDeployment]
    sets: list[MachineSet]
    machines: list[Machine]
    classes: list[MachineClass]

    def deployment(self, name: str) -> MachineDeployment | None:
        """Return the deployment of that name, or None."""
        return next((d for d in self.deployments if d.metadata.name == name), None)

    @property
    def need_a_provider(self) -> bool:
        """Whether an object remains that only a provider with credentials can remove."""
        return bool(self.deployments or self.sets or self.machines)


def waiting_for(what: str) -> RequeueAfter:
    """Return the error to raise while another controller has work to finish."""
    return RequeueAfter(LOOK_AGAIN, f"Waiting for {what}")


def look(client: Client, namespace: str) -> MachineObjects:
    """Return the current machine objects. Raises ApiError."""
    return MachineObjects(
        _list(client, MACHINE_DEPLOYMENTS, namespace, MachineDeployment),
        _list(client, MACHINE_SETS, namespace, MachineSet),
        _list(client, MACHINES, namespace, Machine),
        _list(client, MACHINE_CLASSES, namespace, MachineClass),
    )


def label_for_force_deletion(client: Client, machines: Iterable[Machine]) -> None:
    """Label these machines for deletion without draining their nodes."""
    key, value = FORCE_DELETION
    for machine in machines:
        meta = machine.metadata
        if meta.labels.get(key) != value:
            patch = {"metadata": {"uid": meta.uid, "labels": {key: value}}}
            with suppress(NotFound):
                client.patch(MACHINES, meta.name, meta.namespace, patch)


def delete_all(client: Client, resource: Resource, metas: Iterable[ObjectMeta]) -> None:
    """Request the deletion of all of these."""
    for meta in metas:
        if meta.deletion_timestamp is None:
            with suppress(NotFound, Conflict):  # deleted, or replaced
                client.delete(resource, meta.name, meta.namespace, uid=meta.uid)


def scale_manager(client: Client, namespace: str, replicas: int) -> None:
    """Scale the machine-controller-manager, which gardenlet deploys."""
    with suppress(NotFound):
        client.patch(DEPLOYMENTS, MANAGER, namespace, {"spec": {"replicas": replicas}})


def _list(client: Client, resource: Resource, namespace: str, cls: type[T]) -> list[T]:
    return [decode(cls, raw) for raw in find_all(client, resource, namespace)]
