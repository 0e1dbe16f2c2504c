"""--self-hosted-shoot-cluster: the machine API may be absent, and may be installed later.

Before, the manager asked for it once as it started: an error of any other kind ended the start, and
a machine API that was installed later was never noticed.
"""

from __future__ import annotations

import pytest

from actuator.v1alpha1 import Cluster, Worker
from generic.controller.watch import MACHINES as MACHINE_WATCH
from generic.kube.problems import ABSENT
from generic.library.machines import MACHINE_KINDS, MACHINES
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.reconciler.orphans import RECORD_KINDS
from generic.testing.envtest import Environment
from generic.testing.seed import install
from tests.support.cluster.harness import Script, eventually


@pytest.fixture(scope="module")
def seed_without_machines():
    with Environment() as environment:
        install(environment, [Cluster, *RECORD_KINDS, Worker])
        yield environment


@pytest.fixture
def start(seed_without_machines):
    """Starts a manager of Workers that watches Machines."""
    managers = []

    def starter(*, self_hosted: bool) -> Manager:
        options = Options(
            kubeconfig=seed_without_machines.kubeconfig,
            metrics_bind_address="0",
            health_bind_address="0",
            self_hosted_shoot_cluster=self_hosted,
        )
        manager = Manager(options)
        manager.add(Script(Worker), type="x", watches=[MACHINE_WATCH])
        manager.start()
        managers.append(manager)
        return manager

    yield starter
    for manager in managers:
        manager.stop()


def machines(manager):
    wiring = manager._running.wiring
    return next(informer for informer in wiring.informers if informer.name == str(MACHINES))


@pytest.mark.parametrize("self_hosted", [True, False])
def test_an_absent_machine_api_is_only_reported_outside_self_hosted_shoots(start, self_hosted):
    manager = start(self_hosted=self_hosted)
    eventually(lambda: machines(manager).absent)
    eventually(lambda: all(check() is None for check in manager.check_ready().values()))
    remarks = [] if self_hosted else [f"{MACHINES}: {ABSENT}"]
    assert manager._running.probes.remarks() == remarks


def test_a_machine_api_that_is_installed_later_is_watched(start, seed_without_machines):
    manager = start(self_hosted=True)
    eventually(lambda: machines(manager).absent)
    install(seed_without_machines, MACHINE_KINDS)
    eventually(lambda: machines(manager).synced, 45)
