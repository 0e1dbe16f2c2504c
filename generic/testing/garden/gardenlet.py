"""Garden: the single steps of the simulated gardenlet in one seed.

Flows consist of these steps (`flows`), and drills run them for many shoots at a time. It works
with administrator rights and changes only objects that it created.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import attrs

from actuator.cluster import FORCE_DELETION, Cluster
from actuator.errors import AlreadyExists, NotFound
from actuator.interface import Client, Resource, resource_of
from actuator.meta import ForceSource, Kind, Raw, format_time, plural_of
from generic.controller.predicates import OPERATION, TIMESTAMP
from generic.kube.clock import SystemClock
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.kube.deleting import CONFIRM_DELETION
from generic.library.lookup import find_all
from generic.library.manifests import manifest, manifest_of, merged
from generic.library.webhooks.targets import NETWORK_PROVIDER, of_provider, with_extension
from generic.testing.garden.order import HANDED_ON, ON_REQUEST, UNCONFIRMED
from generic.testing.garden.readiness import not_ready_because

SHOOT = "shoot.gardener.cloud/technical-id"
"""Our own label: the technical ID of the shoot of an object outside a shoot namespace."""
_CORE = "core.gardener.cloud/v1beta1"
_OWN = {"metadata": {"name", "namespace"}, "status": {"technicalID", "lastOperation"}}


@attrs.frozen(kw_only=True)
class SeedShoot:
    """A shoot as a seed sees it. `technical_id` names its namespace and its Cluster."""

    technical_id: str
    name: str
    project: str
    region: str
    labels: dict[str, str] = attrs.field(factory=dict)
    documents: Raw = attrs.field(factory=dict)
    """Fields of the Cluster's spec: cloudProfile, seed, shoot; its name and state are kept."""

    def namespace(self) -> Raw:
        """Return the manifest of the namespace."""
        labels = {**self.labels, "gardener.cloud/role": "shoot"}
        return manifest("v1", "Namespace", self.technical_id, labels=labels)

    def cluster(self, type: str = "Create") -> Raw:
        """Return the Cluster manifest, with a shoot whose operation of this type has begun."""
        operation = {"type": type, "state": "Processing"}
        shoot = manifest(
            _CORE,
            "Shoot",
            self.name,
            f"garden-{self.project}",
            spec={"region": self.region, "kubernetes": {"version": "1.36.3"}},
            status={"technicalID": self.technical_id, "lastOperation": operation},
        )
        spec: Raw = {
            "cloudProfile": {"apiVersion": _CORE, "kind": "CloudProfile"},
            "seed": {"apiVersion": _CORE, "kind": "Seed"},
            "shoot": shoot,
        }
        spec = merged(spec, self._documents())
        return manifest_of(Cluster, self.technical_id, labels=self.labels, spec=spec)

    def document(self, client: Client) -> None:
        """Merge the documents into the existing Cluster."""
        if self.documents:
            client.patch(CLUSTERS, self.technical_id, "", {"spec": self._documents()})

    def _documents(self) -> Raw:
        """Return the documents, without the name and the state of a shoot."""
        shoot = dict(self.documents.get("shoot", {}))
        for part, own in _OWN.items():
            if part in shoot:
                shoot[part] = {key: shoot[part][key] for key in shoot[part].keys() - own}
        return {**self.documents, "shoot": shoot}


class Garden:
    """gardenlet's steps for the shoots of one seed."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._clock = SystemClock()

    def create_namespace(self, shoot: SeedShoot) -> None:
        """Create the shoot's Cluster, then its namespace. Raises AlreadyExists."""
        self.client.create(CLUSTERS, shoot.cluster())
        self.client.create(NAMESPACES, shoot.namespace())

    def sync(self, shoot: SeedShoot, type: str, state: str = "Processing", **changes: Raw) -> None:
        """Write the shoot into the Cluster, as gardenlet does before it acts and when it failed.

        `type`, `state`: the shoot's last operation; type "": unchanged. `changes` are merged into
        the shoot's metadata, spec and status. A deleted Cluster is ignored.
        """
        operation = {"type": type, "state": state} if type else {"state": state}
        status = {**changes.get("status", {}), "lastOperation": operation}
        patch = {"spec": {"shoot": {**changes, "status": status}}}
        with suppress(NotFound):
            self.client.patch(CLUSTERS, shoot.technical_id, "", patch)

    def deploy(
        self,
        manifest: Raw,
        operation: str = "reconcile",
        resting: Collection[str] = ON_REQUEST,
    ) -> Raw:
        """Create an object and return it, an extension object with the operation annotation.

        Fills in the other kind's providerStatus if needed. An existing object gets annotation and
        spec, but no reconcile request if it is ready and unchanged, and of a `resting` kind.
        """
        resource = resource_of_manifest(manifest)
        if resource.group == Cluster.KIND.group:
            annotations = manifest["metadata"].get("annotations") or {}
            meta = {
                **manifest["metadata"],
                "annotations": {**annotations, **self._request(operation)},
            }
            manifest = {**self.complete(manifest), "metadata": meta}
        try:
            return self.client.create(resource, manifest)
        except AlreadyExists:
            rests = operation == "reconcile" and manifest["kind"] in resting
            return self._ask_again(resource, manifest, rests)

    def _ask_again(self, resource: Resource, manifest: Raw, rests: bool) -> Raw:
        meta = manifest["metadata"]
        where = (resource, meta["name"], meta.get("namespace", ""))
        found = self.client.get(*where)
        unchanged = manifest.get("spec", {}).items() <= found.get("spec", {}).items()
        ready = unchanged and not_ready_because(found) is None
        if resource.group != Cluster.KIND.group or (rests and ready):
            return found
        before = found.get("spec", {})
        spec = {
            name: _replaced(before.get(name), value) for name, value in manifest["spec"].items()
        }
        patch = {"metadata": {"annotations": meta["annotations"]}, "spec": spec}
        return self.client.patch(*where, patch)

    def complete(self, manifest: Raw) -> Raw:
        """Return the manifest with the providerStatus that gardenlet copies into its spec."""
        handed_on = self._handed_on(manifest)
        return {**manifest, "spec": {**manifest["spec"], **handed_on}} if handed_on else manifest

    def ask(self, kind: Kind, namespace: str, name: str, operation: str) -> None:
        """Request an operation: reconcile, migrate or restore."""
        patch = {"metadata": {"annotations": self._request(operation)}}
        self.client.patch(resource_of(kind), name, namespace, patch)

    def delete(self, kind: Kind, namespace: str, name: str, *, force: bool = False) -> None:
        """Confirm and request the deletion of an extension object; NotFound is ignored.

        `force`: the user confirmed a force deletion. Kinds that carry the annotation themselves,
        like Bastion, get it; the others read it from the Cluster.
        """
        annotations: dict[str, str] = {}
        if kind.name not in UNCONFIRMED:
            annotations = {CONFIRM_DELETION: "true", TIMESTAMP: self._timestamp()}
        if force and kind.force_from in (ForceSource.OBJECT, ForceSource.OBJECT_LITERAL):
            annotations[FORCE_DELETION] = "true"
        resource = resource_of(kind)
        with suppress(NotFound):
            if annotations:
                patch = {"metadata": {"annotations": annotations}}
                self.client.patch(resource, name, namespace, patch)
            self.client.delete(resource, name, namespace)

    def objects(self, kind: Kind, shoot: SeedShoot) -> list[Raw]:
        """Return the shoot's objects of a kind; cluster-scoped ones are found by their label.

        A kind without a CRD in the seed has no objects.
        """
        resource = resource_of(kind)
        if kind.namespaced:
            return find_all(self.client, resource, shoot.technical_id)
        return find_all(self.client, resource, label_selector=f"{SHOOT}={shoot.technical_id}")

    def mark_deleted(self, shoot: SeedShoot, annotations: Mapping[str, str] = {}) -> None:
        """Write a deletionTimestamp and these annotations into the shoot."""
        now = format_time(self._clock.now())
        meta: Raw = {"deletionTimestamp": now, "annotations": dict(annotations)}
        self.sync(shoot, "Delete", metadata=meta)

    def force(self, shoot: SeedShoot, value: str = "true") -> None:
        """Confirm force deletion as the user does; gardenlet syncs the Cluster again."""
        self.mark_deleted(shoot, {FORCE_DELETION: value})

    def finish(self, shoot: SeedShoot, of: Sequence[Resource] = (CLUSTERS, NAMESPACES)) -> None:
        """Delete the Cluster, then the namespace: the last steps of a force deletion."""
        for resource in of:
            with suppress(NotFound):
                self.client.delete(resource, shoot.technical_id)

    def _handed_on(self, manifest: Raw) -> Raw:
        """Return the copied providerStatus by field; empty if the other object has none."""
        giver, field = HANDED_ON.get(manifest["kind"], ("", ""))
        if not giver or field in manifest["spec"]:
            return {}
        namespace = manifest["metadata"].get("namespace", "")
        resource = Resource(manifest["apiVersion"], f"{giver.lower()}s", namespaced=bool(namespace))
        name = manifest["spec"].get("bucketName")
        with suppress(NotFound):  # the seed has no such kind, or no such bucket
            one = [] if name is None else [self.client.get(resource, name, namespace)]
            for obj in one or self.client.list(resource, namespace):
                status = (obj.get("status") or {}).get("providerStatus")
                if status is not None:
                    return {field: status}
        return {}

    def _request(self, operation: str) -> dict[str, str]:
        return {OPERATION: operation, TIMESTAMP: self._timestamp()}

    def _timestamp(self) -> str:
        return self._clock.now().isoformat().replace("+00:00", "Z")


def _replaced(before: Any, after: Any) -> Any:
    """Return `after` as a merge patch of `before`: null for each field that is no longer there."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return after
    return dict.fromkeys(before.keys() - after.keys()) | {
        name: _replaced(before.get(name), value) for name, value in after.items()
    }


def namespace_labels(manifests: Iterable[Raw]) -> dict[str, str]:
    """Return the labels by which webhooks select the namespace of a shoot with these objects."""
    found: dict[str, str] = {}
    for obj in manifests:
        type = obj.get("spec", {}).get("type", "")
        match obj["kind"]:
            case "Infrastructure" | "ControlPlane" | "Worker":
                found |= of_provider(type)
            case "Network":
                found[NETWORK_PROVIDER] = type
            case "Extension":
                found |= with_extension(type)
    return found


def create_missing(client: Client, *manifests: Raw) -> None:
    """Create those of the objects that do not exist. Raises ApiError."""
    for item in manifests:
        with suppress(AlreadyExists):
            client.create(resource_of_manifest(item), item)


def resource_of_manifest(manifest: Raw) -> Resource:
    """Return the resource of a manifest, with the plural that Kubernetes' naming implies."""
    plural = plural_of(manifest["kind"])
    return Resource(
        manifest["apiVersion"], plural, namespaced=bool(manifest["metadata"].get("namespace"))
    )
