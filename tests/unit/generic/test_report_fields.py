"""Each field of a drill's report is compared with the real events."""

import attrs
import pytest

from actuator.meta import wire_name
from generic.testing.drill.evidence import Evidence
from generic.testing.drill.landscape.rules import LandscapeEvidence
from generic.testing.drill.migration.rules import MigrationEvidence
from tests.support.drills import landscape_record, migration_record
from tests.support.drills import record as drill_record


@pytest.mark.parametrize(
    ("fields", "report"),
    [
        (drill_record.FIELDS, Evidence),
        (migration_record.FIELDS, MigrationEvidence),
        (landscape_record.FIELDS, LandscapeEvidence),
    ],
    ids=["force deletion", "migration", "landscape"],
)
def test_a_field_that_nothing_compares_is_found(fields, report):
    assert fields.keys() == {wire_name(field) for field in attrs.fields(report)}
