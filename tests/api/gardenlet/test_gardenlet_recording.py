"""The simulated gardenlet writes as the real one did, whose writes are in recording.json."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from gardenlet_flows import Played, kinds_of

from actuator.interface import resource_of
from generic.controller.predicates import OPERATION, TIMESTAMP
from generic.testing.garden import Garden, order, resource_of_manifest
from generic.testing.landscape.programs import gardener_version
from hack.gardenlet.comparison import unexplained, version_problem
from hack.gardenlet.protocol import Recording, read
from hack.gardenlet.reduction import CREATE, FORCE, REMOVE

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
    assert all(entry.reason and entry.differences for entry in recorded.known)


def test_the_simulated_gardenlet_writes_as_the_real_one(recorded, played):
    assert unexplained(recorded, played.record(CREATE, REMOVE, FORCE)) == []


@pytest.fixture
def found(recorded, played) -> Callable[..., list[str]]:
    """The differences of one flow, if a part of the simulation is another one."""

    def find(flow: str, **changes: Any) -> list[str]:
        simulated = attrs.evolve(played, **changes).record(flow)
        flows = {flow: recorded.flows[flow]}
        left = unexplained(attrs.evolve(recorded, flows=flows), simulated)
        return [one for one in left if not one.startswith("known")]

    return find


def test_a_wait_that_is_removed_is_found(found, monkeypatch):
    together = [frozenset().union(*order.CREATION[1:4]), *order.CREATION[4:]]
    monkeypatch.setattr(order, "CREATION", together)
    differences = found(CREATE)
    expected = "create: only gardenlet waits for Infrastructure before it writes ControlPlane"
    assert expected in differences


class AsksLater(Garden):
    """Creates an object without a request, and annotates it afterwards."""

    def deploy(self, manifest, operation="reconcile"):
        created = self.client.create(resource_of_manifest(manifest), self.complete(manifest))
        patch = {"metadata": {"annotations": self._request(operation)}}
        where = created["metadata"]
        resource = resource_of_manifest(manifest)
        return self.client.patch(resource, where["name"], where["namespace"], patch)


class ConfirmsNothing(Garden):
    """Deletes without the confirmation that gardener-resource-manager asks for."""

    def delete(self, kind, namespace, name, *, force=False):
        self.client.delete(resource_of(kind), name, namespace)


class ConfirmsLater(Garden):
    """Confirms a deletion that it requested before."""

    def delete(self, kind, namespace, name, *, force=False):
        self.client.delete(resource_of(kind), name, namespace)
        super().delete(kind, namespace, name, force=force)


def test_an_annotation_that_is_written_later_is_found(found):
    written = f"create, then annotate {OPERATION}=reconcile, {TIMESTAMP}"
    assert f"create: Infrastructure: only the simulation writes [{written}]" in found(
        CREATE, garden=AsksLater
    )


@pytest.mark.parametrize(
    ("garden", "written"),
    [
        (ConfirmsNothing, "delete"),
        (ConfirmsLater, f"delete, then annotate {CONFIRM}=true, {TIMESTAMP}"),
    ],
)
def test_a_deletion_without_a_confirmation_before_it_is_found(found, garden, written):
    assert f"delete: Worker: only the simulation writes [{written}]" in found(REMOVE, garden=garden)
