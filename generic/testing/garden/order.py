"""The order in which gardenlet handles the kinds of a shoot, as tables.

A stage is a set of kinds that gardenlet handles at once; a flow waits for a stage before the next.
`OTHERS` stands for kinds that no table names. Lower-case names are objects that gardenlet
deletes itself (`cleanup.OWN`; namespace and Cluster). Source: gardener
`pkg/gardenlet/controller/shoot/shoot/reconciler_{reconcile,delete,migrate,force_delete}.go`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from actuator.meta import Kind

Stages = Sequence[frozenset[str]]
OTHERS = "*"


def _stages(*names: str) -> Stages:
    return [frozenset(stage.split()) for stage in names]


_NODES = "ContainerRuntime Network OperatingSystemConfig Worker"
CREATION: Stages = _stages(
    "BackupBucket",  # belongs to the seed, exists before any shoot
    "BackupEntry Infrastructure",
    "DNSRecord",
    "ContainerRuntime ControlPlane Extension",  # once the shoot's API server runs
    "Network OperatingSystemConfig",
    "Worker",
    f"Bastion SelfHostedShootExposure {OTHERS}",  # not part of the flow: users create them
)
"""Reconcile flow of a new shoot. Extensions with the default lifecycle."""

LATER: Stages = [CREATION[0], CREATION[1] | CREATION[2], *CREATION[3:]]
"""Of a shoot whose networks are known: DNSRecords do not wait for the Infrastructure."""

ASLEEP: Stages = _stages("DNSRecord")
"""Not reconciled while a shoot hibernates, and deleted once its control plane is scaled down."""

ON_REQUEST = frozenset(["BackupBucket", "BackupEntry", "Bastion", "DNSRecord", "Infrastructure"])
"""Not annotated again by a reconciliation if they are ready and unchanged."""

WOKEN = frozenset({"Infrastructure"})
"""Annotated nevertheless when a shoot wakes up: gardener-apiserver requests it."""

UNCONFIRMED = frozenset({"Bastion"})
"""Deleted without the annotation that confirms it; a controller of their own deletes them."""

REDEPLOYED: Stages = _stages("DNSRecord", "ControlPlane")
"""Deployed again before anything is deleted: the deletion needs the shoot's API server."""

DELETION: Stages = _stages(
    "Bastion",  # before the flow; only then the Cluster shows the deletion
    f"ContainerRuntime Network SelfHostedShootExposure Worker {OTHERS}",
    "OperatingSystemConfig own-managedresources",
    "Extension",
    "ControlPlane",
    "shoot-managedresources",  # then gardenlet deletes the shoot's API server
    "DNSRecord Infrastructure",
    "etcds",
    "namespace",
    "cluster",
    "BackupEntry",  # owned by the shoot in the garden, and collected after it
    "BackupBucket",
)

FORCED: Stages = _stages(
    "Bastion",  # before the flow; only then the Cluster shows the force deletion
    f"{_NODES} ControlPlane DNSRecord Extension Infrastructure SelfHostedShootExposure "
    f"{OTHERS} machines",
    "managedresources",
    "cluster",
    "etcds",
    "configmaps-secrets",
    "namespace",
)
"""All kinds at once except Bastions; kinds not listed are deleted normally, after the shoot."""

AFTERWARDS: Stages = _stages("BackupEntry", "BackupBucket")
"""The kinds that a force deletion leaves to the garden."""

STAYING: Stages = _stages("Bastion", f"SelfHostedShootExposure {OTHERS}", "kept-managedresources")
"""Deleted before the migration: kinds that cannot migrate, and gardenlet's ManagedResources."""

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
"""The order in which each stage of MIGRATION is deleted."""

NOT_AWAITED = frozenset({"ControlPlane"})
"""Deleted right after the migrate request: the deletion arrives during the migration."""

STAYS = frozenset({"BackupBucket"})
"""Kinds that belong to the seed and stay there. Other kinds that cannot migrate are deleted."""

_TIMEOUTS: Mapping[str, float] = {
    "Infrastructure": 600.0,
    "Worker": 600.0,
    "BackupEntry": 600.0,
    "DNSRecord": 120.0,
}
_OTHER_TIMEOUT = 180.0

_SEVERE: Mapping[str, float] = {"Infrastructure": 180.0, "DNSRecord": 15.0}
_OTHER_SEVERE = 30.0

SCALE = 1 / 30
"""By which drills and tests shorten these seconds in a step that must get stuck."""

HANDED_ON: Mapping[str, tuple[str, str]] = {
    "ControlPlane": ("Infrastructure", "infrastructureProviderStatus"),
    "Worker": ("Infrastructure", "infrastructureProviderStatus"),
    "BackupEntry": ("BackupBucket", "backupBucketProviderStatus"),
}
"""By kind: the kind whose status.providerStatus gardenlet copies, and the field of the spec."""

_KNOWN = frozenset().union(*CREATION)


def distinct(kinds: Iterable[Kind]) -> list[Kind]:
    """Return the first of each kind: those of several Extensions differ by their finalizers."""
    found: dict[tuple[str, str], Kind] = {}
    for kind in kinds:
        found.setdefault((kind.group, kind.name), kind)
    return list(found.values())


def in_stages(order: Stages, kinds: Iterable[Kind]) -> Iterator[list[Kind]]:
    """Yield these kinds in that order, stage by stage, without empty stages."""
    left = list(kinds)
    for stage in order:
        found = [item for item in left if (item.name if item.name in _KNOWN else OTHERS) in stage]
        if found:
            yield found


def seconds(kind: Kind) -> float:
    """Return how long gardenlet waits for an object of the kind, in seconds."""
    return _TIMEOUTS.get(kind.name, _OTHER_TIMEOUT)


def severe_seconds(kind: str) -> float:
    """Return how long gardenlet tolerates an error of an object it waits for, in seconds.

    The time counts from the request. Deletions have no such threshold, only their timeout.
    """
    return _SEVERE.get(kind, _OTHER_SEVERE)
