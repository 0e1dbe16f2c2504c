"""A Shoot of a landscape as tests see it beside the view of its owner: in its seed and nodes."""

from __future__ import annotations

from actuator.errors import NotFound
from actuator.interface import Client, Resource
from actuator.meta import Raw
from generic.kube.client import HttpClient, connect
from generic.library.machines import MACHINES
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL
from generic.testing.drill.landscape.world import LandscapeWorld
from generic.testing.landscape.garden import SHOOTS
from generic.testing.landscape.nodes import NODES, is_ready
from generic.testing.landscape.shoots import ShootApi
from generic.testing.landscape.users import ShootOwner, ShootView


def exists(client: Client, resource: Resource, name: str, namespace: str = "") -> bool:
    try:
        return client.get(resource, name, namespace) is not None
    except NotFound:
        return False


def has_failed(view: ShootView | None) -> bool:
    return view is not None and view.has_ended("Failed")


def technical_id(owner: ShootOwner) -> str:
    view = owner.view()
    assert view is not None
    return view.technical_id


class InSeed:
    """A Shoot as the only seed of a landscape has it."""

    def __init__(self, landscape: LandscapeWorld, owner: ShootOwner) -> None:
        self._landscape = landscape
        self._owner = owner
        self.id = technical_id(owner)
        self.client = landscape.landscape.seeds[0].client

    def raw(self) -> Raw:
        return self._landscape.landscape.garden.client.get(
            SHOOTS, self._owner.name, self._owner.namespace
        )

    def change(self, spec: Raw) -> None:
        client = self._landscape.landscape.garden.client
        client.patch(SHOOTS, self._owner.name, self._owner.namespace, {"spec": spec})

    def access(self) -> ShootApi:
        return self._landscape.landscape.seeds[0].shoots.access(self.id)

    def connect(self) -> HttpClient:
        kubeconfig = self.access().kubeconfig()
        assert kubeconfig is not None
        return connect(kubeconfig)

    def machines(self) -> set[str]:
        return {obj["metadata"]["name"] for obj in self.client.list(MACHINES, self.id)}

    def ready_nodes(self) -> set[str]:
        nodes = self.connect().list(NODES)
        return {node["metadata"]["name"] for node in nodes if is_ready(node)}

    def orphans(self) -> set[str]:
        found = self.client.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={self.id}")
        return {obj["spec"]["resourceType"] for obj in found}

    def processes(self) -> list[str]:
        return [name for name in self._landscape.landscape.processes.alive() if self.id in name]
