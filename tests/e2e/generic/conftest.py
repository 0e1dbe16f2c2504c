"""The drill as a command, whose report is compared with a record of its own."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest

from tests.support.drills.record import FIELDS, another, recording


@pytest.fixture
def drill(command, tmp_path, monkeypatch):
    """Runs a drill in this process; returns its output, and its report if there is one.

    The report is compared with an independent record, which has to contradict each lie.
    """

    def hold(*arguments, status=0):
        with monkeypatch.context() as patched, recording(patched) as records:
            done = command("drill", "--output", tmp_path, *arguments, status=status)
        path = tmp_path / "report.json"
        report = json.loads(path.read_text()) if path.exists() else None
        if report:
            records[-1].arguments = arguments
            differences = records[-1].differences(report)
            omits = ["records"] * ("report" in arguments)  # --break report
            assert [difference.partition(":")[0] for difference in differences] == omits, (
                differences
            )
            assert report["passed"] == (status == 0)
            told = report["evidence"]
            for name in () if omits or told["remainingObjects"] else FIELDS:
                lie = deepcopy(report)
                lie["evidence"][name] = another(lie["evidence"][name])
                assert records[-1].contradicts(lie), f"a lie about {name}"
        return done, report

    return hold
