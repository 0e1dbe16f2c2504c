"""The rehearsal: every scenario really blocks deletions, and a forced one ends them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from actuator.codec import decode
from actuator.errors import NotFound
from actuator.interface import object_class, resource_of
from actuator.v1alpha1 import Extension
from extensions.local import extension
from extensions.local.mounts import MOUNTS
from extensions.local.rehearsal import LocalRehearsal
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.garden import not_ready_because
from generic.testing.rehearsal import Rehearsal, RehearsedShoot
from generic.testing.seed import install_crds
from tests.support.cluster.harness import eventually
from tests.support.objects import builders

CODES = {
    "everything-fails": "ERR_INFRA_DEPENDENCIES",
    "deletion-denied": "ERR_INFRA_UNAUTHORIZED",
}


def test_the_sample_serves_every_kind_in_a_folder_of_the_operators_choice(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCAL_OUTSIDE", str(tmp_path / "a" / "b"))
    manager = Manager(Options())
    extension(manager)
    assert {
        registration.kind.name: registration.types for registration in manager.registrations
    } == {
        "OperatingSystemConfig": ("local-os",),
        "Network": ("local-net",),
        "ContainerRuntime": ("local-runtime",),
        "SelfHostedShootExposure": ("local-exposure",),
        "Extension": ("local-extension",),
        "Mount": (),
    }
    assert (tmp_path / "a" / "b").is_dir()


@pytest.fixture
def rehearsal(tmp_path) -> Iterator[LocalRehearsal]:
    running = LocalRehearsal()
    running.start(tmp_path)
    yield running
    running.stop()


class Played:
    """A shoot of the rehearsal in the seed, under managers with their generated Roles."""

    def __init__(self, rehearsal, seed, start) -> None:
        self.seed = seed
        labels = {"drill": "test"}
        shoot = RehearsedShoot(technical_id=seed.namespace, type=seed.namespace, labels=labels)
        install_crds(seed.client, rehearsal.crds())
        self.actuators = {object_class(actuator): actuator for actuator in rehearsal.actuators()}
        for actuator in self.actuators.values():
            start(actuator)
        self.manifests = rehearsal.manifests(shoot)
        for manifest in self.manifests:
            seed.garden.deploy(manifest)
        eventually(lambda: all(not_ready_because(obj) is None for obj in self.objects()))

    def objects(self) -> list:
        found = []
        for cls in self.actuators:
            name = next(m["metadata"]["name"] for m in self.manifests if m["kind"] == cls.KIND.name)
            try:
                found.append(self.seed.client.get(resource_of(cls.KIND), name, self.seed.namespace))
            except NotFound:
                pass
        return found

    def recorded(self) -> set:
        kinds = {cls.KIND.name: cls for cls in self.actuators}
        return {
            (external_resource.type, external_resource.id)
            for obj in self.objects()
            for external_resource in self.actuators[kinds[obj["kind"]]].external_resources(
                decode(kinds[obj["kind"]], obj)
            )
        }

    def delete(self) -> None:
        for obj in self.objects():
            kind = next(cls.KIND for cls in self.actuators if cls.KIND.name == obj["kind"])
            self.seed.garden.delete(kind, self.seed.namespace, obj["metadata"]["name"])

    def force(self) -> None:
        self.seed.update_cluster(builders.cluster(self.seed.namespace, force="true"))


@pytest.fixture
def played(rehearsal, seed, start) -> Played:
    return Played(rehearsal, seed, start)


def stuck(played) -> dict[str, list[str]]:
    errors = {obj["kind"]: obj["status"].get("lastError") or {} for obj in played.objects()}
    return {kind: error["codes"] for kind, error in errors.items() if error.get("codes")}


def test_it_satisfies_the_protocol_of_the_drill(rehearsal):
    wanted: Rehearsal = rehearsal
    assert set(wanted.scenarios) == set(CODES)
    assert object_class(rehearsal.actuators()[-1]) is Extension, "deleted first, and holds a Mount"
    with pytest.raises(KeyError):
        rehearsal.inject_failure("meteorite")
    rehearsal.stop()
    rehearsal.stop()


def test_a_shoot_has_all_five_kinds_and_existing_resources_are_listed(rehearsal, played, namespace):
    assert len(played.objects()) == 5
    left = rehearsal.remaining_resources()
    assert {(item.type, item.id) for item in left} == played.recorded()
    assert len(left) == 2
    assert all(resource.tags["shoot"] == namespace for resource in left)
    assert all(item.region == rehearsal.region for item in left)


@pytest.mark.parametrize("scenario", CODES)
def test_a_scenario_blocks_the_deletion_until_it_is_forced(rehearsal, played, scenario):
    recorded = played.recorded()
    rehearsal.inject_failure(scenario)
    played.delete()
    eventually(lambda: stuck(played).keys() == {"Network", "Extension"})
    assert stuck(played)["Extension"] == stuck(played)["Network"] == [CODES[scenario]]
    played.force()
    eventually(lambda: not played.objects())
    assert played.seed.client.list(MOUNTS, played.seed.namespace) == []
    left = {(item.type, item.id) for item in rehearsal.remaining_resources()}
    assert left == recorded
    rehearsal.repair_failure()
    assert {(item.type, item.id) for item in rehearsal.remaining_resources()} == recorded


@pytest.mark.parametrize("scenario", CODES)
def test_deletions_succeed_after_the_external_system_is_repaired(
    rehearsal, played, scenario, serve_mounts
):
    serve_mounts()
    rehearsal.inject_failure(scenario)
    played.delete()
    eventually(lambda: stuck(played).keys() == {"Network", "Extension"})
    rehearsal.repair_failure()
    eventually(lambda: not played.objects())
    assert rehearsal.remaining_resources() == []
