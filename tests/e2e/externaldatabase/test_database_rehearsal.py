"""One drill of the sample: stuck, forced, on record."""

import json

REHEARSAL = "extensions.externaldatabase.rehearsal:DatabaseRehearsal"


def test_a_drill_leaves_databases_and_says_so(command, tmp_path):
    done = command("drill", REHEARSAL, "--shoots", 2, "--output", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    text = json.dumps(report)
    for type in ("postgres::Database", "postgres::Login", "mysql::Database", "mysql::Login"):
        assert type in text
