"""Requests and observations of the tests of the relations sample."""

from __future__ import annotations

from typing import Any

import attrs

from actuator import Client, Resource
from actuator.cluster import FORCE_DELETION
from actuator.errors import NotFound
from actuator.interface import resource_of
from actuator.meta import Object, Raw
from generic.testing.garden import not_ready_because
from tests.support.cluster.harness import eventually

CONFIG_MAPS = Resource("v1", "configmaps")
HELD = "example.org/held"
COLLECTED = 180.0
"""Seconds; the collector looks for kinds that are new to it every half a minute."""


@attrs.frozen
class Look:
    """One object of the sample, as an administrator sees it."""

    client: Client
    cls: type[Object]
    namespace: str
    name: str

    @property
    def resource(self) -> Resource:
        return resource_of(self.cls.KIND)

    def create(self, **spec: Any) -> Raw:
        meta = {"name": self.name, **({"namespace": self.namespace} if self.namespace else {})}
        kind = {"apiVersion": self.cls.KIND.api_version, "kind": self.cls.KIND.name}
        return self.client.create(self.resource, {**kind, "metadata": meta, "spec": spec})

    def get(self) -> Raw:
        return self.client.get(self.resource, self.name, self.namespace)

    def change(self, **spec: Any) -> None:
        self.client.patch(self.resource, self.name, self.namespace, {"spec": spec})

    def is_ready(self) -> None:
        eventually(lambda: not_ready_because(self.get()) is None)

    def says(self, text: str) -> Raw:
        """Waits until the condition Ready says that, and returns the condition."""

        def said() -> Raw | None:
            conditions = (self.get().get("status") or {}).get("conditions") or []
            return next(
                (condition for condition in conditions if text in condition["message"]), None
            )

        found: Raw = eventually(said)
        return found

    def delete(self, propagation: Any = "Background") -> None:
        self.client.delete(self.resource, self.name, self.namespace, propagation=propagation)

    def force(self) -> None:
        """Deletes it with the confirmation that it need not be clean."""
        annotations = {"metadata": {"annotations": {FORCE_DELETION: "true"}}}
        self.client.patch(self.resource, self.name, self.namespace, annotations)
        self.delete()

    def is_gone(self) -> None:
        eventually(lambda: absent(self.client, self.resource, self.namespace, self.name), COLLECTED)


def absent(client: Client, resource: Resource, namespace: str, name: str) -> bool:
    try:
        client.get(resource, name, namespace)
    except NotFound:
        return True
    return False


def config_map(namespace: str, name: str, **data: str) -> Raw:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


@attrs.frozen
class ConfigMaps:
    """The ConfigMaps of one namespace."""

    client: Client
    namespace: str

    def data(self, name: str) -> Raw | None:
        """The data of a ConfigMap; None where there is none."""
        try:
            return self.client.get(CONFIG_MAPS, name, self.namespace).get("data") or {}
        except NotFound:
            return None

    def owners(self, name: str) -> dict[str, bool]:
        """By the name of each owner, whether it is the controller."""
        meta = self.client.get(CONFIG_MAPS, name, self.namespace)["metadata"]
        found = meta.get("ownerReferences") or []
        return {item["name"]: item.get("controller", False) for item in found}

    def patch(self, name: str, patch: Raw) -> None:
        self.client.patch(CONFIG_MAPS, name, self.namespace, patch)

    def delete(self, name: str) -> None:
        self.client.delete(CONFIG_MAPS, name, self.namespace)

    def goes(self, name: str) -> None:
        eventually(lambda: self.data(name) is None, COLLECTED)
