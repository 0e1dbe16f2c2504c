"""Mount, a kind of another vendor, and a stand-in for the controller that reconciles it.

Like a storage vendor's controller, `MountController` keeps each Mount by its finalizer until the
share is no longer used. A rehearsal does not run it, like an operator who uninstalls such a
controller too early; then only a force deletion removes a Mount from the seed.
"""

from typing import Annotated, ClassVar

import attrs

from actuator import (
    Actuator,
    Cluster,
    Column,
    Context,
    DefaultStatus,
    ForceSource,
    KeepsUnknownFields,
    Kind,
    Object,
    Resource,
    Schema,
    own_kind,
    resource_of,
)


@attrs.frozen(kw_only=True)
class MountSpec(KeepsUnknownFields):
    """The share in use; `secret_name` is the Secret with the password, "" for none."""

    share: Annotated[str, Schema(required=True, min_length=1)] = ""
    secret_name: str = ""


@attrs.define(kw_only=True)
class Mount(Object):
    """A share in use."""

    KIND: ClassVar[Kind] = own_kind(
        "Mount",
        "storage.example.org",
        Column("Share", ".spec.share"),
        force_from=ForceSource.NONE,
        ready=None,
    )

    spec: Annotated[MountSpec, Schema(required=True)] = attrs.field(factory=MountSpec)
    status: DefaultStatus = attrs.field(factory=DefaultStatus)


MOUNTS: Resource = resource_of(Mount.KIND)


class MountController(Actuator[Mount]):
    """Mounts nothing: only the finalizer matters, which the framework adds and removes."""

    def reconcile(self, ctx: Context, obj: Mount, cluster: Cluster, /) -> None:
        """Report that the share is mounted."""
        ctx.event("Mounted", f"Share {obj.spec.share} is mounted")

    def delete(self, ctx: Context, obj: Mount, cluster: Cluster, /) -> None:
        """Report that the share is unmounted."""
        ctx.event("Unmounted", f"Share {obj.spec.share} is unmounted")
