"""The rehearsal: it satisfies drill and explorer, and its drill passes."""

from __future__ import annotations

import json

import pytest

from extensions.relations import extension
from extensions.relations.external import Entries
from extensions.relations.rehearsal import RelationsRehearsal
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.assertions import assert_rehearsal
from generic.testing.drill.all import rounds
from generic.testing.rehearsal import CombinedRehearsal, Rehearsal


@pytest.fixture
def rehearsal(tmp_path):
    running = RelationsRehearsal()
    running.start(tmp_path)
    yield running
    running.stop()


def test_the_sample_serves_every_kind_with_a_register_of_the_operators_choice(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("RELATIONS_REGISTER", str(tmp_path / "mine.sqlite"))
    manager = Manager(Options())
    extension(manager)
    served = {
        registration.kind.name: (registration.types, len(registration.watches))
        for registration in manager.registrations
    }
    types = ("relations",)
    assert served == {"Team": (types, 1), "Mirror": (types, 2), "Entry": (types, 0)}
    assert (tmp_path / "mine.sqlite").is_file()


def test_it_satisfies_the_protocol_of_drill_and_explorer(rehearsal):
    wanted: Rehearsal = rehearsal
    assert set(wanted.scenarios) == {"everything-fails", "deletion-denied"}
    assert CombinedRehearsal([wanted]).is_shared
    assert type(wanted).repair_failure is not Rehearsal.repair_failure
    assert type(wanted).observe is not Rehearsal.observe
    with pytest.raises(KeyError):
        rehearsal.inject_failure("meteorite")
    rehearsal.stop()
    rehearsal.stop()


def test_a_rehearsal_without_migration_has_no_such_round():
    assert "migration" not in {
        round_.scenario for round_ in rounds(CombinedRehearsal([RelationsRehearsal()]))
    }


@pytest.mark.parametrize("scenario", RelationsRehearsal.scenarios)
def test_the_repaired_register_still_has_its_entries(rehearsal, tmp_path, scenario):
    other = RelationsRehearsal()
    other.attach(rehearsal.share())
    [entries, *_] = other.actuators()
    assert isinstance(entries, Entries)
    entries._register.put({"namespace": "a", "name": "x", "uid": "1"}, "a")
    there = rehearsal.remaining_resources()
    rehearsal.inject_failure(scenario)
    assert rehearsal.remaining_resources() == there
    assert len(there) == 1
    rehearsal.repair_failure()
    entries._register.remove({"uid": "1"})
    assert rehearsal.remaining_resources() == []


@pytest.mark.usefixtures("borrowed")
def test_the_drill_holds_and_records_every_entry(tmp_path):
    assert_rehearsal(RelationsRehearsal, "everything-fails", shoots=2, output=tmp_path)
    evidence = json.loads((tmp_path / "report.json").read_text())["evidence"]
    assert len(evidence["records"]) == len(evidence["resourcesAfter"]) == 2
    assert {life["kind"] for life in evidence["lives"]} == {"Team", "Mirror", "Entry"}
