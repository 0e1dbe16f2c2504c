"""One drill of the sample: stuck, forced, recorded."""

import pytest

from extensions.externaldatabase.rehearsal import DatabaseRehearsal
from generic.testing.assertions import assert_rehearsal


@pytest.mark.usefixtures("borrowed")
def test_a_drill_leaves_databases_and_reports_them(tmp_path):
    assert_rehearsal(DatabaseRehearsal, shoots=2, output=tmp_path)
    report = (tmp_path / "report.json").read_text()
    for type in ("postgres::Database", "postgres::Login", "mysql::Database", "mysql::Login"):
        assert type in report
