"""Cluster: what a seed knows of a shoot, and the questions that extensions ask of it.

`Cluster` is the resource as the API server hands it out (Gardener documentation, "Cluster
resource"); its cloudProfile, seed and shoot are core.gardener.cloud objects that we never
decode whole. `Verdict` is what the framework keeps of a Cluster in memory. How Clusters are
watched is not here.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, ClassVar

import attrs

from actuator.meta import ClusterNeed, Column, ForceSource, Kind, Object, Raw, Schema

__all__ = ["FORCE_DELETION", "Cluster", "ClusterSpec", "ClusterState", "Verdict", "parse_bool"]

FORCE_DELETION = "confirmation.gardener.cloud/force-deletion"
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def parse_bool(text: str) -> bool | None:
    """True, False, or None where Go's strconv.ParseBool reports an error."""
    if text in _TRUE:
        return True
    return False if text in _FALSE else None


def _at(data: object, *path: str) -> Any:
    """What stands at `path`, or None where the way there ends early."""
    for step in path:
        if not isinstance(data, dict):
            return None
        data = data.get(step)
    return data


def _object_at(data: object, *path: str) -> Raw:
    found = _at(data, *path)
    return found if isinstance(found, dict) else {}


def _strings(found: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(item for item in found if isinstance(item, str) and item))


class ClusterState(StrEnum):
    """Why a Cluster can, or cannot, be asked anything."""

    OK = "ok"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    WITHOUT_SHOOT = "without-shoot"
    NOT_NEEDED = "not-needed"


@attrs.frozen
class Verdict:
    """The answers of a Cluster that decide what is called; kept in memory beside its bytes."""

    state: ClusterState = ClusterState.MISSING
    forced: bool = False
    failed: bool = False
    bad_force_value: str | None = None
    """The force-deletion annotation as written, where it does not parse as a boolean."""


@attrs.frozen(kw_only=True)
class ClusterSpec:
    """Three embedded objects, whatever they are: `Any`, since broken ones must be readable."""

    cloud_profile: Annotated[Any, Schema(type="object", required=True)] = None
    seed: Annotated[Any, Schema(type="object")] = None
    shoot: Annotated[Any, Schema(type="object", required=True)] = None
    extra: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class Cluster(Object):
    """extensions.gardener.cloud/v1alpha1 Cluster, cluster-scoped, named like the shoot namespace.

    An actuator always gets one. Where there is none (kinds that live outside shoots, a Cluster
    that is gone) it is empty: `exists` is False and every question has its harmless answer.
    """

    KIND: ClassVar[Kind] = Kind(
        name="Cluster",
        plural="clusters",
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
        """Whether this came from the API server."""
        return bool(self.metadata.uid)

    @property
    def shoot(self) -> Raw:
        """The Shoot; empty when there is none."""
        return _object_at(self.spec.shoot)

    @property
    def seed(self) -> Raw:
        """The Seed; empty when there is none (self-hosted shoots)."""
        return _object_at(self.spec.seed)

    @property
    def cloud_profile(self) -> Raw:
        """The CloudProfile; empty when there is none."""
        return _object_at(self.spec.cloud_profile)

    @property
    def force_value(self) -> str | None:
        """The force-deletion annotation of the shoot as written, or None."""
        value = _at(self.shoot, "metadata", "annotations", FORCE_DELETION)
        return value if isinstance(value, str) else None

    @property
    def needs_force_deletion(self) -> bool:
        """Whether the shoot's force-deletion annotation parses as true."""
        value = self.force_value
        return value is not None and parse_bool(value) is True

    @property
    def is_failed(self) -> bool:
        """Whether the shoot's last operation ended as Failed."""
        return bool(_at(self.shoot, "status", "lastOperation", "state") == "Failed")

    @property
    def is_deleting(self) -> bool:
        """Whether the shoot has a deletionTimestamp."""
        return _at(self.shoot, "metadata", "deletionTimestamp") is not None

    @property
    def is_migrating(self) -> bool:
        """Whether the shoot's last operation is its migration to another seed."""
        return bool(_at(self.shoot, "status", "lastOperation", "type") == "Migrate")

    @property
    def hibernation_enabled(self) -> bool:
        """Whether the shoot is to be hibernated."""
        return _at(self.shoot, "spec", "hibernation", "enabled") is True

    @property
    def is_hibernated(self) -> bool:
        """Whether the shoot is to be hibernated and already is."""
        return self.hibernation_enabled and self._status_hibernated

    @property
    def is_hibernating_or_waking_up(self) -> bool:
        """Whether the shoot's hibernation is wanted otherwise than it is."""
        return self.hibernation_enabled != self._status_hibernated

    @property
    def _status_hibernated(self) -> bool:
        return _at(self.shoot, "status", "isHibernated") is True

    @property
    def is_being_created(self) -> bool:
        """Whether the shoot was never reconciled after its creation."""
        operation = _object_at(self.shoot, "status", "lastOperation")
        return not operation or operation.get("type") == "Create"

    @property
    def technical_id(self) -> str:
        """The shoot's technical ID, else the Cluster's name, which equals it."""
        value = _at(self.shoot, "status", "technicalID")
        return value if isinstance(value, str) and value else self.metadata.name

    @property
    def shoot_key(self) -> str:
        """The shoot's `namespace/name` in the garden, else the Cluster's name."""
        meta = _object_at(self.shoot, "metadata")
        name, namespace = meta.get("name"), meta.get("namespace")
        return f"{namespace}/{name}" if name and namespace else self.metadata.name

    @property
    def region(self) -> str:
        """The shoot's region, or ""."""
        value = _at(self.shoot, "spec", "region")
        return value if isinstance(value, str) else ""

    @property
    def kubernetes_version(self) -> str:
        """The shoot's Kubernetes version, or ""."""
        value = _at(self.shoot, "spec", "kubernetes", "version")
        return value if isinstance(value, str) else ""

    @property
    def seed_kubernetes_version(self) -> str:
        """The seed's Kubernetes version, or ""."""
        value = _at(self.seed, "status", "kubernetesVersion")
        return value if isinstance(value, str) else ""

    @property
    def pod_cidrs(self) -> list[str]:
        """The shoot's pod networks: the one of the spec, then others of the status."""
        return self._cidrs("pods")

    @property
    def service_cidrs(self) -> list[str]:
        """The shoot's service networks: the one of the spec, then others of the status."""
        return self._cidrs("services")

    def _cidrs(self, name: str) -> list[str]:
        actual = _at(self.shoot, "status", "networking", name)
        wanted = _at(self.shoot, "spec", "networking", name)
        return _strings([wanted, *(actual if isinstance(actual, list) else [])])

    @property
    def has_unmanaged_dns(self) -> bool:
        """Whether Gardener manages no DNS for the shoot."""
        dns = _object_at(self.shoot, "spec", "dns")
        providers = dns.get("providers")
        first = providers[0] if isinstance(providers, list) and providers else None
        return not dns or (not dns.get("domain") and _at(first, "type") == "unmanaged")

    def replicas(self, wanted: int) -> int:
        """`wanted`, or 0 where the shoot is to be hibernated."""
        return 0 if self.hibernation_enabled else wanted

    def control_plane_replicas(self, wanted: int, *, scaled_down: bool) -> int:
        """`wanted`, or 0 where a hibernated, not deleting shoot's control plane is scaled down."""
        asleep = not self.is_deleting and self.hibernation_enabled and scaled_down
        return 0 if asleep else wanted

    def verdict(self) -> Verdict:
        """The answers that decide what is called."""
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
