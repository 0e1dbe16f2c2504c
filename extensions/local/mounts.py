"""Mount, a kind of somebody else's, and a stand-in for the controller that serves it.

A storage vendor's controller would do what `MountController` does here: hold each Mount by its
finalizer until nothing uses the share any more. A rehearsal leaves it switched off, as an
operator does who uninstalls such a controller too early; then only a force deletion gets a Mount
off the seed.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import attrs

from actuator import Actuator, Cluster, Context, Kind, Object, Resource
from actuator.interface import resource_of
from actuator.meta import ClusterNeed, Column, DefaultStatus, ForceSource, Raw, Schema


@attrs.frozen(kw_only=True)
class MountSpec:
    """Which share is used; `secret_name` is the Secret with the password, "" for none."""

    share: Annotated[str, Schema(required=True, min_length=1)] = ""
    secret_name: str = ""
    extra: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class Mount(Object):
    """A share in use."""

    KIND: ClassVar[Kind] = Kind(
        name="Mount",
        plural="mounts",
        group="storage.example.org",
        finalizer="storage.example.org/mount",
        cluster=ClusterNeed.NEVER,
        force_from=ForceSource.NONE,
        skips_failed_shoot=False,
        migratable=False,
        has_operation_annotation=False,
        columns=(
            Column("Share", ".spec.share"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    )

    spec: Annotated[MountSpec, Schema(required=True)] = attrs.field(factory=MountSpec)
    status: DefaultStatus = attrs.field(factory=DefaultStatus)


MOUNTS: Resource = resource_of(Mount.KIND)


class MountController(Actuator[Mount]):
    """Has nothing to mount: what matters is the finalizer, which the framework sets and takes."""

    def reconcile(self, ctx: Context, obj: Mount, cluster: Cluster, /) -> None:
        """Afterwards the share is in use."""
        ctx.event("Mounted", f"Share {obj.spec.share} is mounted")

    def delete(self, ctx: Context, obj: Mount, cluster: Cluster, /) -> None:
        """Afterwards the share is not in use."""
        ctx.event("Unmounted", f"Share {obj.spec.share} is unmounted")
