"""DNSRecord: a DNS record at a provider (Gardener documentation, "DNSRecord")."""

from enum import StrEnum
from typing import Annotated, ClassVar

import attrs

from actuator.meta import (
    Behaviour,
    ClusterNeed,
    Column,
    DefaultSpec,
    DefaultStatus,
    Kind,
    Object,
    Schema,
    SecretReference,
    Trigger,
)
from actuator.v1alpha1.shared import AGE, STATUS, TYPE, Required

DEFAULT_TTL = 120
"""The default time to live, in seconds."""


class DNSRecordType(StrEnum):
    """The values of `recordType` that Gardener uses; its CRD accepts any text."""

    A = "A"
    AAAA = "AAAA"
    CNAME = "CNAME"
    TXT = "TXT"


@attrs.frozen(kw_only=True)
class DNSRecordSpec(DefaultSpec):
    """The specification that gardenlet writes. `ttl` is in seconds."""

    secret_ref: Required[SecretReference] = attrs.field(factory=SecretReference)
    region: str | None = None
    zone: str | None = None
    name: Required[str] = ""
    record_type: Required[str] = DNSRecordType.A
    values: Required[list[str]] = attrs.field(factory=list)
    ttl: Annotated[int | None, Schema(format="int64")] = None

    @property
    def ttl_seconds(self) -> int:
        """The time to live in seconds, or the default if the spec has none."""
        return DEFAULT_TTL if self.ttl is None else self.ttl


@attrs.define(kw_only=True)
class DNSRecordStatus(DefaultStatus):
    """The status that the extension reports."""

    zone: str | None = None


@attrs.define(kw_only=True)
class DNSRecord(Object):
    """A DNS record at a provider."""

    KIND: ClassVar[Kind] = Kind(
        name="DNSRecord",
        short_names=("dns",),
        cluster=ClusterNeed.IN_SHOOT_NAMESPACE,
        triggers=(Trigger.CLUSTER,),
        behaviour=Behaviour.REMEMBERS_CREATION,
        columns=(
            TYPE,
            Column("Domain Name", ".spec.name"),
            Column("Record Type", ".spec.recordType"),
            STATUS,
            AGE,
        ),
    )

    spec: Required[DNSRecordSpec] = attrs.field(factory=DNSRecordSpec)
    status: DNSRecordStatus = attrs.field(factory=DNSRecordStatus)
