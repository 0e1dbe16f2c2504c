"""The rehearsal: it is what drill and explorer want, and the drill of it holds."""

from __future__ import annotations

import json

import pytest

from extensions.relations import extension
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
    served = {one.kind.name: (one.types, len(one.watches)) for one in manager.registrations}
    types = ("relations",)
    assert served == {"Team": (types, 1), "Mirror": (types, 2), "Entry": (types, 0)}
    assert (tmp_path / "mine.sqlite").is_file()


def test_it_is_what_drill_and_explorer_want(rehearsal):
    wanted: Rehearsal = rehearsal
    assert set(wanted.scenarios) == {"everything-fails", "deletion-denied"}
    assert CombinedRehearsal([wanted]).is_shared
    assert type(wanted).mend_outside is not Rehearsal.mend_outside
    assert type(wanted).observe is not Rehearsal.observe
    with pytest.raises(KeyError):
        rehearsal.break_outside("meteorite")
    rehearsal.stop()
    rehearsal.stop()


def test_what_never_migrates_has_no_migration_among_its_rounds():
    assert "migration" not in {
        one.scenario for one in rounds(CombinedRehearsal([RelationsRehearsal()]))
    }


@pytest.mark.parametrize("scenario", RelationsRehearsal.scenarios)
def test_what_was_broken_is_mended_with_all_that_was_in_it(rehearsal, tmp_path, scenario):
    other = RelationsRehearsal()
    other.attach(rehearsal.share())
    [entries, *_] = other.actuators()
    entries._register.put({"namespace": "a", "name": "x", "uid": "1"}, "a")
    there = rehearsal.left_outside()
    rehearsal.break_outside(scenario)
    assert rehearsal.left_outside() == there
    assert len(there) == 1
    rehearsal.mend_outside()
    entries._register.remove({"uid": "1"})
    assert rehearsal.left_outside() == []


@pytest.mark.usefixtures("borrowed")
def test_the_drill_holds_and_records_every_entry(tmp_path):
    assert_rehearsal(RelationsRehearsal, "everything-fails", shoots=2, output=tmp_path)
    evidence = json.loads((tmp_path / "report.json").read_text())["evidence"]
    assert len(evidence["records"]) == len(evidence["outsideAfter"]) == 2
    assert {life["kind"] for life in evidence["lives"]} == {"Team", "Mirror", "Entry"}
