"""Requests and observations of the tests of the sample, in both clusters."""

from __future__ import annotations

import json
from typing import Any

from actuator import Resource
from actuator.cluster import FORCE_DELETION
from actuator.errors import NotFound
from actuator.interface import Client, resource_of
from actuator.meta import Base64, Raw
from extensions.helmreleaseproxy.kinds import TARGET_LABEL, HelmChartProxy, HelmReleaseProxy, Target
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL
from hack.faults import FaultProxy

CHARTS, RELEASES, TARGETS = (
    resource_of(cls.KIND) for cls in (HelmChartProxy, HelmReleaseProxy, Target)
)
KINDS = {CHARTS: HelmChartProxy.KIND, RELEASES: HelmReleaseProxy.KIND, TARGETS: Target.KIND}
CONFIGMAPS = Resource("v1", "configmaps")
SECRETS = Resource("v1", "secrets")
EVENTS = Resource("v1", "events")


class Way:
    """The far cluster as its administrator sees it, and the proxy there for all others."""

    def __init__(self, proxy: FaultProxy, admin: Client) -> None:
        self.proxy = proxy
        self.admin = admin

    def text(self, namespace: str, name: str) -> str | None:
        """The text that the chart `note` has installed there."""
        try:
            found = self.admin.get(CONFIGMAPS, name, namespace)
        except NotFound:
            return None
        return str(found["data"]["text"])

    def revisions(self, namespace: str, name: str) -> list[str]:
        """Helm's own records of a release: the status of each revision."""
        found = self.admin.list(SECRETS, namespace, label_selector=f"owner=helm,name={name}")
        records = sorted(found, key=lambda item: int(item["metadata"]["labels"]["version"]))
        return [record["metadata"]["labels"]["status"] for record in records]


class Cluster:
    """The near cluster: Targets, charts and releases in the namespace of a test."""

    def __init__(self, admin: Client, namespace: str, way: Way) -> None:
        self.admin = admin
        self.namespace = namespace
        self.way = way

    def target(self, name: str = "t", *, secret: bool = True, **labels: str) -> None:
        self._create(TARGETS, name, labels=labels)
        if secret:
            self.kubeconfig(name, self.way.proxy.kubeconfig.read_bytes())

    def kubeconfig(self, name: str, content: bytes) -> None:
        """Writes it as Cluster API does, in place of an earlier one."""
        secret = {"data": {"value": Base64.encode_bytes(content)}}
        meta = {"name": f"{name}-kubeconfig", "namespace": self.namespace}
        raw = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, **secret}
        self.admin.apply(SECRETS, raw)

    def chart(self, name: str = "note", **spec: Any) -> None:
        wanted = {"chart": "note", "namespace": self.namespace, **spec}
        self._create(CHARTS, name, spec=wanted)

    def release(self, name: str = "alone", target: str = "t", **spec: Any) -> Raw:
        own = {"target": target, "releaseName": name, "dependsOn": []}
        wanted = {"chart": "note", "namespace": self.namespace, **own, **spec}
        return self._create(RELEASES, name, spec=wanted, labels={TARGET_LABEL: target})

    def get(self, resource: Resource, name: str) -> Raw:
        return self.admin.get(resource, name, self.namespace)

    def is_gone(self, resource: Resource, name: str) -> bool:
        try:
            self.get(resource, name)
        except NotFound:
            return True
        return False

    def patch(self, resource: Resource, name: str, patch: Raw) -> None:
        self.admin.patch(resource, name, self.namespace, patch)

    def delete(self, resource: Resource, name: str) -> None:
        self.admin.delete(resource, name, self.namespace)

    def remove_cluster(self, name: str = "t") -> None:
        """Deletes a Target whatever guards it."""
        self.patch(TARGETS, name, {"metadata": {"finalizers": None}})
        self.delete(TARGETS, name)

    def force(self, resource: Resource, name: str) -> None:
        self.patch(resource, name, {"metadata": {"annotations": {FORCE_DELETION: "true"}}})

    def finalizers(self, resource: Resource, name: str) -> list[str]:
        return self.get(resource, name)["metadata"].get("finalizers") or []

    def condition(self, resource: Resource, name: str, type: str = "Ready") -> tuple[str, str, str]:
        conditions = (self.get(resource, name).get("status") or {}).get("conditions") or []
        found: Raw = next((item for item in conditions if item["type"] == type), {})
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    def is_ready(self, resource: Resource, name: str) -> bool:
        obj = self.get(resource, name)
        current = (obj.get("status") or {}).get("observedGeneration")
        generation = obj["metadata"]["generation"]
        return self.condition(resource, name)[0] == "True" and current == generation

    def says(self, resource: Resource, name: str, *words: str) -> bool:
        """Whether the condition explains in these words that the object is not ready."""
        status, reason, message = self.condition(resource, name)
        return status == "False" and all(word in f"{reason}: {message}" for word in words)

    def events(self, reason: str) -> list[Raw]:
        return [obj for obj in self.admin.list(EVENTS, self.namespace) if obj["reason"] == reason]

    def orphans(self) -> list[tuple[str, str]]:
        found = self.admin.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={self.namespace}")
        return [(obj["spec"]["resourceType"], obj["spec"]["id"]) for obj in found]

    def _create(self, resource: Resource, name: str, **parts: Any) -> Raw:
        labels = parts.pop("labels", {})
        meta = {"name": name, "namespace": self.namespace, "labels": labels}
        kind = KINDS[resource]
        raw = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, **parts}
        return self.admin.create(resource, raw)


def with_user(kubeconfig: bytes, **user: Any) -> bytes:
    """The kubeconfig with another user in it."""
    config = json.loads(kubeconfig)
    config["users"][0]["user"] = user
    return json.dumps(config).encode()


def with_cluster(kubeconfig: bytes, **cluster: Any) -> bytes:
    """The kubeconfig with these fields of its cluster changed."""
    config = json.loads(kubeconfig)
    config["clusters"][0]["cluster"] |= cluster
    return json.dumps(config).encode()
