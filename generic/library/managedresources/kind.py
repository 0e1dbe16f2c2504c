"""ManagedResource as a class, and the constants that its users and its manager share."""

from typing import Annotated, ClassVar

import attrs

from actuator.interface import resource_of
from actuator.meta import Column, Condition, KeepsUnknownFields, Kind, Object, Schema
from actuator.v1alpha1 import ObjectReference

SEED_CLASS = "seed"
"""The class for the seed's resource manager; the shoot's serves those without a class."""

SHOOT_FINALIZER = "resources.gardener.cloud/gardener-resource-manager"
NO_CLEANUP = "shoot.gardener.cloud/no-cleanup"
"""Label of objects in the shoot that gardenlet's cleanup skips, since their owner removes them."""

ORIGIN = "origin"
"""Label with the owner of a ManagedResource; "gardener" is Gardener's own."""


@attrs.frozen(kw_only=True)
class SecretName(KeepsUnknownFields):
    """corev1.LocalObjectReference: a Secret in the ManagedResource's namespace."""

    name: Annotated[str, Schema(default="")] = ""


@attrs.frozen(kw_only=True)
class GroupKind(KeepsUnknownFields):
    """metav1.GroupKind."""

    group: Annotated[str, Schema(required=True)] = ""
    kind: Annotated[str, Schema(required=True)] = ""


@attrs.frozen(kw_only=True)
class ManagedResourceSpec(KeepsUnknownFields):
    """Where the manifests are, and how they are applied."""

    class_: str | None = attrs.field(default=None, metadata={"wire": "class"})
    secret_refs: Annotated[list[SecretName], Schema(required=True)] = attrs.field(factory=list)
    inject_labels: dict[str, str] = attrs.field(factory=dict)
    force_overwrite_labels: bool | None = None
    force_overwrite_annotations: bool | None = None
    keep_objects: bool | None = None
    equivalences: list[list[GroupKind]] = attrs.field(factory=list)
    delete_persistent_volume_claims: bool | None = None


@attrs.frozen(kw_only=True)
class ManagedObject(ObjectReference):
    """Something that was applied."""

    labels: dict[str, str] = attrs.field(factory=dict)
    annotations: dict[str, str] = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class ManagedResourceStatus(KeepsUnknownFields):
    """The status that gardener-resource-manager writes."""

    conditions: list[Condition] = attrs.field(factory=list)
    observed_generation: Annotated[int | None, Schema(format="int64")] = None
    resources: list[ManagedObject] = attrs.field(factory=list)
    secrets_data_checksum: str | None = None


def _condition_column(name: str, type: str) -> Column:
    return Column(name, f'.status.conditions[?(@.type=="{type}")].status')


@attrs.define(kw_only=True)
class ManagedResource(Object):
    """Manifests for gardener-resource-manager."""

    KIND: ClassVar[Kind] = Kind(
        name="ManagedResource",
        group="resources.gardener.cloud",
        short_names=("mr",),
        finalizer="",
        columns=(
            Column("Class", ".spec.class"),
            _condition_column("Applied", "ResourcesApplied"),
            _condition_column("Healthy", "ResourcesHealthy"),
            _condition_column("Progressing", "ResourcesProgressing"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    )

    spec: Annotated[ManagedResourceSpec, Schema()] = attrs.field(factory=ManagedResourceSpec)
    status: ManagedResourceStatus = attrs.field(factory=ManagedResourceStatus)


MANAGED_RESOURCES = resource_of(ManagedResource.KIND)
HEALTH = ("ResourcesApplied", "ResourcesHealthy")
"""The conditions that a healthy ManagedResource has."""


def is_healthy(managed: ManagedResource) -> bool:
    """Whether everything is applied in its current state, and is healthy."""
    said = {condition.type: condition.status for condition in managed.status.conditions}
    return managed.status.observed_generation == managed.metadata.generation and all(
        said.get(type) == "True" for type in HEALTH
    )
