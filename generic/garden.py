"""Garden: a small double of gardenlet, for drills and tests. It is not Gardener.

It plays the other side of the extension contract: creates the namespace, the Cluster and the
extension objects of a shoot, asks for operations, and deletes in gardenlet's order with its
annotations (Gardener documentation, "Extension contract", "Force Deletion"). It works on a seed
with administrator rights and touches only what it created.
"""

from __future__ import annotations

import attrs

from actuator.cluster import FORCE_DELETION, Cluster
from actuator.errors import NotFound
from actuator.interface import Client, Resource, resource_of
from actuator.meta import Kind, Raw, format_time, parse_time
from generic.clock import SystemClock
from generic.clusters import CLUSTERS
from generic.force_delete import CONFIRM_DELETION
from generic.patches import replace
from generic.predicates import OPERATION, TIMESTAMP

__all__ = ["NAMESPACES", "Garden", "Shoot", "not_ready_because"]

NAMESPACES = Resource("v1", "namespaces", namespaced=False)
_CORE = "core.gardener.cloud/v1beta1"


@attrs.frozen(kw_only=True)
class Shoot:
    """A shoot as far as a seed sees it. `technical_id` names its namespace and its Cluster."""

    technical_id: str
    name: str
    project: str
    region: str
    labels: dict[str, str] = attrs.field(factory=dict)

    def cluster(self, *, annotations: dict[str, str], deleted_at: str | None) -> Raw:
        """The Cluster manifest, with the shoot inside."""
        meta: Raw = {"name": self.name, "namespace": f"garden-{self.project}"}
        if annotations:
            meta["annotations"] = annotations
        if deleted_at is not None:
            meta["deletionTimestamp"] = deleted_at
        shoot = {
            "apiVersion": _CORE,
            "kind": "Shoot",
            "metadata": meta,
            "spec": {"region": self.region, "kubernetes": {"version": "1.36.3"}},
            "status": {
                "technicalID": self.technical_id,
                "lastOperation": {
                    "type": "Delete" if deleted_at else "Create",
                    "state": "Processing",
                },
            },
        }
        return {
            "apiVersion": Cluster.KIND.api_version,
            "kind": "Cluster",
            "metadata": {"name": self.technical_id, "labels": self.labels},
            "spec": {
                "cloudProfile": {"apiVersion": _CORE, "kind": "CloudProfile"},
                "seed": {"apiVersion": _CORE, "kind": "Seed"},
                "shoot": shoot,
            },
        }


def not_ready_because(obj: Raw) -> str | None:
    """Why gardenlet would not call the object ready yet; None when it would.

    Source: gardener `pkg/extensions/customresources.go` and `pkg/utils/kubernetes/health`.
    """
    meta, status = obj["metadata"], obj.get("status") or {}
    annotations = meta.get("annotations") or {}
    operation = status.get("lastOperation")
    if status.get("lastError"):
        return f"error: {status['lastError'].get('description')}"
    if status.get("observedGeneration") != meta.get("generation"):
        return "observed generation outdated"
    if OPERATION in annotations:
        return f"operation {annotations[OPERATION]!r} is not yet picked up"
    if not operation:
        return "no last operation yet"
    if operation.get("state") != "Succeeded":
        return f"last operation is {operation.get('state')}"
    if TIMESTAMP in annotations:
        asked = parse_time(annotations[TIMESTAMP]).replace(microsecond=0)
        if asked > parse_time(operation["lastUpdateTime"]):
            return "last operation is older than the request"
    return None


class Garden:
    """What gardenlet does for a shoot, in one seed."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._clock = SystemClock()

    def create_namespace(self, shoot: Shoot) -> None:
        """Creates the shoot's namespace and its Cluster. Raises AlreadyExists."""
        labels = {**shoot.labels, "gardener.cloud/role": "shoot"}
        namespace = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": shoot.technical_id, "labels": labels},
        }
        self._client.create(NAMESPACES, namespace)
        self._client.create(CLUSTERS, shoot.cluster(annotations={}, deleted_at=None))

    def deploy(self, manifest: Raw) -> Raw:
        """Creates an object and returns it; an extension object is asked to reconcile."""
        resource = resource_of_manifest(manifest)
        if resource.group == Cluster.KIND.group:
            annotations = manifest["metadata"].get("annotations") or {}
            meta = {
                **manifest["metadata"],
                "annotations": {**annotations, **self._request("reconcile")},
            }
            manifest = {**manifest, "metadata": meta}
        return self._client.create(resource, manifest)

    def ask(self, kind: Kind, namespace: str, name: str, operation: str) -> None:
        """Asks for an operation: reconcile, migrate or restore."""
        patch = {"metadata": {"annotations": self._request(operation)}}
        self._client.patch(resource_of(kind), name, namespace, patch)

    def delete(self, kind: Kind, namespace: str, name: str) -> None:
        """Confirms and asks for the deletion of an extension object; gone already is fine."""
        annotations = {CONFIRM_DELETION: "true", TIMESTAMP: self._timestamp()}
        resource = resource_of(kind)
        try:
            patch = {"metadata": {"annotations": annotations}}
            self._client.patch(resource, name, namespace, patch)
            self._client.delete(resource, name, namespace)
        except NotFound:
            pass

    def mark_deleted(self, shoot: Shoot) -> None:
        """The shoot has a deletionTimestamp from now on."""
        self._update_cluster(shoot, {})

    def force(self, shoot: Shoot, value: str = "true") -> None:
        """The user confirmed force deletion; gardenlet re-syncs the Cluster."""
        self._update_cluster(shoot, {FORCE_DELETION: value})

    def finish(self, shoot: Shoot) -> None:
        """The last steps of a deletion: the Cluster, then the namespace."""
        for resource in (CLUSTERS, NAMESPACES):
            try:
                self._client.delete(resource, shoot.technical_id)
            except NotFound:
                pass

    def _update_cluster(self, shoot: Shoot, annotations: dict[str, str]) -> None:
        now = format_time(self._clock.now())
        wanted = shoot.cluster(annotations=annotations, deleted_at=now)
        patch = [replace("/spec", wanted["spec"])]
        self._client.patch(CLUSTERS, shoot.technical_id, "", patch)

    def _request(self, operation: str) -> dict[str, str]:
        return {OPERATION: operation, TIMESTAMP: self._timestamp()}

    def _timestamp(self) -> str:
        return self._clock.now().isoformat().replace("+00:00", "Z")


def resource_of_manifest(manifest: Raw) -> Resource:
    """Where an object of a manifest lives, by the naming that the kinds of a seed follow."""
    kind = str(manifest["kind"])
    return Resource(
        manifest["apiVersion"],
        f"{kind.lower()}s",
        namespaced=bool(manifest["metadata"].get("namespace")),
    )
