"""BackupEntry: the backups of one shoot, in a bucket (Gardener documentation, "BackupEntry")."""

from typing import ClassVar

import attrs

from actuator.meta import (
    Behaviour,
    ClusterNeed,
    Column,
    DefaultStatus,
    ForceSource,
    Kind,
    Object,
    Raw,
    Trigger,
)
from actuator.v1alpha1.shared import AGE, REGION, STATE, TYPE, RegionalSpec, Required


@attrs.frozen(kw_only=True)
class BackupEntrySpec(RegionalSpec):
    """The specification that gardenlet writes."""

    backup_bucket_provider_status: Raw | None = None
    bucket_name: Required[str] = ""


@attrs.define(kw_only=True)
class BackupEntry(Object):
    """The backups of one shoot."""

    KIND: ClassVar[Kind] = Kind(
        name="BackupEntry",
        short_names=("be",),
        namespaced=False,
        cluster=ClusterNeed.NEVER,
        skips_failed_shoot=False,
        force_from=ForceSource.NONE,
        outcomes_are_watched=True,
        triggers=(Trigger.SECRET, Trigger.NAMESPACE),
        behaviour=Behaviour.NEEDS_SECRET_TO_DELETE,
        columns=(TYPE, REGION, Column("Bucket", ".spec.bucketName"), STATE, AGE),
    )

    spec: Required[BackupEntrySpec] = attrs.field(factory=BackupEntrySpec)
    status: DefaultStatus = attrs.field(factory=DefaultStatus)
