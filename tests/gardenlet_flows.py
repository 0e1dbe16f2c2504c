"""The flows of the simulated gardenlet, recorded as those of the real one are.

Each kind has a small extension that takes a moment, so that a missing wait shows.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import attrs
import pytest
from harness import PATIENCE, Script

from actuator.errors import ActuatorError
from actuator.interface import resource_of
from actuator.meta import Object, Raw
from actuator.v1alpha1 import KINDS, Extension
from generic.kube.client import HttpClient
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.garden import Flow, Garden, Shoot, order
from hack.gardenlet.protocol import Recording
from hack.gardenlet.reduction import CREATE, FORCE, REMOVE, runs_of
from hack.gardenlet.watching import Log, watched

MOMENT = 0.5
"""Seconds that each operation takes."""
STUCK = "ControlPlane"
"""The kind that fails with revoked credentials when a deletion deploys it once more."""
SCALE = 1 / 60
"""Of gardenlet's thresholds for errors."""
_SECRET: Raw = {"secretRef": {"name": "cloudprovider"}}
_REGION: Raw = {"region": "eu-1", **_SECRET}
_SPECS: dict[str, Raw] = {
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
_META: dict[str, Raw] = {"DNSRecord": {"annotations": {"dns.gardener.cloud/ip-stack": "ipv4"}}}


class Slow(Script):
    """An extension that takes a moment; it reconciles no shoot in `revoked`."""

    def __init__(self, of: type[Object], revoked: Collection[str]) -> None:
        super().__init__(of)
        self.revoked = revoked
        if of is Extension:
            self.finalizer = "extensions.gardener.cloud/slow"

    def _run(self, operation: str, ctx: Any, obj: Any, cluster: Any) -> Any:
        time.sleep(MOMENT)
        if operation == "reconcile" and obj.metadata.namespace in self.revoked:
            raise ActuatorError("the credentials are revoked")
        if operation == "reconcile" and obj.KIND.name == "Infrastructure":
            obj.status.provider_status = {"kind": "InfrastructureStatus"}


@attrs.frozen
class Played:
    """The simulated gardenlet, as classes of which a test may change parts."""

    admin: HttpClient
    kubeconfig: Any
    kinds: Sequence[type[Object]]
    garden: type[Garden] = Garden
    flow: type[Flow] = Flow
    revoked: set[str] = attrs.field(factory=set)
    """The shoots whose credentials are revoked."""

    def record(self, *flows: str) -> Recording:
        """Play the flows, each for a shoot of its own, and reduce what they wrote."""
        shoots = {name: _shoot() for name in flows if name != CREATE} or {CREATE: _shoot()}
        log = Log()
        resources = [*(resource_of(cls.KIND) for cls in self.kinds), CLUSTERS, NAMESPACES]
        with (
            self._managers(shoots.values()),
            watched(self.admin, resources, log),
            ThreadPoolExecutor() as pool,
        ):
            [*pool.map(self._play, shoots, shoots.values())]
        runs = runs_of(log.versions(), [shoot.technical_id for shoot in shoots.values()])
        thresholds = {cls.KIND.name: order.severe_seconds(cls.KIND.name) for cls in self.kinds}
        return Recording("", {name: runs.protocols()[name] for name in flows}, thresholds)

    def _play(self, name: str, shoot: Shoot) -> None:
        kinds = [cls.KIND for cls in self.kinds]
        manifests = [_manifest(cls, shoot) for cls in self.kinds]
        flow = self.flow(self.garden(self.admin), shoot, kinds, patience=PATIENCE, scale=SCALE)
        flow.create(manifests)
        if name == REMOVE:
            flow.delete(manifests)
        if name == FORCE:
            self.revoked.add(shoot.technical_id)
            with pytest.raises(ActuatorError, match=f"{STUCK} .*revoked"):
                flow.delete(manifests)
            flow.force_delete()

    @contextmanager
    def _managers(self, shoots: Collection[Shoot]) -> Iterator[None]:
        options = Options(
            kubeconfig=self.kubeconfig,
            metrics_bind_address="0",
            health_bind_address="0",
            shutdown_timeout=5.0,
        )
        manager = Manager(options)
        for cls in self.kinds:
            namespaces = [shoot.technical_id for shoot in shoots]
            revoked = self.revoked if cls.KIND.name == STUCK else ()
            manager.add(Slow(cls, revoked), type="slow", namespaces=namespaces)
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


def _shoot() -> Shoot:
    name = f"shoot--tests--{secrets.token_hex(4)}"
    return Shoot(technical_id=name, name="a", project="tests", region="eu-1")


def _manifest(cls: type[Object], shoot: Shoot) -> Raw:
    kind = cls.KIND
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": "a", "namespace": shoot.technical_id, **_META.get(kind.name, {})},
        "spec": {"type": "slow", **_SPECS.get(kind.name, {})},
    }
