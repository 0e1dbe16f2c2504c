"""The remedy controller's custom resources.

The controller is part of the control plane, and runs in the shoot's namespace of the seed. It
creates a PublicIPAddress for each address of a load balancer and a VirtualMachine for each node,
and keeps their finalizers until the corresponding resource in Azure is deleted (source: Gardener's
remedy-controller, and the Azure extension, which cleans up after it).
"""

from typing import ClassVar

import attrs

from actuator import Column, DefaultStatus, Kind, Object, Raw, SeedObjects, own_kind

_GROUP = "azure.remedy.gardener.cloud"


@attrs.define(kw_only=True)
class PublicIPAddress(Object):
    """A public address in Azure."""

    KIND: ClassVar[Kind] = own_kind(
        "PublicIPAddress",
        _GROUP,
        Column("IP address", ".spec.ipAddress"),
        short_names=("pubip",),
        ready=None,
    )

    spec: Raw = attrs.field(factory=dict)
    status: DefaultStatus = attrs.field(factory=DefaultStatus)


@attrs.define(kw_only=True)
class VirtualMachine(Object):
    """A machine in Azure."""

    KIND: ClassVar[Kind] = own_kind(
        "VirtualMachine", _GROUP, Column("Hostname", ".spec.hostname"), ready=None
    )

    spec: Raw = attrs.field(factory=dict)
    status: DefaultStatus = attrs.field(factory=DefaultStatus)


GROUPS = tuple(SeedObjects(cls, [cls.KIND.finalizer]) for cls in (PublicIPAddress, VirtualMachine))
"""All objects of these kinds in a namespace are the remedy controller's; no selector is needed."""
