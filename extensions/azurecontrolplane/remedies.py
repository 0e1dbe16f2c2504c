"""The remedy controller's custom resources: their kinds, and how they are asked to go.

The controller is part of the control plane, and runs in the shoot's namespace of the seed. It
makes a PublicIPAddress for each address of a load balancer and a VirtualMachine for each node, and
holds them by finalizers until what they stand for in Azure is gone (source: Gardener's
remedy-controller, and the Azure extension, which cleans up after it).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, ClassVar

import attrs

from actuator import Client, Kind, Object, SeedObjects
from actuator.errors import NotFound
from actuator.interface import resource_of
from actuator.meta import Column, DefaultStatus, Raw, Schema

_GROUP = "azure.remedy.gardener.cloud"
_AGE = Column("Age", ".metadata.creationTimestamp", "date")


@attrs.frozen(kw_only=True)
class PublicIPAddressSpec:
    """Which address it is."""

    ip_address: Annotated[str, Schema(required=True)] = ""
    extra: Raw = attrs.field(factory=dict)


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
class VirtualMachineSpec:
    """Which machine it is."""

    hostname: Annotated[str, Schema(required=True)] = ""
    extra: Raw = attrs.field(factory=dict)


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


_ADDRESSES = resource_of(PublicIPAddress.KIND)

GROUPS = tuple(
    SeedObjects(kind.api_version, kind.plural, [kind.finalizer])
    for kind in (PublicIPAddress.KIND, VirtualMachine.KIND)
)
"""All of them in a namespace are the remedy controller's, so there is nothing to select."""


def request_release(client: Client, namespace: str) -> list[str]:
    """Asks for the deletion of all addresses, so that the controller gives them back to Azure.

    Returns the names of those that are still there. Does not wait. Raises ApiError.
    """
    names = []
    for meta in _addresses(client, namespace):
        names.append(str(meta["name"]))
        if meta.get("deletionTimestamp") is None:
            with suppress(NotFound):
                client.delete(_ADDRESSES, meta["name"], namespace, uid=meta["uid"])
    return names


def _addresses(client: Client, namespace: str) -> Iterator[Raw]:
    try:
        found = client.list(_ADDRESSES, namespace)
    except NotFound:  # the kind was never installed here
        return
    yield from (one["metadata"] for one in found)
