"""`actuator drill --landscape`, as a user runs it: the report has what the owner of a Shoot saw."""

import os
import subprocess
import sys

from generic.testing.drill.landscape.evidence import LandscapeEvidence
from generic.testing.drill.report import read_json

PROGRAM = "from generic.tools.cli.main import main; main()"


def test_a_drill_with_a_real_gardener_holds(tmp_path, processes_of):
    command = [sys.executable, "-c", PROGRAM, "drill", "--landscape"]
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    evidence, findings = read_json(tmp_path / "report.json", LandscapeEvidence)
    assert all(finding.holds for finding in findings)
    (shoot,) = evidence.shoots
    refused, *_, accepted = shoot.answers
    assert "deletionTimestamp is nil" in refused.refusal
    assert accepted.refusal == ""
    assert "ERR_INFRA_UNAUTHENTICATED" in accepted.while_
    assert {"Infrastructure", "ControlPlane", "Worker"} <= {life.kind for life in evidence.lives}
    assert "What the owner of s1 saw" in (tmp_path / "report.html").read_text()
    assert processes_of(tmp_path) == []
