"""Issuer, a kind of another vendor, and a stand-in for the controller that reconciles it.

Like the vendor's controller, `IssuerController` keeps each Issuer by its finalizer until it has
closed the account at the certificate authority. A rehearsal does not run it; then only a force
deletion removes an Issuer from the seed.
"""

from typing import Annotated

import attrs

from actuator import (
    Actuator,
    Cluster,
    Context,
    DefaultStatus,
    ForceSource,
    KeepsUnknownFields,
    Object,
    Schema,
    own_kind,
)


@attrs.frozen(kw_only=True)
class IssuerSpec(KeepsUnknownFields):
    """The certificate authority's `server`, a URL, and an address for its messages."""

    server: Annotated[str, Schema(required=True, min_length=1)] = ""
    email: str = ""


@attrs.define(kw_only=True)
class Issuer(Object):
    """An account at a certificate authority."""

    KIND = own_kind("Issuer", "certificates.example.org", force_from=ForceSource.NONE, ready=None)

    spec: Annotated[IssuerSpec, Schema(required=True)] = attrs.field(factory=IssuerSpec)
    status: DefaultStatus = attrs.field(factory=DefaultStatus)


class IssuerController(Actuator[Issuer]):
    """Opens no account: only the finalizer matters, which the framework adds and removes."""

    def reconcile(self, ctx: Context, obj: Issuer, cluster: Cluster, /) -> None:
        """Report that the account is open."""
        ctx.event("Registered", f"An account at {obj.spec.server} is open")

    def delete(self, ctx: Context, obj: Issuer, cluster: Cluster, /) -> None:
        """Report that the account is closed."""
        ctx.event("Deregistered", f"The account at {obj.spec.server} is closed")
