"""Simulated Route 53 changes records by the documented rules, for generated sequences of batches.

Source: Amazon Route 53 API reference, "ChangeResourceRecordSets". CREATE fails if the record
exists, DELETE needs the values that it has, UPSERT creates or replaces it, and a batch is applied
completely or not at all.
"""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto.route53.exceptions import Route53ClientError
from moto.route53.models import Route53Backend

from extensions.aws import simulated_route53
from extensions.aws.records import record_set

ZONE = "shoot.test"

record_sets = st.builds(
    record_set,
    st.sampled_from([f"a.{ZONE}", f"A.{ZONE}.", f"b.{ZONE}", f"*.{ZONE}"]),
    st.sampled_from(["A", "TXT"]),
    st.sampled_from([60, 120]),
    st.lists(st.sampled_from(["192.0.2.1", "192.0.2.2"]), min_size=1, max_size=2, unique=True),
)
changes = st.tuples(st.sampled_from(["CREATE", "UPSERT", "DELETE"]), record_sets)
batches = st.lists(st.lists(changes, min_size=1, max_size=3), min_size=1, max_size=8)


class Refused(Exception):
    pass


def expected(before, batch):
    """The records of a zone after a batch, by the documented rules."""
    records = dict(before)
    for action, wanted in batch:
        key = wanted["Name"].lower().removesuffix("."), wanted["Type"]
        values = sorted(resource_record["Value"] for resource_record in wanted["ResourceRecords"])
        content = wanted["TTL"], tuple(values)
        if action == "CREATE" and key in records:
            raise Refused
        if action == "DELETE":
            if records.get(key) != content:
                raise Refused
            del records[key]
        else:
            records[key] = content
    return records


class Zone:
    """A zone of moto; `change` replaces its change of records."""

    def __init__(self, change):
        self._backend = Route53Backend("us-east-1", "123456789012")
        self._zone = self._backend.create_hosted_zone(f"{ZONE}.", private_zone=False)
        self._change = change

    def apply(self, batch):
        """Apply a batch; return "accepted", or the code of the error."""
        sent = [{"Action": a, "ResourceRecordSet": deepcopy(wanted)} for a, wanted in batch]
        try:
            self._change(self._backend, self._zone.id, sent)
        except Route53ClientError as error:
            return str(error.code)
        return "accepted"

    def records(self):
        """Name and type of each record, with its content. Fails if there are two."""
        listed = self._backend.list_resource_record_sets(self._zone.id, "", "", 300)[0]
        found = {}
        for item in listed:
            if item.type not in ("NS", "SOA"):
                key = item.name.removesuffix("."), item.type
                assert key not in found, f"{key} exists twice"
                assert item.ttl is not None
                found[key] = int(item.ttl), tuple(sorted(item.records))
        return found


def check(change, batches):
    """The law: after each batch, answer and content are those of the rules."""
    zone = Zone(change)
    records: dict[Any, Any] = {}
    for batch in batches:
        try:
            records = expected(records, batch)
            answer = "accepted"
        except Refused:
            answer = "InvalidChangeBatch"
        assert zone.apply(batch) == answer
        assert zone.records() == records


@given(batches)
def test_records_change_by_the_documented_rules(batches):
    check(simulated_route53.change, batches)


ONE = record_set(f"a.{ZONE}", "A", 60, ["192.0.2.1"])
OTHER = record_set(f"a.{ZONE}", "A", 60, ["192.0.2.2"])
LATER = record_set(f"b.{ZONE}", "A", 60, ["192.0.2.1"])
MISTAKES = {
    "created again after its deletion": [
        [("CREATE", ONE), ("CREATE", LATER)],
        [("DELETE", ONE)],
        [("CREATE", ONE)],
    ],
    "created twice": [[("CREATE", ONE)], [("CREATE", OTHER)]],
    "deleted by old values": [[("CREATE", ONE)], [("UPSERT", OTHER)], [("DELETE", ONE)]],
    "applied in part": [[("CREATE", LATER)], [("CREATE", ONE), ("DELETE", OTHER)]],
}


@pytest.mark.parametrize("batches", MISTAKES.values(), ids=MISTAKES)
def test_the_law_finds_each_mistake_of_moto(batches):
    check(simulated_route53.change, batches)
    with pytest.raises(AssertionError):
        check(simulated_route53._change, batches)  # moto's own, also where it was corrected


def test_the_law_finds_a_batch_that_is_applied_one_change_at_a_time():
    def careless(backend, zone_id, changes):
        for change in changes:
            simulated_route53.change(backend, zone_id, [change])

    with pytest.raises(AssertionError):
        check(careless, MISTAKES["applied in part"])


def test_an_existing_record_is_named_as_route_53_names_it():
    zone = Route53Backend("us-east-1", "123456789012")
    id = zone.create_hosted_zone(f"{ZONE}.", private_zone=False).id
    create = [{"Action": "CREATE", "ResourceRecordSet": ONE}]
    simulated_route53.change(zone, id, deepcopy(create))
    with pytest.raises(Route53ClientError, match="but it already exists"):
        simulated_route53.change(zone, id, deepcopy(create))
