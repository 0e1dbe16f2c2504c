"""A thousand force deletions at once, and no call into the actuator ever returns: the figures.

    python -m hack.bench.hanging

`make bench` prints them; a test holds what must hold of them on any machine.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

from actuator import Actuator, Cluster, Context, ExternalResource
from actuator.interface import Client, resource_of
from actuator.meta import Raw
from actuator.v1alpha1 import KINDS, Infrastructure
from generic.kube.client import connect
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL, Orphan
from generic.testing.envtest import Environment
from generic.testing.garden import Garden, Shoot, not_ready_because
from generic.testing.seed import install

__all__ = ["Figures", "measure"]

_INFRASTRUCTURES = resource_of(Infrastructure.KIND)
_DRIVERS = 8


@attrs.frozen(kw_only=True)
class Figures:
    """What it took. Memory in bytes, of this process: manager and driver."""

    objects: int
    recorded: int
    """Objects with at least one Orphan."""
    seconds: float
    """From the annotation to the last object gone."""
    threads_more: int
    memory_more: int

    def __str__(self) -> str:
        return (
            f"{self.objects} force deletions that never return: the last object gone after "
            f"{self.seconds:.1f} s, {self.recorded} recorded, at most {self.threads_more} threads "
            f"and {self.memory_more / 2**20:.0f} MiB more"
        )


class Hanging(Actuator[Infrastructure]):
    """Reconciles at once; never comes back from anything that a deletion asks."""

    def __init__(self, gate: threading.Event, *, mute: bool) -> None:
        self._gate = gate
        self._mute = mute

    def reconcile(self, ctx: Context, obj: Infrastructure, cluster: Cluster, /) -> None:
        """Nothing to do."""

    def delete(self, ctx: Context, obj: Infrastructure, cluster: Cluster, /) -> None:
        """Never returns."""
        self._gate.wait()

    def force_delete(self, ctx: Context, obj: Infrastructure, cluster: Cluster, /) -> None:
        """Never returns."""
        self._gate.wait()

    def external_resources(self, obj: Infrastructure, /) -> Iterable[ExternalResource]:
        """One thing each; where it is mute, it never says so."""
        if self._mute:
            self._gate.wait()
        return [ExternalResource(type="Bucket", id=obj.metadata.name)]


@attrs.define
class _Most:
    """The most threads, and the most memory, that there were."""

    threads: int = 0
    memory: int = 0

    def look(self) -> None:
        statm = Path("/proc/self/statm").read_text(encoding="ascii")
        self.threads = max(self.threads, threading.active_count())
        self.memory = max(self.memory, int(statm.split()[1]) * 4096)


def measure(kubeconfig: Path, objects: int, *, workers: int, budget: float, mute: bool) -> Figures:
    """Lets it happen in a namespace of its own. Raises TimeoutError."""
    admin = connect(kubeconfig, connections=workers + 2 * _DRIVERS)
    shoot = Shoot(
        technical_id=f"hanging-{time.monotonic_ns():x}", name="a", project="b", region="c"
    )
    garden, gate = Garden(admin), threading.Event()
    garden.create_namespace(shoot)
    manager = Manager(
        Options(
            kubeconfig=kubeconfig,
            metrics_bind_address="0",
            health_bind_address="0",
            max_concurrent_reconciles=workers,
            force_delete_budget=budget,
            shutdown_timeout=1.0,
        )
    )
    manager.add(Hanging(gate, mute=mute), type=shoot.technical_id)
    manager.start()
    try:
        return _measure(admin, garden, shoot, objects)
    finally:
        gate.set()
        manager.stop()
        garden.finish(shoot)


def _measure(admin: Client, garden: Garden, shoot: Shoot, objects: int) -> Figures:
    namespace, before, during = shoot.technical_id, _Most(), _Most()
    names = [f"n{number}" for number in range(objects)]

    def left() -> list[Raw]:
        return admin.list(_INFRASTRUCTURES, namespace)

    with ThreadPoolExecutor(_DRIVERS) as pool:
        list(pool.map(lambda name: garden.deploy(_manifest(namespace, name)), names))
        _until(lambda: all(not_ready_because(obj) is None for obj in left()), 120, before)
        list(pool.map(lambda name: garden.delete(Infrastructure.KIND, namespace, name), names))
    garden.mark_deleted(shoot)
    before.look()
    garden.force(shoot)
    seconds = _until(lambda: not left(), 120, during)
    found = admin.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={namespace}")
    return Figures(
        objects=objects,
        recorded=len({orphan["spec"]["object"]["uid"] for orphan in found}),
        seconds=seconds,
        threads_more=during.threads - before.threads,
        memory_more=during.memory - before.memory,
    )


def _manifest(namespace: str, name: str) -> Raw:
    return {
        "apiVersion": Infrastructure.KIND.api_version,
        "kind": "Infrastructure",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"type": namespace, "region": "c", "secretRef": {"name": "none"}},
    }


def _until(check: Callable[[], bool], seconds: float, most: _Most) -> float:
    """Seconds until it holds."""
    began = time.monotonic()
    while not check():
        most.look()
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"not within {seconds:.0f} s")
        time.sleep(0.2)
    return time.monotonic() - began


def main() -> None:
    """A thousand, 20 workers, a budget of 5 s; then the same with an actuator that is mute."""
    logging.getLogger("generic").setLevel(logging.CRITICAL)
    with Environment() as environment:
        install(environment, [*KINDS, Cluster, Orphan])
        for mute in (False, True):
            figures = measure(environment.kubeconfig, 1000, workers=20, budget=5.0, mute=mute)
            print(figures, "(external_resources never returns either)" if mute else "")


if __name__ == "__main__":
    main()
