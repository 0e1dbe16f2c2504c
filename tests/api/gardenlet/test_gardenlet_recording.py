"""The simulated gardenlet writes as the real one did, whose writes are in recording.json."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from actuator.interface import resource_of
from generic.controller.predicates import OPERATION, TIMESTAMP
from generic.testing.garden import Garden, GardenletFlows, order, resource_of_manifest
from generic.testing.landscape.programs import gardener_version
from hack.gardenlet.comparison import unexplained, version_problem
from hack.gardenlet.protocol import Recording, read
from hack.gardenlet.reduction import CREATE, FORCE, HIBERNATE, MIGRATE, REMOVE, RESTORE, WAKE
from tests.support.drills.gardenlet_flows import Played, kinds_of

FILE = Path(__file__).with_name("recording.json")
CONFIRM = "confirmation.gardener.cloud/deletion"


@pytest.fixture(scope="module")
def recorded() -> Recording:
    return read(FILE.read_text())


@pytest.fixture
def played(environment, admin, recorded) -> Played:
    return Played(admin, environment.kubeconfig, kinds_of(recorded))


def test_the_recording_is_of_the_gardener_that_the_project_uses(recorded):
    assert version_problem(recorded, gardener_version()) is None


def test_each_known_difference_has_a_reason(recorded):
    assert recorded.known
    assert all(entry.reason and entry.differences for entry in recorded.known)


def test_the_simulated_gardenlet_writes_as_the_real_one(recorded, played):
    assert unexplained(recorded, played.record(*recorded.flows)) == []


@pytest.fixture
def found(recorded, played) -> Callable[..., list[str]]:
    """The differences of some flows, if a part of the simulation is another one."""

    def find(*flows: str, **changes: Any) -> list[str]:
        simulated = attrs.evolve(played, **changes).record(*flows)
        kept = {flow: recorded.flows[flow] for flow in flows}
        left = unexplained(attrs.evolve(recorded, flows=kept), simulated)
        return [item for item in left if not item.startswith("known")]

    return find


class AsksLater(Garden):
    """Writes the timestamp of a request after the request."""

    def _request(self, operation):
        return {OPERATION: operation}

    def deploy(self, manifest, operation="reconcile", resting=order.ON_REQUEST):
        return self._stamped(super().deploy(manifest, operation, resting))

    def ask(self, kind, namespace, name, operation):
        super().ask(kind, namespace, name, operation)
        self._stamped(self.client.get(resource_of(kind), name, namespace))

    def _stamped(self, obj):
        meta = obj["metadata"]
        if OPERATION not in (meta.get("annotations") or {}):
            return obj
        patch = {"metadata": {"annotations": {TIMESTAMP: self._timestamp()}}}
        where = resource_of_manifest(obj), meta["name"], meta.get("namespace", "")
        return self.client.patch(*where, patch)


class ConfirmsNothing(Garden):
    """Deletes without the confirmation that gardener-resource-manager asks for."""

    def delete(self, kind, namespace, name, *, force=False):
        if kind.name in order.UNCONFIRMED:
            super().delete(kind, namespace, name, force=force)
        else:
            self.client.delete(resource_of(kind), name, namespace)


class ConfirmsLater(Garden):
    """Confirms a deletion that it requested before."""

    def delete(self, kind, namespace, name, *, force=False):
        self.client.delete(resource_of(kind), name, namespace)
        super().delete(kind, namespace, name, force=force)


def hasty(*unawaited: str) -> type[GardenletFlows]:
    """A flow that does not wait for some kinds to be ready or migrated."""

    class Hasty(GardenletFlows):
        def wait(self, kinds, missing, manifests=()):
            awaited = [kind for kind in kinds if kind.name not in unawaited]
            super().wait(awaited, missing, manifests)

        def _check_there(self, *_):
            """An object that is asked for is still being deleted, because nothing waited for it."""

    return Hasty


@pytest.mark.parametrize(
    ("unawaited", "waits"),
    [
        ("BackupEntry Infrastructure", {CREATE: "Infrastructure before DNSRecord"}),
        ("ControlPlane", {REMOVE: "ControlPlane before deletion of Worker"}),
        (
            "DNSRecord Infrastructure Worker",
            {
                HIBERNATE: "Worker before deletion of DNSRecord",
                WAKE: "DNSRecord before ControlPlane",
            },
        ),
        (
            "BackupEntry DNSRecord Infrastructure",
            {
                MIGRATE: "Infrastructure before deletion of Infrastructure",
                RESTORE: "Infrastructure before ControlPlane",
            },
        ),
        ("Worker", {FORCE: "deletion of Worker before deletion of Cluster"}),
    ],
)
def test_waits_that_are_removed_are_found(found, unawaited, waits):
    kinds = unawaited.split()
    expected = {f"{flow}: only gardenlet waits for {wait}" for flow, wait in waits.items()}
    assert expected <= {*found(*waits, flow=hasty(*kinds), slower=kinds)}


STAMP = f"annotate {TIMESTAMP}"
DELETION = f"annotate {CONFIRM}=true, {TIMESTAMP}, then delete"


@pytest.mark.parametrize(
    "written",
    [
        {CREATE: f"create with {OPERATION}=reconcile, then {STAMP}"},
        {
            HIBERNATE: f"annotate {OPERATION}=reconcile, then {STAMP}",
            WAKE: f"annotate {OPERATION}=reconcile, then {STAMP}",
        },
        {
            MIGRATE: f"annotate {OPERATION}=migrate, then {STAMP}, then {DELETION}",
            RESTORE: (
                f"create with {OPERATION}=wait-for-state, then {STAMP}, "
                f"then write status.state, then annotate {OPERATION}=restore"
            ),
        },
    ],
)
def test_an_annotation_in_another_order_is_found(found, written):
    expected = {
        f"{flow}: Network: only the simulation writes [{text}]" for flow, text in written.items()
    }
    assert expected <= {*found(*written, garden=AsksLater)}


@pytest.mark.parametrize(
    ("garden", "written"),
    [
        (ConfirmsNothing, "delete"),
        (ConfirmsLater, f"delete, then annotate {CONFIRM}=true, {TIMESTAMP}"),
    ],
)
def test_a_deletion_without_a_confirmation_before_it_is_found(found, garden, written):
    differences = found(REMOVE, FORCE, garden=garden)
    for flow in (REMOVE, FORCE):
        assert f"{flow}: Worker: only the simulation writes [{written}]" in differences
