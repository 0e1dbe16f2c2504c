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
from harness import PATIENCE, Script, eventually

from actuator.errors import ActuatorError
from actuator.interface import resource_of
from actuator.meta import Object, Raw
from actuator.v1alpha1 import KINDS, Extension
from generic.kube.client import HttpClient
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.garden import Flow, Garden, Shoot, error_of, order
from hack.gardenlet.protocol import Recording
from hack.gardenlet.reduction import CREATE, FORCE, REMOVE, runs_of
from hack.gardenlet.watching import Log, watched

MOMENT = 0.5
"""Seconds that each operation takes."""
STUCK = "Infrastructure"
"""The kind whose deletion fails until it is forced."""
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


class Slow(Script):
    """An extension that takes a moment; its deletion fails for shoots in `stuck`."""

    def __init__(self, of: type[Object], stuck: Collection[str]) -> None:
        super().__init__(of)
        self.stuck = stuck
        if of is Extension:
            self.finalizer = "extensions.gardener.cloud/slow"

    def _run(self, operation: str, ctx: Any, obj: Any, cluster: Any) -> Any:
        time.sleep(MOMENT)
        if operation == "delete" and obj.metadata.namespace in self.stuck:
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

    def record(self, *flows: str) -> Recording:
        """Play the flows, each for a shoot of its own, and reduce what they wrote."""
        shoots = {name: _shoot() for name in flows if name != CREATE} or {CREATE: _shoot()}
        stuck = {shoot.technical_id for name, shoot in shoots.items() if name == FORCE}
        log = Log()
        resources = [*(resource_of(cls.KIND) for cls in self.kinds), CLUSTERS, NAMESPACES]
        with (
            self._managers(shoots.values(), stuck),
            watched(self.admin, resources, log),
            ThreadPoolExecutor() as pool,
        ):
            [*pool.map(self._play, shoots, shoots.values())]
        runs = runs_of(log.versions(), [shoot.technical_id for shoot in shoots.values()])
        thresholds = {cls.KIND.name: order.severe_seconds(cls.KIND.name) for cls in self.kinds}
        return Recording("", {name: runs.protocols()[name] for name in flows}, thresholds)

    def _play(self, name: str, shoot: Shoot) -> None:
        garden = self.garden(self.admin)
        flow = self.flow(garden, shoot, [cls.KIND for cls in self.kinds], patience=PATIENCE)
        flow.create([_manifest(cls, shoot) for cls in self.kinds])
        if name == REMOVE:
            flow.delete()
        if name == FORCE:
            self._delete_until_error(garden, shoot)
            flow.force_delete()

    def _delete_until_error(self, garden: Garden, shoot: Shoot) -> None:
        kinds = [cls.KIND for cls in self.kinds]
        with pytest.raises(ActuatorError, match=STUCK):
            self.flow(garden, shoot, kinds, patience=4 * MOMENT).delete()
        (kind,) = (kind for kind in kinds if kind.name == STUCK)
        eventually(lambda: all(map(error_of, garden.objects(kind, shoot))))

    @contextmanager
    def _managers(self, shoots: Collection[Shoot], stuck: Collection[str]) -> Iterator[None]:
        options = Options(
            kubeconfig=self.kubeconfig,
            metrics_bind_address="0",
            health_bind_address="0",
            shutdown_timeout=5.0,
        )
        manager = Manager(options)
        for cls in self.kinds:
            namespaces = [shoot.technical_id for shoot in shoots]
            fails = stuck if cls.KIND.name == STUCK else ()
            manager.add(Slow(cls, fails), type="slow", namespaces=namespaces)
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
        "metadata": {"name": "a", "namespace": shoot.technical_id},
        "spec": {"type": "slow", **_SPECS.get(kind.name, {})},
    }
