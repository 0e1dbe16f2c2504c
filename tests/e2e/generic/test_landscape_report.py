"""The report of a drill in a landscape is true: it is compared with an independent record.

Garden, gardenlet and the processes of Shoots are simulated; the seed, the manager, Orphans, and all
requests of the drill are real. `tests/landscape` compares the same with a real Gardener.
"""

from __future__ import annotations

import json

import pytest

from generic.testing.landscape import memory
from generic.tools.cli import landscape_extensions
from tests.support.drills.landscape_garden import LOST, NEVER_CODED, simulated_landscape
from tests.support.drills.landscape_record import lies, recording_landscapes
from tests.support.pages.commands import run_command

REHEARSAL = "tests.support.drills.landscape_garden:OwnFinalizer"


@pytest.fixture
def held(tmp_path, monkeypatch):
    """Holds a drill on a cluster of its own; returns its record and its report."""

    def hold(*arguments, status):
        monkeypatch.setattr(landscape_extensions, "landscape_world", simulated_landscape)
        monkeypatch.setattr(memory, "require_memory", lambda *_: None)
        monkeypatch.setattr("generic.testing.drill.landscape.run._END_SECONDS", 0.5)
        with monkeypatch.context() as patched, recording_landscapes(patched) as records:
            given = ("drill", "--landscape", REHEARSAL, "--output", tmp_path, *arguments)
            run_command(*given, status=status)
        return records[-1], json.loads((tmp_path / "report.json").read_text())

    return hold


def test_each_field_of_the_report_agrees_with_the_record(held):
    record, report = held("--shoots", "2", "--scenario", "deletion-denied", status=1)
    assert record.differences(report) == []
    told = report["evidence"]
    assert [finding["rule"] for finding in report["findings"] if finding["problems"]] == [
        "programs"
    ]
    assert told["processes"] == [f"shoot--dev--s1{LOST}"]
    assert told["finalizers"]["Network"] == ["example.org/network"]
    assert all(life["stuck"] for life in told["lives"])
    (repair,) = told["repairs"]
    assert NEVER_CODED in repair
    assert [story["forced"] is not None for story in told["shoots"]] == [True, False]
    assert told["records"]
    for name, lie in lies(report):
        assert record.contradicts(lie), f"a lie about {name}"
