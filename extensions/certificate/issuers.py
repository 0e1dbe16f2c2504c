"""Issuer, a kind of a third party's, and a stand-in for the controller that serves it.

The third party's controller would do what `IssuerController` does here: hold each Issuer by its
finalizer until it has closed the account at the certificate authority. A rehearsal leaves it
switched off; then only a force deletion gets an Issuer off the seed.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import attrs

from actuator import Actuator, Cluster, Context, Kind, Object, Resource
from actuator.interface import resource_of
from actuator.meta import ClusterNeed, Column, DefaultStatus, ForceSource, Raw, Schema


@attrs.frozen(kw_only=True)
class IssuerSpec:
    """The certificate authority's `server`, a URL, and whom it may write to."""

    server: Annotated[str, Schema(required=True, min_length=1)] = ""
    email: str = ""
    extra: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class Issuer(Object):
    """An account at a certificate authority."""

    KIND: ClassVar[Kind] = Kind(
        name="Issuer",
        plural="issuers",
        group="certificates.example.org",
        finalizer="certificates.example.org/issuer",
        cluster=ClusterNeed.NEVER,
        force_from=ForceSource.NONE,
        skips_failed_shoot=False,
        migratable=False,
        has_operation_annotation=False,
        columns=(
            Column("Server", ".spec.server"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    )

    spec: Annotated[IssuerSpec, Schema(required=True)] = attrs.field(factory=IssuerSpec)
    status: DefaultStatus = attrs.field(factory=DefaultStatus)


ISSUERS: Resource = resource_of(Issuer.KIND)


class IssuerController(Actuator[Issuer]):
    """Has no account to open: what matters is the finalizer, which the framework sets and takes."""

    def reconcile(self, ctx: Context, obj: Issuer, cluster: Cluster, /) -> None:
        """Afterwards the account is open."""
        ctx.event("Registered", f"An account at {obj.spec.server} is open")

    def delete(self, ctx: Context, obj: Issuer, cluster: Cluster, /) -> None:
        """Afterwards the account is closed."""
        ctx.event("Deregistered", f"The account at {obj.spec.server} is closed")
