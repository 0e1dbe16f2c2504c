"""BackupBucket: a bucket for etcd backups (Gardener documentation, "BackupBucket")."""

from typing import ClassVar

import attrs

from actuator.meta import (
    Behaviour,
    ClusterNeed,
    DefaultStatus,
    ForceSource,
    Kind,
    Object,
    SecretReference,
    Trigger,
)
from actuator.v1alpha1.shared import AGE, REGION, STATE, TYPE, RegionalSpec, Required


@attrs.frozen(kw_only=True)
class BackupBucketSpec(RegionalSpec):
    """The specification that gardenlet writes."""


@attrs.define(kw_only=True)
class BackupBucketStatus(DefaultStatus):
    """The status that the extension reports."""

    generated_secret_ref: SecretReference | None = None


@attrs.define(kw_only=True)
class BackupBucket(Object):
    """A bucket of a seed, for the backups of its shoots."""

    KIND: ClassVar[Kind] = Kind(
        name="BackupBucket",
        short_names=("bb",),
        namespaced=False,
        cluster=ClusterNeed.NEVER,
        skips_failed_shoot=False,
        force_from=ForceSource.NONE,
        migratable=False,
        outcomes_are_watched=True,
        triggers=(Trigger.SECRET,),
        behaviour=Behaviour.GUARDS_SECRET,
        columns=(TYPE, REGION, STATE, AGE),
    )

    spec: Required[BackupBucketSpec] = attrs.field(factory=BackupBucketSpec)
    status: BackupBucketStatus = attrs.field(factory=BackupBucketStatus)
