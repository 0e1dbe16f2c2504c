"""Network: the pod network of a shoot (Gardener documentation, "Network")."""

from enum import StrEnum
from typing import ClassVar

import attrs

from actuator.meta import Column, DefaultSpec, DefaultStatus, Kind, Object, Trigger
from actuator.v1alpha1.shared import AGE, STATUS, TYPE, Required


class IPFamily(StrEnum):
    """The values of `ipFamilies` that Gardener uses; its CRD accepts any text."""

    IPV4 = "IPv4"
    IPV6 = "IPv6"


@attrs.frozen(kw_only=True)
class NetworkSpec(DefaultSpec):
    """The specification that gardenlet writes."""

    pod_cidr: Required[str] = attrs.field(default="", metadata={"wire": "podCIDR"})
    service_cidr: Required[str] = attrs.field(default="", metadata={"wire": "serviceCIDR"})
    ip_families: list[str] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class NetworkStatus(DefaultStatus):
    """The status that the extension reports: the IP families that are actually deployed."""

    ip_families: list[str] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class Network(Object):
    """The pod network of a shoot."""

    KIND: ClassVar[Kind] = Kind(
        name="Network",
        triggers=(Trigger.CLUSTER,),
        columns=(
            TYPE,
            Column("Pod CIDR", ".spec.podCIDR"),
            Column("Service CIDR", ".spec.serviceCIDR"),
            STATUS,
            AGE,
        ),
    )

    spec: Required[NetworkSpec] = attrs.field(factory=NetworkSpec)
    status: NetworkStatus = attrs.field(factory=NetworkStatus)
