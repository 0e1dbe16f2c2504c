"""Parts that several kinds share: printer columns, specs that name a region and a Secret, and types
of the Kubernetes API that no dependency provides.
"""

from typing import Annotated, TypeVar

import attrs

from actuator.meta import AGE as AGE  # noqa: PLC0414 - exported
from actuator.meta import Column, DefaultSpec, KeepsUnknownFields, Schema, SecretReference
from actuator.meta import ObjectReference as ObjectReference  # noqa: PLC0414 - exported

TYPE = Column("Type", ".spec.type")
REGION = Column("Region", ".spec.region")
STATUS = Column("Status", ".status.lastOperation.state")
STATE = Column("State", ".status.lastOperation.state")
T = TypeVar("T")
Required = Annotated[T, Schema(required=True)]
"""A field that gardenlet or the extension must set; it has a default only in Python."""


@attrs.frozen(kw_only=True)
class RegionalSpec(DefaultSpec):
    """The spec of a resource in a provider's region, with the credentials in a Secret."""

    region: Required[str] = ""
    secret_ref: Required[SecretReference] = attrs.field(factory=SecretReference)


@attrs.frozen(kw_only=True)
class PortStatus(KeepsUnknownFields):
    """corev1.PortStatus."""

    port: Annotated[int, Schema(format="int32", required=True)] = 0
    protocol: Required[str] = ""
    error: Required[str] = ""


@attrs.frozen(kw_only=True)
class LoadBalancerIngress(KeepsUnknownFields):
    """corev1.LoadBalancerIngress: an address, a name, or both."""

    ip: str = ""
    hostname: str = ""
    ip_mode: str | None = None
    ports: list[PortStatus] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class LabelSelectorRequirement(KeepsUnknownFields):
    """metav1.LabelSelectorRequirement."""

    key: Required[str] = ""
    operator: Required[str] = ""
    values: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class LabelSelector(KeepsUnknownFields):
    """metav1.LabelSelector."""

    match_labels: dict[str, str] = attrs.field(factory=dict)
    match_expressions: list[LabelSelectorRequirement] = attrs.field(factory=list)
