"""Every running manager learns whether its clock is steady, whatever it serves."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from generic import Manager, Options
from generic.manager.leaderelection import LEASES
from tests.support.cluster.harness import Script, connected, eventually

pytestmark = pytest.mark.usefixtures("short_window")


def is_steady(manager):
    """Whether its own samples say so; takes none."""
    return manager._clock._unsteady_since == math.inf


def test_a_manager_without_deletions_has_a_steady_clock(start, script):
    manager = start(script)
    assert not is_steady(manager)
    eventually(lambda: is_steady(manager))


def test_a_standby_has_a_steady_clock_when_it_begins_to_lead(start, admin, namespace):
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": "another", "leaseDurationSeconds": 3600, "renewTime": now}
    meta = {"name": "one", "namespace": namespace}
    lease = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": meta, "spec": spec}
    admin.create(LEASES, lease)
    standby = start(Script(), leader_election=True, leader_election_id="one")
    eventually(lambda: is_steady(standby))
    assert not any(controller.started for controller, _ in standby._running.wiring.controllers)


def test_a_manager_without_controllers_has_a_steady_clock(environment, admin, namespace):
    addresses = dict.fromkeys(("metrics_bind_address", "health_bind_address"), "0")
    options: Any = {**addresses, "leader_election_namespace": namespace}
    manager = Manager(Options(**options))
    with connected(environment, admin, manager, namespace):
        manager.start()
        eventually(lambda: is_steady(manager))
