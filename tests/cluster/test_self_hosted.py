"""--self-hosted-shoot-cluster: Machines are watched only where there is a machine API."""

from __future__ import annotations

import pytest
from harness import Script

from actuator.v1alpha1 import Worker
from generic.controller.watch import MACHINES as MACHINE_WATCH
from generic.library.machines import MACHINE_KINDS, MACHINES
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.envtest import Environment
from generic.testing.seed import install


@pytest.fixture
def watched():
    """The resources that a manager of Workers watches, by whether it is in a self-hosted shoot."""
    with Environment() as environment:

        def find(*, self_hosted: bool) -> set[str]:
            options = Options(
                kubeconfig=environment.kubeconfig,
                metrics_bind_address="0",
                health_bind_address="0",
                self_hosted_shoot_cluster=self_hosted,
            )
            manager = Manager(options)
            manager.add(Script(Worker), type="x", watches=[MACHINE_WATCH])
            manager.start()
            try:
                return {informer.name for informer in manager._running.wiring.informers}
            finally:
                manager.stop()

        yield environment, find


def test_a_self_hosted_shoot_without_a_machine_api_watches_no_machines(watched):
    environment, find = watched
    assert str(MACHINES) not in find(self_hosted=True)
    assert str(MACHINES) in find(self_hosted=False)
    install(environment, MACHINE_KINDS)
    assert str(MACHINES) in find(self_hosted=True)
