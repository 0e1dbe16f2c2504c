"""Cluster: a seed's copy of a shoot, its Seed and its CloudProfile, and queries on them.

`Cluster` is the resource as the API server returns it (Gardener documentation, "Cluster resource").
Its cloudProfile, seed and shoot are core.gardener.cloud objects that are never decoded whole.
`Verdict` is the part of a Cluster that the framework keeps in memory. Watching Clusters does not
belong here.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, ClassVar

import attrs

from actuator.meta import (
    ClusterNeed,
    Column,
    ForceSource,
    KeepsUnknownFields,
    Kind,
    Object,
    Raw,
    Schema,
    value_at,
)

FORCE_DELETION = "confirmation.gardener.cloud/force-deletion"
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def parse_bool(text: str) -> bool | None:
    """Return True or False, or None if Go's strconv.ParseBool reports an error."""
    if text in _TRUE:
        return True
    return False if text in _FALSE else None


def _object_at(data: object, *path: str) -> Raw:
    found = value_at(data, *path)
    return found if isinstance(found, dict) else {}


def _strings(found: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(item for item in found if isinstance(item, str) and item))


class ClusterState(StrEnum):
    """Whether a Cluster can be evaluated; if not, the reason."""

    OK = "ok"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    WITHOUT_SHOOT = "without-shoot"
    NOT_NEEDED = "not-needed"


@attrs.frozen
class Verdict:
    """The properties of a Cluster that decide which method runs; kept beside its bytes."""

    state: ClusterState = ClusterState.MISSING
    forced: bool = False
    failed: bool = False
    bad_force_value: str | None = None
    """The force-deletion annotation as written, if it does not parse as a boolean."""


@attrs.frozen(kw_only=True)
class ClusterSpec(KeepsUnknownFields):
    """Three embedded objects, typed `Any` so that malformed ones can still be decoded."""

    cloud_profile: Annotated[Any, Schema(type="object", required=True)] = None
    seed: Annotated[Any, Schema(type="object")] = None
    shoot: Annotated[Any, Schema(type="object", required=True)] = None


@attrs.define(kw_only=True)
class Cluster(Object):
    """extensions.gardener.cloud/v1alpha1 Cluster, cluster-scoped, named like the shoot namespace.

    An actuator always receives a Cluster. If there is none (kinds outside shoots, a deleted
    Cluster), it receives an empty one: `exists` is False and every property has a harmless value.
    """

    KIND: ClassVar[Kind] = Kind(
        name="Cluster",
        columns=(Column("Age", ".metadata.creationTimestamp", "date"),),
        finalizer="",
        namespaced=False,
        cluster=ClusterNeed.NEVER,
        force_from=ForceSource.NONE,
        migratable=False,
    )

    spec: ClusterSpec = attrs.field(factory=ClusterSpec)

    @property
    def exists(self) -> bool:
        """Whether this object was read from the API server."""
        return bool(self.metadata.uid)

    @property
    def shoot(self) -> Raw:
        """The Shoot; empty if there is none."""
        return _object_at(self.spec.shoot)

    @property
    def seed(self) -> Raw:
        """The Seed; empty if there is none (self-hosted shoots)."""
        return _object_at(self.spec.seed)

    @property
    def cloud_profile(self) -> Raw:
        """The CloudProfile; empty if there is none."""
        return _object_at(self.spec.cloud_profile)

    @property
    def provider_profile(self) -> Raw:
        """The providerConfig of the CloudProfile, of the provider's own type; or empty."""
        return _object_at(self.cloud_profile, "spec", "providerConfig")

    @property
    def force_value(self) -> str | None:
        """The force-deletion annotation of the shoot as written, or None."""
        value = value_at(self.shoot, "metadata", "annotations", FORCE_DELETION)
        return value if isinstance(value, str) else None

    @property
    def needs_force_deletion(self) -> bool:
        """Whether the shoot's force-deletion annotation parses as true."""
        value = self.force_value
        return value is not None and parse_bool(value) is True

    @property
    def is_failed(self) -> bool:
        """Whether the state of the shoot's last operation is Failed."""
        return bool(value_at(self.shoot, "status", "lastOperation", "state") == "Failed")

    @property
    def is_deleting(self) -> bool:
        """Whether the shoot has a deletionTimestamp."""
        return value_at(self.shoot, "metadata", "deletionTimestamp") is not None

    @property
    def is_migrating(self) -> bool:
        """Whether the shoot's last operation is its migration to another seed."""
        return bool(value_at(self.shoot, "status", "lastOperation", "type") == "Migrate")

    @property
    def hibernation_enabled(self) -> bool:
        """Whether the shoot's spec enables hibernation."""
        return value_at(self.shoot, "spec", "hibernation", "enabled") is True

    @property
    def is_hibernated(self) -> bool:
        """Whether the shoot's spec enables hibernation and its status reports it."""
        return self.hibernation_enabled and self._status_hibernated

    @property
    def is_hibernating_or_waking_up(self) -> bool:
        """Whether the shoot's spec and status differ about hibernation."""
        return self.hibernation_enabled != self._status_hibernated

    @property
    def _status_hibernated(self) -> bool:
        return value_at(self.shoot, "status", "hibernated") is True

    @property
    def is_being_created(self) -> bool:
        """Whether the shoot has no last operation, or its type is Create."""
        operation = _object_at(self.shoot, "status", "lastOperation")
        return not operation or operation.get("type") == "Create"

    @property
    def is_self_hosted(self) -> bool:
        """Whether a worker pool of the shoot runs its control plane (`controlPlane` is set)."""
        workers = value_at(self.shoot, "spec", "provider", "workers")
        pools = workers if isinstance(workers, list) else []
        return any(value_at(pool, "controlPlane") is not None for pool in pools)

    @property
    def technical_id(self) -> str:
        """The shoot's technical ID, or the Cluster's name, which is equal to it."""
        value = value_at(self.shoot, "status", "technicalID")
        return value if isinstance(value, str) and value else self.metadata.name

    @property
    def shoot_key(self) -> str:
        """The shoot's `namespace/name` in the garden cluster, or the Cluster's name."""
        meta = _object_at(self.shoot, "metadata")
        name = meta.get("name")
        namespace = meta.get("namespace")
        return f"{namespace}/{name}" if name and namespace else self.metadata.name

    @property
    def region(self) -> str:
        """The shoot's region, or ""."""
        value = value_at(self.shoot, "spec", "region")
        return value if isinstance(value, str) else ""

    @property
    def kubernetes_version(self) -> str:
        """The shoot's Kubernetes version, or ""."""
        value = value_at(self.shoot, "spec", "kubernetes", "version")
        return value if isinstance(value, str) else ""

    @property
    def seed_kubernetes_version(self) -> str:
        """The seed's Kubernetes version, or ""."""
        value = value_at(self.seed, "status", "kubernetesVersion")
        return value if isinstance(value, str) else ""

    @property
    def pod_cidrs(self) -> list[str]:
        """The shoot's pod networks: first the one in the spec, then others in the status."""
        return self._cidrs("pods")

    @property
    def service_cidrs(self) -> list[str]:
        """The shoot's service networks: first the one in the spec, then others in the status."""
        return self._cidrs("services")

    def _cidrs(self, name: str) -> list[str]:
        actual = value_at(self.shoot, "status", "networking", name)
        wanted = value_at(self.shoot, "spec", "networking", name)
        return _strings([wanted, *(actual if isinstance(actual, list) else [])])

    @property
    def has_unmanaged_dns(self) -> bool:
        """Whether Gardener manages no DNS for the shoot."""
        dns = _object_at(self.shoot, "spec", "dns")
        providers = dns.get("providers")
        first = providers[0] if isinstance(providers, list) and providers else None
        return not dns or (not dns.get("domain") and value_at(first, "type") == "unmanaged")

    def replicas(self, wanted: int) -> int:
        """Return `wanted`, or 0 if the shoot's spec enables hibernation."""
        return 0 if self.hibernation_enabled else wanted

    def control_plane_replicas(self, wanted: int, *, scaled_down: bool) -> int:
        """Return `wanted`, or 0 for a scaled-down, hibernated, not deleting shoot."""
        asleep = not self.is_deleting and self.hibernation_enabled and scaled_down
        return 0 if asleep else wanted

    def verdict(self) -> Verdict:
        """Return the properties that decide which method runs."""
        if not self.exists:
            return Verdict(ClusterState.MISSING)
        if not isinstance(self.spec.shoot, dict):
            absent = self.spec.shoot is None
            return Verdict(ClusterState.WITHOUT_SHOOT if absent else ClusterState.UNREADABLE)
        value = self.force_value
        unparsed = value is not None and parse_bool(value) is None
        return Verdict(
            ClusterState.OK,
            forced=self.needs_force_deletion,
            failed=self.is_failed,
            bad_force_value=value if unparsed else None,
        )
