"""The rehearsal: the protocol of the drill, and one drill that deletes Targets first."""

from __future__ import annotations

import json

import pytest

from actuator.interface import object_class
from extensions.helmreleaseproxy import extension
from extensions.helmreleaseproxy.rehearsal import HelmReleaseProxyRehearsal
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.rehearsal import Rehearsal, RehearsedShoot

REFERENCE = "extensions.helmreleaseproxy.rehearsal:HelmReleaseProxyRehearsal"
SHOOT = RehearsedShoot(technical_id="shoot--a--b", type="x", labels={"drill": "test"})


def test_the_sample_serves_both_kinds_with_charts_of_the_operators_choice(tmp_path, monkeypatch):
    monkeypatch.setenv("HELM_CHARTS", str(tmp_path))
    manager = Manager(Options())
    extension(manager)
    kinds = {
        registration.kind.name: registration.actuator for registration in manager.registrations
    }
    assert kinds.keys() == {"HelmChartProxy", "HelmReleaseProxy"}


def test_it_satisfies_the_protocol_of_the_drill(tmp_path):
    rehearsal = HelmReleaseProxyRehearsal()
    wanted: Rehearsal = rehearsal
    assert set(wanted.scenarios) == {"everything-fails", "deletion-denied", "target-first"}
    rehearsal.stop()
    rehearsal.start(tmp_path)
    try:
        kinds = [object_class(actuator).KIND.name for actuator in rehearsal.actuators()]
        made = [manifest["kind"] for manifest in rehearsal.manifests(SHOOT)]
        assert made == ["Target", "Secret", *kinds]
        assert rehearsal.remaining_resources() == []
        with pytest.raises(KeyError):
            rehearsal.inject_failure("meteorite")
        rehearsal.repair_failure()
    finally:
        rehearsal.stop()
        rehearsal.stop()


def test_a_drill_in_which_the_targets_are_deleted_first_leaves_nothing(command, tmp_path):
    flags = ("--shoots", "1", "--scenario", "target-first", "--output", tmp_path)
    command("drill", *flags, REFERENCE)
    seen = json.loads((tmp_path / "report.json").read_text())["evidence"]
    lives = [life for life in seen["lives"] if not life["bad"]]
    assert sorted((live["kind"], live["made"]) for live in lives) == [
        ("HelmChartProxy", False),
        ("HelmReleaseProxy", False),
        ("HelmReleaseProxy", True),
    ]
    assert {tuple(life["outcomes"]) for life in lives} == {("deleted",)}
    assert seen["records"] == seen["resourcesAfter"] == []
