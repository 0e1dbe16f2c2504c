"""The order in which gardenlet goes through the kinds of a shoot, as tables.

A stage is a set of kinds that are handled at once; a flow waits for a stage before the next.
`OTHERS` stands for kinds that no table names. Names in lower case are objects that gardenlet
deletes itself (`cleanup.OWN`; namespace and Cluster). Source: gardener
`pkg/gardenlet/controller/shoot/shoot/reconciler_{reconcile,delete,migrate,force_delete}.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from actuator.meta import Kind

Stages = Sequence[frozenset[str]]
OTHERS = "*"


def _stages(*names: str) -> Stages:
    return [frozenset(stage.split()) for stage in names]


_NODES = "ContainerRuntime Network OperatingSystemConfig Worker"
CREATION: Stages = _stages(
    "BackupBucket",  # the seed's, before there is any shoot
    "BackupEntry DNSRecord Infrastructure",
    "ContainerRuntime ControlPlane Extension",  # once the shoot's API server is there
    "OperatingSystemConfig",
    "Network",
    "Worker",
    f"Bastion SelfHostedShootExposure {OTHERS}",  # no part of the flow: users ask for them
)
"""Reconcile flow, and restore flow. Extensions with the default lifecycle."""

ASLEEP: Stages = _stages("DNSRecord")
"""Not reconciled while a shoot hibernates, and deleted once its control plane sleeps."""

ON_REQUEST = frozenset({"DNSRecord", "Infrastructure"})
"""Not asked again by a reconciliation if they are ready and unchanged."""

REDEPLOYED: Stages = _stages("DNSRecord", "ControlPlane")
"""Deployed again before anything is deleted: the deletion needs the shoot's API server."""

DELETION: Stages = _stages(
    "Bastion",  # before the flow, which does not start while there are any
    f"ContainerRuntime Network SelfHostedShootExposure Worker {OTHERS}",
    "OperatingSystemConfig own-managedresources",
    "Extension",
    "ControlPlane",
    "shoot-managedresources",  # then the shoot's API server goes
    "DNSRecord Infrastructure",
    "etcds",
    "namespace",
    "cluster",
    "BackupEntry",  # owned by the shoot in the garden, and collected after it
    "BackupBucket",
)

FORCED: Stages = _stages(
    "Bastion",  # before the flow; the Cluster says that the shoot is forced only then
    f"{_NODES} ControlPlane DNSRecord Extension Infrastructure SelfHostedShootExposure "
    f"{OTHERS} machines",
    "managedresources",
    "cluster",
    "etcds",
    "configmaps-secrets",
    "namespace",
)
"""All kinds at once but Bastions; kinds not in here are deleted normally, after the shoot."""

AFTERWARDS: Stages = _stages("BackupEntry", "BackupBucket")
"""What a force deletion leaves to the garden."""

STAYING: Stages = _stages("Bastion", f"SelfHostedShootExposure {OTHERS}", "kept-managedresources")
"""Deleted before anything migrates: kinds that cannot, and gardenlet's ManagedResources."""

MIGRATION: Stages = _stages(
    f"{_NODES} Extension {OTHERS}",
    "ControlPlane",
    "DNSRecord Infrastructure",
    "BackupEntry",
)
"""Each stage is migrated, then deleted. The ShootState is taken once the first has migrated."""

MIGRATED: Sequence[Stages] = (
    _stages(f"{_NODES} {OTHERS} kept-machines", "Extension"),
    _stages("ControlPlane", "shoot-managedresources"),
    _stages("Infrastructure", "DNSRecord"),
    _stages("BackupEntry", "etcds", "namespace", "cluster"),
)
"""In which order each stage of MIGRATION is deleted."""

NOT_AWAITED = frozenset({"ControlPlane"})
"""Deleted right after migration was asked for: the deletion arrives in the middle of it."""

STAYS = frozenset({"BackupBucket"})
"""What is the seed's and stays there when a shoot moves. Other kinds that cannot migrate go."""

_TIMEOUTS: Mapping[str, float] = {
    "Infrastructure": 600.0,
    "Worker": 600.0,
    "BackupEntry": 600.0,
    "DNSRecord": 120.0,
}
_OTHER_TIMEOUT = 180.0

HANDED_ON: Mapping[str, tuple[str, str]] = {
    "ControlPlane": ("Infrastructure", "infrastructureProviderStatus"),
    "Worker": ("Infrastructure", "infrastructureProviderStatus"),
    "BackupEntry": ("BackupBucket", "backupBucketProviderStatus"),
}
"""Whose status.providerStatus gardenlet copies into which field of a kind's spec."""

_KNOWN = frozenset().union(*CREATION)


def in_stages(order: Stages, kinds: Iterable[Kind]) -> Iterator[list[Kind]]:
    """These kinds in that order, stage by stage; stages with none of them are left out."""
    left = list(kinds)
    for stage in order:
        found = [kind for kind in left if _stands_for(kind) in stage]
        if found:
            yield found


def seconds(kind: Kind) -> float:
    """How long gardenlet waits for an object of the kind."""
    return _TIMEOUTS.get(kind.name, _OTHER_TIMEOUT)


def _stands_for(kind: Kind) -> str:
    return kind.name if kind.name in _KNOWN else OTHERS
