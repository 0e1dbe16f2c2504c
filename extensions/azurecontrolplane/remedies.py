"""The remedy controller's custom resources.

The controller is part of the control plane, and runs in the shoot's namespace of the seed. It
creates a PublicIPAddress for each address of a load balancer and a VirtualMachine for each node,
and keeps their finalizers until the corresponding resource in Azure is deleted (source: Gardener's
remedy-controller, and the Azure extension, which cleans up after it).
"""

from typing import Annotated, ClassVar

import attrs

from actuator import Kind, Object, SeedObjects
from actuator.meta import Column, DefaultStatus, KeepsUnknownFields, Schema

_GROUP = "azure.remedy.gardener.cloud"
_AGE = Column("Age", ".metadata.creationTimestamp", "date")


@attrs.frozen(kw_only=True)
class PublicIPAddressSpec(KeepsUnknownFields):
    """The address."""

    ip_address: Annotated[str, Schema(required=True)] = ""


@attrs.define(kw_only=True)
class PublicIPAddress(Object):
    """A public address in Azure."""

    KIND: ClassVar[Kind] = Kind(
        name="PublicIPAddress",
        plural="publicipaddresses",
        group=_GROUP,
        short_names=("pubip",),
        finalizer=f"{_GROUP}/publicipaddress",
        columns=(Column("IP address", ".spec.ipAddress"), _AGE),
    )

    spec: Annotated[PublicIPAddressSpec, Schema(required=True)] = attrs.field(
        factory=PublicIPAddressSpec
    )
    status: DefaultStatus = attrs.field(factory=DefaultStatus)


@attrs.frozen(kw_only=True)
class VirtualMachineSpec(KeepsUnknownFields):
    """The machine."""

    hostname: Annotated[str, Schema(required=True)] = ""


@attrs.define(kw_only=True)
class VirtualMachine(Object):
    """A machine in Azure."""

    KIND: ClassVar[Kind] = Kind(
        name="VirtualMachine",
        plural="virtualmachines",
        group=_GROUP,
        finalizer=f"{_GROUP}/virtualmachine",
        columns=(Column("Hostname", ".spec.hostname"), _AGE),
    )

    spec: Annotated[VirtualMachineSpec, Schema(required=True)] = attrs.field(
        factory=VirtualMachineSpec
    )
    status: DefaultStatus = attrs.field(factory=DefaultStatus)


GROUPS = tuple(
    SeedObjects(kind.api_version, kind.plural, [kind.finalizer])
    for kind in (PublicIPAddress.KIND, VirtualMachine.KIND)
)
"""All objects of these kinds in a namespace are the remedy controller's; no selector is needed."""
