"""The rehearsal: what the drill wants, and one drill in which the Targets go first."""

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
    kinds = {one.kind.name: one.actuator for one in manager.registrations}
    assert kinds.keys() == {"HelmChartProxy", "HelmReleaseProxy"}


def test_it_is_what_the_drill_wants(tmp_path):
    rehearsal = HelmReleaseProxyRehearsal()
    wanted: Rehearsal = rehearsal
    assert set(wanted.scenarios) == {"everything-fails", "deletion-denied", "target-first"}
    rehearsal.stop()
    rehearsal.start(tmp_path)
    try:
        kinds = [object_class(one).KIND.name for one in rehearsal.actuators()]
        made = [one["kind"] for one in rehearsal.manifests(SHOOT)]
        assert made == ["Target", "Secret", *kinds]
        assert rehearsal.left_outside() == []
        with pytest.raises(KeyError):
            rehearsal.break_outside("meteorite")
        rehearsal.mend_outside()
    finally:
        rehearsal.stop()
        rehearsal.stop()


def test_a_drill_in_which_the_targets_are_deleted_first_leaves_nothing(command, tmp_path):
    flags = ("--shoots", "1", "--scenario", "target-first", "--output", tmp_path)
    command("drill", *flags, REFERENCE)
    seen = json.loads((tmp_path / "report.json").read_text())["evidence"]
    lives = [life for life in seen["lives"] if not life["bad"]]
    assert sorted((one["kind"], one["made"]) for one in lives) == [
        ("HelmChartProxy", False),
        ("HelmReleaseProxy", False),
        ("HelmReleaseProxy", True),
    ]
    assert {tuple(life["outcomes"]) for life in lives} == {("deleted",)}
    assert seen["records"] == seen["outsideAfter"] == []
