"""JSON and YAML that commands print: keys in camelCase, whatever class the values have."""

import json
import re

import attrs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from actuator.meta import Condition, LastOperationState, wire_name
from generic.kube.plain import json_text, plain
from generic.testing.drill.evidence import Evidence
from generic.testing.drill.judge import Finding
from generic.testing.drill.landscape.rules import LandscapeEvidence
from generic.testing.drill.migration.rules import MigrationEvidence
from generic.testing.explorer.judge import ExplorerFailure
from generic.tools.drain.release import Row
from generic.tools.explain.facts import Explanation, Overview, Subject
from generic.tools.explain.shoot import ShootExplanation
from generic.tools.explain.stuck import Stuck
from generic.tools.packaging.chart import yaml_text

PRINTED = (
    Evidence,
    LandscapeEvidence,
    MigrationEvidence,
    Finding,
    ExplorerFailure,
    Row,
    Explanation,
    Overview,
    ShootExplanation,
    Stuck,
)
CAMEL = re.compile(r"[a-z][a-zA-Z0-9]*")


def classes_in(annotation):
    """The attrs classes that an annotation names."""
    if attrs.has(annotation):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from classes_in(part)


@pytest.mark.parametrize("cls", PRINTED)
def test_each_printed_field_has_a_name_in_camel_case(cls):
    seen = set()
    left = [cls]
    while left:
        one = attrs.resolve_types(left.pop())
        seen.add(one)
        for field in attrs.fields(one):
            assert CAMEL.fullmatch(wire_name(field)), (one, field.name)
            left += [other for other in classes_in(field.type) if other not in seen]


def test_a_name_that_python_reserves_and_unknown_fields_are_not_printed():
    subject = Subject(
        api_version="v1", kind="K", namespace="", name="n", uid="u", type="t", class_="shoot"
    )
    told = plain([subject, Condition(type="A", status="True")])
    assert told[0]["class"] == "shoot"
    assert told[0]["apiVersion"] == "v1"
    assert "extra" not in told[1]
    assert "lastUpdateTime" in told[1]


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.text(), st.sampled_from(LastOperationState)),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
    )
)
def test_plain_data_stay_and_read_back_equal_from_json_and_yaml(data):
    told = json.loads(json_text(data))
    assert told == json.loads(json.dumps(data))
    assert list(yaml.safe_load_all(yaml_text(plain(data)))) == [told]
