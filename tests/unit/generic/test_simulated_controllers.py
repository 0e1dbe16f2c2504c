"""No content of an object stops the simulated controllers: they serve the others."""

from __future__ import annotations

import logging
from collections import defaultdict
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator.errors import ApiError, Unavailable
from actuator.interface import Resource, resource_of
from actuator.meta import Raw
from generic.kube.clusters import CLUSTERS
from generic.library.machines import MACHINE_KINDS
from generic.library.managedresources import ManagedResource
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.testing.machinecontroller import MachineControllers
from generic.testing.resourcemanager import ResourceManager
from generic.testing.shootapi import ServedShoots
from generic.testing.shoots import ShootManager, Shoots

KINDS = (*MACHINE_KINDS, ManagedResource)
NAMES = {resource_of(cls.KIND): cls.KIND.name for cls in KINDS} | {CLUSTERS: "Cluster"}
FIELDS = [
    "class", "conditions", "currentStatus", "keepObjects", "kind", "metadata", "name", "replicas",
    "resources", "secretRefs", "shoot", "spec", "status", "strategy", "template",
]  # fmt: skip
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
    ),
    max_leaves=12,
)


class OneNamespace:
    """Lists objects of one namespace, and notes the names of those that are written."""

    def __init__(self, objects: dict[Resource, list[Raw]]) -> None:
        self.objects = objects
        self.written: list[str] = []

    def list(self, resource: Resource, namespace: str = "", **_: Any) -> list[Raw]:
        return self.objects.get(resource, [])

    def patch(self, resource: Resource, name: str, *more: Any, **_: Any) -> Raw:
        self.written.append(name)
        found = next(obj for obj in self.objects[resource] if obj["metadata"]["name"] == name)
        held: list[str] = []
        for step in more[1] if more[1:] else ():
            held += step["value"] if step["op"] == "add" else ()
        return {**found, "metadata": {**found["metadata"], "finalizers": held}}

    def delete(self, *_: Any, **__: Any) -> None:
        """Nothing has to be gone for these tests."""


class NoServers:
    """In place of the API servers of shoots."""

    def open(self, shoot: str) -> Any:
        raise Unavailable(0, f"{shoot} has none")

    def end(self, shoot: str) -> None:
        """It has none."""


def placed(resource: Resource, name: str, content: Raw) -> Raw:
    """An object whose metadata an API server checked, and nothing else."""
    meta = {"name": name, "namespace": "shoot--a--b", "uid": name, "generation": 1, "labels": {}}
    return {**content, "kind": NAMES[resource], "apiVersion": "v1", "metadata": meta}


@given(st.data())
def test_objects_of_any_content_stop_no_round(data):
    """Also where an author's manifests, or a tenant's objects, have an unexpected shape."""
    contents = st.dictionaries(st.sampled_from(["spec", "status", "shoot"]), ANY)
    objects = defaultdict(list)
    for resource in NAMES:
        objects[resource] = [placed(resource, "odd", data.draw(contents)) for _ in range(2)]
    client: Any = OneNamespace(objects)
    servers: Any = NoServers()
    for manager in (
        ResourceManager(client),
        ShootManager(client, Shoots()),
        ServedShoots(client, servers),
        MachineControllers(client),
    ):
        with suppress(ApiError):  # no server of a shoot starts
            manager.poll()


@pytest.mark.parametrize(
    ("resource", "manager", "good"),
    [
        pytest.param(
            MANAGED_RESOURCES,
            ResourceManager,
            {"spec": {"class": "seed", "secretRefs": []}},
            id="ManagedResource",
        ),
        *(
            pytest.param(resource_of(cls.KIND), MachineControllers, {"spec": {}}, id=cls.__name__)
            for cls in MACHINE_KINDS[:3]
        ),
    ],
)
def test_the_object_behind_an_odd_one_is_served(resource, manager, good, caplog):
    odd = placed(resource, "odd", {"spec": 7, "status": 7})
    odd["metadata"]["finalizers"] = [7]
    client: Any = OneNamespace({resource: [odd, placed(resource, "good", good)]})
    served = manager(client)
    with caplog.at_level(logging.WARNING):
        served.poll()
        served.poll()
    assert "good" in client.written
    assert len([text for text in caplog.messages if "/odd is not served" in text]) == 1
