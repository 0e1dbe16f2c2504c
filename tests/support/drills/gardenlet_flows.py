"""The flows of the simulated gardenlet, recorded as those of the real one are.

Each kind has a small extension that takes a moment, so that a missing wait shows.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import attrs
import pytest

from actuator.errors import ActuatorError, AlreadyExists
from actuator.interface import SECRETS, resource_of
from actuator.meta import Object, Raw
from actuator.v1alpha1 import KINDS, Bastion, Extension
from generic.kube.client import HttpClient
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.library.machines import MACHINE_DEPLOYMENTS, MACHINE_KINDS
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.garden import SHOOT, Garden, GardenletFlows, SeedShoot, order
from generic.testing.seed import install_crds
from hack.gardenlet.protocol import Recording
from hack.gardenlet.reduction import (
    CREATE,
    FORCE,
    HIBERNATE,
    MIGRATE,
    REMOVE,
    RESTORE,
    WAKE,
    flows_of,
)
from hack.gardenlet.watching import WatchLog, watched
from tests.support.cluster.harness import PATIENCE, Script

MOMENT = 0.5
LONGER = 3.0
"""Seconds that each operation takes, and those of slower kinds except normal deletions."""
STUCK = "ControlPlane"
"""The kind that fails with revoked credentials when a deletion deploys it once more."""
SCALE = 1 / 6
"""Of gardenlet's thresholds for errors and of its timeouts; a busy machine must not reach these."""
_SECRET: Raw = {"secretRef": {"name": "cloudprovider"}}
_REGION: Raw = {"region": "eu-1", **_SECRET}
_ACCOUNT: Raw = {"name": "cloudprovider", "namespace": "default"}
_BACKUP: Raw = {"region": "eu-1", "secretRef": _ACCOUNT}
_SPECS: dict[str, Raw] = {
    "BackupBucket": _BACKUP,
    "BackupEntry": _BACKUP,
    "Bastion": {"userData": "aGk=", "ingress": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]},
    "ContainerRuntime": {
        "binaryPath": "/bin",
        "workerPool": {"name": "pool", "selector": {"matchLabels": {"a": "b"}}},
    },
    "ControlPlane": _REGION,
    "DNSRecord": {"name": "a.b", "recordType": "A", "values": ["192.0.2.1"], **_SECRET},
    "Infrastructure": _REGION,
    "Network": {"podCIDR": "100.96.0.0/11", "serviceCIDR": "100.64.0.0/13"},
    "OperatingSystemConfig": {"purpose": "provision"},
    "Worker": {**_REGION, "pools": []},
}
_ANNOTATIONS: dict[str, Raw] = {
    "BackupBucket": {"backupbucket.extensions.gardener.cloud/generated-secret-namespace": "garden"},
    "DNSRecord": {"dns.gardener.cloud/ip-stack": "ipv4"},
}
_GIVERS = {giver for giver, _ in order.HANDED_ON.values()}
_WITH_STATE = ("ControlPlane", "DNSRecord", "Extension", "Infrastructure", "Network")
"""The kinds of which the samples have a state; that of a Worker is the state of its machines."""


_PLAYED_WITH = {WAKE: HIBERNATE, RESTORE: MIGRATE}
"""By flow: another one, after which the same shoot has it."""
_OF_USERS = (Bastion,)
"""The kinds that users create and delete in the garden."""
_WITH_CREDENTIALS = (STUCK, *(cls.KIND.name for cls in _OF_USERS))


class Slow(Script):
    """An extension that takes `seconds`, a deletion a moment; in `revoked` only forced ones end."""

    def __init__(self, of: type[Object], revoked: Collection[str], seconds: float) -> None:
        super().__init__(of)
        self.revoked = revoked
        self.seconds = seconds
        if of is Extension:
            self.finalizer = "extensions.gardener.cloud/slow"

    def _run(self, operation: str, ctx: Any, obj: Any, cluster: Any) -> Any:
        time.sleep(MOMENT if operation == "delete" else self.seconds)
        if operation in ("reconcile", "delete") and obj.metadata.namespace in self.revoked:
            raise ActuatorError("the credentials are revoked")
        if operation in ("reconcile", "restore"):
            name = obj.KIND.name
            obj.status.provider_status = {"kind": f"{name}Status"} if name in _GIVERS else None
            obj.status.state = {"made": name} if name in _WITH_STATE else None


@attrs.frozen
class Played:
    """The simulated gardenlet, as classes of which a test may change parts."""

    admin: HttpClient
    kubeconfig: Any
    kinds: Sequence[type[Object]]
    garden: type[Garden] = Garden
    flow: type[GardenletFlows] = GardenletFlows
    slower: Collection[str] = ()
    """The kinds whose operations take longer: a flow that does not wait is ahead of them."""
    revoked: set[str] = attrs.field(factory=set)
    """The shoots whose credentials are revoked."""
    of_type: str = attrs.field(factory=lambda: f"slow-{secrets.token_hex(4)}")

    def record(self, *flows: str) -> Recording:
        """Play the flows, each for two shoots of its own, and reduce their writes.

        The kinds of the second are in the opposite order, which hence is not taken for a wait.
        """
        played = {_PLAYED_WITH.get(name, name) for name in flows if name != CREATE} or {CREATE}
        orders = (self.kinds, self.kinds[::-1])
        plays = [(name, _shoot(), kinds) for name in played for kinds in orders]
        account = {"apiVersion": "v1", "kind": "Secret", "metadata": _ACCOUNT}
        with suppress(AlreadyExists):
            self.admin.create(SECRETS, account)
        install_crds(self.admin, MACHINE_KINDS)
        log = WatchLog()
        resources = [*(resource_of(cls.KIND) for cls in self.kinds), CLUSTERS, NAMESPACES]
        with (
            self._managers(),
            watched(self.admin, resources, log),
            ThreadPoolExecutor(len(plays)) as pool,
        ):
            [*pool.map(self._play, *zip(*plays, strict=True))]
        found = flows_of([log.versions()], [*_recorded(shoot for _, shoot, _ in plays)])
        kinds = [cls.KIND for cls in self.kinds]
        waits = {
            kind.name: [order.severe_seconds(kind.name), order.seconds(kind)] for kind in kinds
        }
        return Recording("", {name: found[name] for name in flows}, waits=waits)

    def _play(self, name: str, shoot: SeedShoot, kinds: Sequence[type[Object]]) -> None:
        """Play a flow; users delete their objects before a migration."""
        if name == MIGRATE:
            kinds = [cls for cls in kinds if cls not in _OF_USERS]
        manifests = [_manifest(cls, shoot, self.of_type) for cls in kinds]
        flow = self._flow(shoot, kinds)
        flow.create(manifests)
        if name == MIGRATE:
            self.admin.create(MACHINE_DEPLOYMENTS, _machines(shoot))
            flow.restore(manifests, flow.migrate())
        if name == HIBERNATE:
            flow.reconcile(manifests, hibernated=True)
            flow.reconcile(manifests)
        if name == REMOVE:
            flow.delete(manifests)
        if name == FORCE:
            self._force_delete(flow, shoot, manifests)

    def _force_delete(
        self, flow: GardenletFlows, shoot: SeedShoot, manifests: Sequence[Raw]
    ) -> None:
        """Force a deletion that is stuck; the objects of users are deleted at the end of that."""
        self.revoked.add(shoot.technical_id)
        normal = self._flow(shoot, [cls for cls in self.kinds if cls not in _OF_USERS])
        with pytest.raises(ActuatorError, match=f"{STUCK} .*revoked"):
            normal.delete(manifests)
        flow.remove([cls.KIND for cls in _OF_USERS])
        flow.force_delete()
        flow.delete_afterwards()

    def _flow(self, shoot: SeedShoot, kinds: Sequence[type[Object]]) -> GardenletFlows:
        served = [cls.KIND for cls in kinds]
        return self.flow(self.garden(self.admin), shoot, served, patience=PATIENCE, scale=SCALE)

    @contextmanager
    def _managers(self) -> Iterator[None]:
        options = Options(
            kubeconfig=self.kubeconfig,
            metrics_bind_address="0",
            health_bind_address="0",
            shutdown_timeout=5.0,
        )
        manager = Manager(options)
        for cls in self.kinds:
            revoked = self.revoked if cls.KIND.name in _WITH_CREDENTIALS else ()
            seconds = LONGER if cls.KIND.name in self.slower else MOMENT
            manager.add(Slow(cls, revoked, seconds), type=self.of_type)
        manager.start()
        try:
            assert manager.wait_synced(PATIENCE)
            yield
        finally:
            manager.stop()


def kinds_of(recording: Recording) -> list[type[Object]]:
    """The kinds of extensions in a recording."""
    names = recording.flows[CREATE].steps.keys()
    return [cls for cls in KINDS if cls.KIND.name in names]


def _shoot() -> SeedShoot:
    name = f"shoot--tests--{secrets.token_hex(4)}"
    return SeedShoot(technical_id=name, name="a", project="tests", region="eu-1")


def _machines(shoot: SeedShoot) -> Raw:
    """Return the machines of a Worker."""
    return {
        "apiVersion": MACHINE_DEPLOYMENTS.api_version,
        "kind": "MachineDeployment",
        "metadata": {"name": "pool", "namespace": shoot.technical_id},
        "spec": {"replicas": 1, "template": {}},
    }


def _recorded(shoots: Iterable[SeedShoot]) -> Iterator[str]:
    """Yield the names of shoots and of their buckets."""
    for shoot in shoots:
        yield from (shoot.technical_id, _bucket(shoot))


def _bucket(shoot: SeedShoot) -> str:
    return f"bucket-{shoot.technical_id}"


def _manifest(cls: type[Object], shoot: SeedShoot, type_: str) -> Raw:
    kind = cls.KIND
    meta: Raw = {"name": "a", "namespace": shoot.technical_id}
    if not kind.namespaced:
        name = _bucket(shoot) if kind.name == "BackupBucket" else f"{shoot.technical_id}--0a"
        meta = {"name": name, "labels": {SHOOT: shoot.technical_id}}
    meta["annotations"] = _ANNOTATIONS.get(kind.name, {})
    spec = {"type": type_, **_SPECS.get(kind.name, {})}
    if kind.name == "BackupEntry":
        spec["bucketName"] = _bucket(shoot)
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, "spec": spec}
