"""DNSRecord on (simulated) Route 53: right zone, created once; records of others stay."""

from __future__ import annotations

from typing import Any

import pytest

from actuator import Cluster, ConfigurationError, ErrorCode, RequeueAfter
from extensions.aws.cloud import Cloud
from extensions.aws.dnsrecord import AwsDnsRecord
from extensions.aws.errors import CloudError
from extensions.aws.records import choose_zone, comment_name, record_set
from tests.support.aws.objects import Call, dns_record
from tests.support.objects.configured import Configured
from tests.support.objects.present import present

NO_CLUSTER = Cluster()


@pytest.fixture
def records(url) -> Any:
    return Configured(AwsDnsRecord(url))


def make_zone(route53, name: str, **more: object) -> str:
    answer = route53.request("create_hosted_zone", Name=name, CallerReference=name, **more)
    return answer["HostedZone"]["Id"].rpartition("/")[2]


@pytest.fixture
def zone(route53, namespace) -> str:
    return make_zone(route53, f"{namespace}.test")


def contents(route53, zone: str) -> dict[tuple[str, str], list[str]]:
    """The records in a zone: name and type, with the values."""
    answer = route53.request("list_resource_record_sets", HostedZoneId=zone)
    return {
        (resource_record_set["Name"].removesuffix("."), resource_record_set["Type"]): [
            record["Value"] for record in resource_record_set["ResourceRecords"]
        ]
        for resource_record_set in answer["ResourceRecordSets"]
        if resource_record_set["Type"] not in ("NS", "SOA")
    }


def put(route53, zone: str, name: str, type: str, value: str) -> None:
    record = {"Name": name, "Type": type, "TTL": 60, "ResourceRecords": [{"Value": value}]}
    change = {"Action": "UPSERT", "ResourceRecordSet": record}
    batch = {"Changes": [change]}
    route53.request("change_resource_record_sets", HostedZoneId=zone, ChangeBatch=batch)


ZONES = [("z1", "example.com."), ("z2", "foo.example.com."), ("z3", "oo.example.com")]


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("api.foo.example.com", "z2"),
        ("foo.example.com", "z2"),
        ("FOO.example.com.", "z2"),
        ("api.barfoo.example.com", "z1"),
        ("api.example.com", "z1"),
        ("*.example.com", "z1"),
        ("example.org", None),
        ("badexample.com", None),
    ],
)
def test_zone_match_is_by_label_boundary_and_the_longest_wins(name, zone):
    assert choose_zone(name, ZONES) == zone


def test_meta_record_names():
    assert comment_name("Foo.example.com") == "comment-foo.example.com"
    assert comment_name("*.foo.example.com.") == "*.comment-foo.example.com"


def test_text_is_quoted_and_cut_for_a_txt_record():
    record = record_set("a", "TXT", 1, ['say "hi"', "x" * 300])
    said, long = [resource_record["Value"] for resource_record in record["ResourceRecords"]]
    assert said == '"say \\"hi\\""'
    assert long == f'"{"x" * 255}" "{"x" * 45}"'


@pytest.mark.parametrize(
    ("type", "values"),
    [
        ("A", ["192.0.2.1", "192.0.2.2"]),
        ("AAAA", ["2001:db8::1"]),
        ("CNAME", ["lb.example.com"]),
        ("TXT", ["some text"]),
    ],
)
def test_a_record_is_made_beside_its_comment_and_both_are_deleted(
    records, call, route53, zone, namespace, type, values
):
    name = f"api.{namespace}.test"
    record = dns_record(namespace, recordType=type, values=values)
    assert list(records.validate(call, record, NO_CLUSTER)) == []
    records.reconcile(call, record, NO_CLUSTER)
    made = contents(route53, zone)
    assert made.pop((f"comment-{name}", "TXT")) == [f'"owner={namespace}/shoot"']
    assert made == {(name, type): [f'"{v}"' if type == "TXT" else v for v in values]}
    assert record.status.zone == present(record.status.state)["zone"] == zone
    ids = [external_resource.id for external_resource in records.external_resources(record)]
    assert ids == [f"{zone}/{name}/{type}", f"{zone}/comment-{name}/TXT"]
    records.delete(call, record, NO_CLUSTER)
    assert contents(route53, zone) == {}
    records.delete(call, record, NO_CLUSTER)


def test_a_wildcard_keeps_its_star(records, call, route53, zone, namespace):
    record = dns_record(namespace, name=f"*.ingress.{namespace}.test")
    records.reconcile(call, record, NO_CLUSTER)
    assert (f"*.comment-ingress.{namespace}.test", "TXT") in contents(route53, zone)


def test_the_ttl_is_120_unless_given(records, call, route53, zone, namespace):
    def ttl() -> int:
        answer = route53.request("list_resource_record_sets", HostedZoneId=zone)
        return next(r["TTL"] for r in answer["ResourceRecordSets"] if r["Type"] == "A")

    records.reconcile(call, dns_record(namespace), NO_CLUSTER)
    assert ttl() == 120
    records.reconcile(call, dns_record(namespace, ttl=60), NO_CLUSTER)
    assert ttl() == 60


def test_other_values_replace_the_first_and_the_same_change_nothing(
    records, call, route53, zone, namespace, monkeypatch
):
    record = dns_record(namespace)
    records.reconcile(call, record, NO_CLUSTER)
    other = dns_record(namespace, values=["192.0.2.9"])
    other.status = record.status
    records.reconcile(call, other, NO_CLUSTER)
    assert contents(route53, zone)[f"api.{namespace}.test", "A"] == ["192.0.2.9"]
    asked = note_requests(monkeypatch)
    records.reconcile(call, other, NO_CLUSTER)
    assert "change_resource_record_sets" not in asked
    assert "list_hosted_zones" not in asked, "the zone is known"


def note_requests(monkeypatch) -> list[str]:
    asked: list[str] = []
    answer = Cloud.answer

    def note(cloud, operation, send):
        asked.append(operation)
        return answer(cloud, operation, send)

    monkeypatch.setattr(Cloud, "answer", note)
    return asked


def test_spec_zone_comes_before_status_zone_before_the_longest_match(
    records, call, route53, zone, namespace
):
    longer = make_zone(route53, f"api.{namespace}.test")
    found = dns_record(namespace)
    records.reconcile(call, found, NO_CLUSTER)
    assert found.status.zone == longer
    remembered = dns_record(namespace)
    remembered.status.zone = zone
    records.reconcile(call, remembered, NO_CLUSTER)
    assert contents(route53, zone)
    asked_for = dns_record(namespace, zone=longer)
    asked_for.status = remembered.status
    records.reconcile(call, asked_for, NO_CLUSTER)
    assert asked_for.status.zone == longer
    assert contents(route53, zone) == {}, "it moved"


def test_a_private_zone_is_only_taken_by_name(records, call, route53, namespace):
    vpc = {"VPCRegion": "eu-west-1", "VPCId": "vpc-1"}
    private = make_zone(
        route53, f"{namespace}.test", VPC=vpc, HostedZoneConfig={"PrivateZone": True}
    )
    with pytest.raises(ConfigurationError, match="no public hosted zone of the account fits"):
        records.reconcile(call, dns_record(namespace), NO_CLUSTER)
    records.reconcile(call, dns_record(namespace, zone=private), NO_CLUSTER)
    assert contents(route53, private)


def test_a_crash_after_the_save_makes_nothing_twice(records, call, route53, zone, namespace):
    class Crash(BaseException):
        pass

    def crash(status):
        assert contents(route53, zone) == {}
        raise Crash

    call.on_save = crash
    record = dns_record(namespace)
    with pytest.raises(Crash):
        records.reconcile(call, record, NO_CLUSTER)
    assert len(list(records.external_resources(record))) == 2, "it may exist"
    records.reconcile(Call(call.client, namespace), record, NO_CLUSTER)
    again = dns_record(namespace)  # nothing of the success got into the API server
    records.reconcile(Call(call.client, namespace), again, NO_CLUSTER)
    assert len(contents(route53, zone)) == 2


def test_another_seed_takes_over_by_state_alone(records, call, route53, zone, namespace):
    record = dns_record(namespace)
    records.reconcile(call, record, NO_CLUSTER)
    records.migrate(call, record, NO_CLUSTER)
    there = dns_record(namespace)
    there.status.state = record.status.state
    records.restore(call, there, NO_CLUSTER)
    assert there.status.zone == zone
    assert len(contents(route53, zone)) == 2


def test_a_record_without_our_comment_is_an_error_and_stays(
    records, call, route53, zone, namespace
):
    name = f"api.{namespace}.test"
    put(route53, zone, name, "A", "203.0.113.1")
    record = dns_record(namespace)
    with pytest.raises(ConfigurationError, match=r"has another owner \(it has no record comment-"):
        records.reconcile(call, record, NO_CLUSTER)
    records.delete(call, record, NO_CLUSTER)
    assert contents(route53, zone) == {(name, "A"): ["203.0.113.1"]}


def test_a_record_of_another_owner_is_an_error_that_says_whose_it_is(
    records, call, route53, zone, namespace
):
    name = f"api.{namespace}.test"
    put(route53, zone, name, "A", "203.0.113.1")
    put(route53, zone, f"comment-{name}", "TXT", '"owner=garden/other"')
    record = dns_record(namespace)
    with pytest.raises(ConfigurationError, match=r'comment-.* says "owner=garden/other"'):
        records.reconcile(call, record, NO_CLUSTER)
    records.delete(call, record, NO_CLUSTER)
    assert len(contents(route53, zone)) == 2


def test_a_shoot_that_wakes_up_creates_the_same_record_again(
    records, call, route53, zone, namespace
):
    put(route53, zone, f"www.{namespace}.test", "A", "203.0.113.1")
    before = contents(route53, zone)
    for _ in range(3):
        record = dns_record(namespace)
        records.reconcile(call, record, NO_CLUSTER)
        assert len(contents(route53, zone)) == 3
        records.delete(call, record, NO_CLUSTER)
        assert contents(route53, zone) == before


def before_the_first_change(monkeypatch, write) -> list[str]:
    """Call `write` after the records were read and before the first change; list all requests."""
    asked: list[str] = []
    answer = Cloud.answer

    def noted(cloud, operation, send):
        is_first = operation not in asked
        asked.append(operation)
        if operation == "change_resource_record_sets" and is_first:
            write()
        return answer(cloud, operation, send)

    monkeypatch.setattr(Cloud, "answer", noted)
    return asked


@pytest.mark.parametrize(
    ("value", "owner", "is_ours"),
    [
        ("192.0.2.1", "{}/shoot", True),
        ("192.0.2.9", "{}/shoot", True),
        ("192.0.2.1", "", False),
        ("192.0.2.1", "garden/other", False),
        ("192.0.2.9", "garden/other", False),
    ],
    ids=["same", "older value", "no owner", "other owner", "other owner and value"],
)
def test_a_record_that_appears_before_it_is_created_is_success_only_if_it_is_ours(
    records, call, route53, zone, namespace, monkeypatch, value, owner, is_ours
):
    name = f"api.{namespace}.test"

    def write():
        put(route53, zone, name, "A", value)
        if owner:
            put(route53, zone, f"comment-{name}", "TXT", f'"owner={owner.format(namespace)}"')

    before_the_first_change(monkeypatch, write)
    record = dns_record(namespace)
    if is_ours:
        records.reconcile(call, record, NO_CLUSTER)
    else:
        with pytest.raises(ConfigurationError, match="exists and has another owner"):
            records.reconcile(call, record, NO_CLUSTER)
    kept = contents(route53, zone)
    assert kept[name, "A"] == ["192.0.2.1" if is_ours else value]
    assert len(kept) == (2 if owner else 1)


@pytest.mark.parametrize("owner", ["", "garden/other"], ids=["deleted", "of another owner"])
def test_a_record_that_changes_before_it_is_deleted_is_not_ours_any_more(
    records, call, route53, zone, namespace, monkeypatch, owner
):
    name = f"api.{namespace}.test"
    record = dns_record(namespace)
    records.reconcile(call, record, NO_CLUSTER)

    def write():
        records.delete(call, record, NO_CLUSTER)
        if owner:
            put(route53, zone, name, "A", "192.0.2.1")
            put(route53, zone, f"comment-{name}", "TXT", f'"owner={owner}"')

    before_the_first_change(monkeypatch, write)
    records.delete(call, record, NO_CLUSTER)
    assert len(contents(route53, zone)) == (2 if owner else 0)


def test_a_change_that_route_53_never_accepts_is_sent_twice_and_is_an_error(
    records, call, route53, zone, namespace, monkeypatch
):
    asked = before_the_first_change(monkeypatch, lambda: None)
    with pytest.raises(CloudError) as refused:
        records.reconcile(call, dns_record(namespace, name="api.other.test", zone=zone), NO_CLUSTER)
    assert refused.value.code == "InvalidChangeBatch"
    assert refused.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)
    assert asked.count("change_resource_record_sets") == 2


def test_an_object_never_reconciled_is_deleted_without_secret_and_cloud(records, admin, namespace):
    record = dns_record(namespace)
    assert list(records.external_resources(record)) == []
    records.delete(Call(admin, namespace), record, NO_CLUSTER)


def test_with_its_zone_a_record_is_gone(records, call, route53, zone, namespace):
    record = dns_record(namespace)
    records.reconcile(call, record, NO_CLUSTER)
    for name, type in contents(route53, zone):
        found = route53.request("list_resource_record_sets", HostedZoneId=zone)
        one = next(r for r in found["ResourceRecordSets"] if r["Name"] == f"{name}.")
        assert one["Type"] == type
        batch = {"Changes": [{"Action": "DELETE", "ResourceRecordSet": one}]}
        route53.request("change_resource_record_sets", HostedZoneId=zone, ChangeBatch=batch)
    route53.request("delete_hosted_zone", Id=zone)
    records.delete(call, record, NO_CLUSTER)


@pytest.mark.parametrize("code", ["Throttling", "PriorRequestNotComplete"])
@pytest.mark.parametrize("operation", ["reconcile", "delete"])
def test_throttling_is_waited_out_for_30_seconds(
    records, call, zone, namespace, monkeypatch, code, operation
):
    record = dns_record(namespace)
    records.reconcile(call, record, NO_CLUSTER)

    def throttled(cloud, asked, send):
        raise CloudError(asked, code, "Rate exceeded")

    monkeypatch.setattr(Cloud, "answer", throttled)
    with pytest.raises(RequeueAfter) as later:
        getattr(records, operation)(call, record, NO_CLUSTER)
    assert later.value.seconds == 30
    assert isinstance(later.value.cause, CloudError)
    assert later.value.cause.codes == (ErrorCode.ERR_INFRA_RATE_LIMITS_EXCEEDED,)


@pytest.mark.parametrize("what", ["key", "policy"])
def test_revoked_credentials_have_their_code_and_nothing_is_forgotten(
    records, call, zone, account, shoot_key, namespace, what
):
    record = dns_record(namespace)
    records.reconcile(call, record, NO_CLUSTER)
    code = ErrorCode.ERR_INFRA_UNAUTHORIZED
    if what == "key":
        account.set_access_key(namespace, shoot_key, active=False)
        code = ErrorCode.ERR_INFRA_UNAUTHENTICATED
    else:
        account.delete_policy(namespace)
    with pytest.raises(CloudError) as error:
        records.delete(call, record, NO_CLUSTER)
    assert error.value.codes == (code,)
    assert len(list(records.external_resources(record))) == 2


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"values": []}, "spec.values: there is no value; set at least one"),
        (
            {"values": ["2001:db8::1"]},
            "spec.values[0]: '2001:db8::1' is no address for a record of type A;",
        ),
        (
            {"recordType": "AAAA"},
            "spec.values[0]: '192.0.2.1' is no address for a record of type AAAA;",
        ),
        (
            {"recordType": "SRV"},
            "spec.recordType: 'SRV' is not supported; choose A, AAAA, CNAME, TXT",
        ),
        ({"recordType": "CNAME", "values": ["a", "b"]}, "spec.values: a CNAME has one value"),
        ({"providerConfig": {}}, "spec.providerConfig: there is nothing to configure"),
    ],
)
def test_a_spec_that_cannot_work_is_a_problem_of_its_field(records, call, namespace, spec, said):
    (problem,) = records.validate(call, dns_record(namespace, **spec), NO_CLUSTER)
    assert str(problem).startswith(said)
