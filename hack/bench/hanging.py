"""Measures a thousand concurrent force deletions whose actuator calls never return.

    python -m hack.bench.hanging

`make bench` prints the figures; a test checks the bounds that hold on any machine.
"""

import logging
import threading
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import attrs

from actuator import Actuator, Cluster, Context, ExternalResource
from actuator.interface import Client, resource_of
from actuator.v1alpha1 import KINDS, Infrastructure
from generic.kube.client import connect
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.reconciler.orphans import ORPHANS, RECORD_KINDS, SHOOT_LABEL
from generic.testing.envtest import Environment
from generic.testing.garden import Garden, SeedShoot, not_ready_because
from generic.testing.polling import parallel
from generic.testing.seed import install
from hack.objects import infrastructure
from hack.processes import wait

_INFRASTRUCTURES = resource_of(Infrastructure.KIND)
_DRIVERS = 8


@attrs.frozen(kw_only=True)
class Figures:
    """The results. Memory in bytes, of this process: manager and driver."""

    objects: int
    recorded: int
    """Objects with at least one Orphan."""
    seconds: float
    """From the annotation to the deletion of the last object."""
    threads_more: int
    memory_more: int


class HangingDeletions(Actuator[Infrastructure]):
    """Reconciles at once; never returns from a call for a deletion."""

    def __init__(self, gate: threading.Event, *, unresponsive: bool) -> None:
        self._gate = gate
        self._unresponsive = unresponsive

    def reconcile(self, ctx: Context, obj: Infrastructure, cluster: Cluster, /) -> None:
        """Do nothing."""

    def delete(self, ctx: Context, obj: Infrastructure, cluster: Cluster, /) -> None:
        """Never returns."""
        self._gate.wait()

    force_delete = delete

    def external_resources(self, obj: Infrastructure, /) -> Iterable[ExternalResource]:
        """Return one resource for each object; never return if `unresponsive`."""
        if self._unresponsive:
            self._gate.wait()
        return [ExternalResource(type="Bucket", id=obj.metadata.name)]


def measure(
    kubeconfig: Path, objects: int, *, workers: int, budget: float, unresponsive: bool
) -> Figures:
    """Measure in a new namespace. Raises TimeoutError."""
    admin = connect(kubeconfig, connections=workers + 2 * _DRIVERS)
    name = f"hanging-{time.monotonic_ns():x}"
    shoot = SeedShoot(technical_id=name, name="a", project="b", region="c")
    garden = Garden(admin)
    gate = threading.Event()
    garden.create_namespace(shoot)
    options = Options(
        kubeconfig=kubeconfig,
        metrics_bind_address="0",
        health_bind_address="0",
        max_concurrent_reconciles=workers,
        force_delete_budget=budget,
        shutdown_timeout=1.0,
    )
    manager = Manager(options)
    manager.add(HangingDeletions(gate, unresponsive=unresponsive), type=shoot.technical_id)
    manager.start()
    try:
        return _measure(admin, garden, shoot, objects)
    finally:
        gate.set()
        manager.stop()
        garden.finish(shoot)


def _measure(admin: Client, garden: Garden, shoot: SeedShoot, objects: int) -> Figures:
    namespace = shoot.technical_id
    names = [f"n{number}" for number in range(objects)]
    list_all = partial(admin.list, _INFRASTRUCTURES, namespace)
    wanted = [infrastructure(namespace, name, namespace) for name in names]
    parallel(wanted, garden.deploy, at_once=_DRIVERS)
    wait("ready", lambda: not any(map(not_ready_because, list_all())), 120)
    delete = partial(garden.delete, Infrastructure.KIND, namespace)
    parallel(names, delete, at_once=_DRIVERS)
    garden.mark_deleted(shoot)
    looks = [_threads_and_memory()]

    def is_gone() -> bool:
        looks.append(_threads_and_memory())
        return not list_all()

    garden.force(shoot)
    seconds = wait("gone", is_gone, 120)
    found = admin.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={namespace}")
    threads, memory = (max(values) - values[0] for values in zip(*looks, strict=True))
    return Figures(
        objects=objects,
        recorded=len({orphan["spec"]["object"]["uid"] for orphan in found}),
        seconds=seconds,
        threads_more=threads,
        memory_more=memory,
    )


def _threads_and_memory() -> tuple[int, int]:
    """Return the number of threads, and the resident memory in bytes (proc(5), statm, field 2)."""
    statm = Path("/proc/self/statm").read_text(encoding="ascii")
    return threading.active_count(), int(statm.split()[1]) * 4096


def main() -> None:
    """Measure 1000 objects, 20 workers, a 5 s budget; then again with `unresponsive`."""
    logging.getLogger("generic").setLevel(logging.CRITICAL)
    with Environment() as environment:
        install(environment, [*KINDS, Cluster, *RECORD_KINDS])
        for unresponsive in (False, True):
            took = measure(
                environment.kubeconfig, 1000, workers=20, budget=5.0, unresponsive=unresponsive
            )
            print(
                f"{took.objects} force deletions that never return: the last object gone after "
                f"{took.seconds:.1f} s, {took.recorded} recorded, at most {took.threads_more} "
                f"threads and {took.memory_more / 2**20:.0f} MiB more",
                "(external_resources never returns either)" if unresponsive else "",
            )


if __name__ == "__main__":
    main()
