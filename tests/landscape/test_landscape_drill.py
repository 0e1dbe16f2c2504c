"""`actuator drill --landscape`, as a user runs it: the report has the view of the Shoot owner."""

import json
import tempfile

from generic.testing.drill.landscape.rules import LandscapeEvidence
from generic.testing.drill.report import read_json
from tests.support.drills.landscape_record import lies, recording_landscapes
from tests.support.pages.commands import run_command


def test_a_drill_with_a_real_gardener_holds(tmp_path, processes_of, monkeypatch):
    """Its report is compared, field by field, with an independent record."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with monkeypatch.context() as patched, recording_landscapes(patched) as records:
        run_command("drill", "--landscape", "--output", tmp_path)
    path = tmp_path / "report.json"
    report = json.loads(path.read_text())
    assert records[-1].differences(report) == []
    for name, lie in lies(report):
        assert records[-1].contradicts(lie), f"a lie about {name}"
    evidence, findings = read_json(path, LandscapeEvidence)
    assert all(finding.holds for finding in findings)
    (shoot,) = evidence.shoots
    refused, *_, accepted = shoot.answers
    assert "deletionTimestamp is nil" in refused.refusal
    assert accepted.refusal == ""
    assert "ERR_INFRA_UNAUTHENTICATED" in accepted.while_
    assert {"Infrastructure", "ControlPlane", "Worker"} <= {life.kind for life in evidence.lives}
    assert "What the owner of s1 saw" in (tmp_path / "report.html").read_text()
    assert processes_of(tmp_path) == []
