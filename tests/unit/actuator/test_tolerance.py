"""Decoding for deletions: a wrong field is an error when it is used, never a default."""

import json
from operator import attrgetter

import pytest

from actuator.codec import MAX_DEPTH, decode_json, encode
from actuator.errors import DecodeError
from actuator.meta import Raw
from actuator.tolerance import decode_tolerantly
from actuator.v1alpha1 import KINDS, Infrastructure, OperatingSystemConfig, Worker

SPEC: Raw = {"type": "aws", "region": "eu-1", "secretRef": {"name": "cloudprovider"}}


def text(spec: object = None, **more: object) -> bytes:
    head = {"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Infrastructure"}
    return json.dumps({**head, "metadata": {"name": "a"}, "spec": spec or SPEC, **more}).encode()


def wrong() -> Infrastructure:
    status = {"nodesCIDR": "10.0.0.0/8", "egressCIDRs": "192.0.2.1", "providerStatus": {"id": 1}}
    return decode_tolerantly(Infrastructure, text({**SPEC, "region": {"new": 1}}, status=status))


def test_an_object_without_a_wrong_field_is_the_same_as_decoded_strictly():
    found = decode_tolerantly(Infrastructure, text())
    assert found == decode_json(Infrastructure, text())
    assert type(found.spec) is type(decode_json(Infrastructure, text()).spec)


def test_the_other_fields_of_an_object_with_a_wrong_one_can_be_read():
    found = wrong()
    assert (found.metadata.name, found.spec.type, found.spec.secret_ref.name) == (
        "a",
        "aws",
        "cloudprovider",
    )
    assert (found.status.nodes_cidr, found.status.provider_status) == ("10.0.0.0/8", {"id": 1})


def test_reading_a_wrong_field_raises_an_error_with_its_path_and_a_remedy():
    with pytest.raises(DecodeError) as caught:
        attrgetter("spec.region")(wrong())
    assert str(caught.value) == (
        "spec.region: expected a string, got an object; correct the field or upgrade the extension"
    )
    with pytest.raises(DecodeError, match=r"status\.egressCIDRs: .* got a string"):
        attrgetter("status.egress_cidrs")(wrong())


@pytest.mark.parametrize(
    ("value", "written"),
    [
        pytest.param(["192.0.2.1/32"], {"egressCIDRs": ["192.0.2.1/32"]}, id="another value"),
        pytest.param([], {}, id="the default"),
    ],
)
def test_setting_a_wrong_field_replaces_its_value(value, written):
    found = wrong()
    found.status.egress_cidrs = value
    assert found.status.egress_cidrs == value
    others = {"nodesCIDR": "10.0.0.0/8", "providerStatus": {"id": 1}}
    assert encode(found)["status"] == encode(found.status) == {**others, **written}
    with pytest.raises(DecodeError, match=r"^spec\.region: "):
        attrgetter("spec.region")(found)
    with pytest.raises(DecodeError, match=r"(?i)egressCIDRs"):
        attrgetter("status.egress_cidrs")(wrong())


def test_setting_one_of_two_wrong_fields_leaves_the_other_wrong():
    found = decode_tolerantly(Infrastructure, text(status={"providerStatus": 1, "state": "x"}))
    found.status.provider_status = None
    assert encode(found)["status"] == {"state": "x"}
    with pytest.raises(DecodeError, match=r"^status\.state: "):
        attrgetter("status.state")(found)
    found.status.state = None
    assert not encode(found).get("status")
    assert type(found.status) is type(decode_json(Infrastructure, text()).status)


def test_a_wrong_field_is_written_back_as_it_was_read():
    found = wrong()
    found.status.nodes_cidr = "10.1.0.0/16"
    written = encode(found)
    assert written["spec"] == {**SPEC, "region": {"new": 1}}
    assert written["status"] == {
        "nodesCIDR": "10.1.0.0/16",
        "egressCIDRs": "192.0.2.1",
        "providerStatus": {"id": 1},
    }
    assert encode(found.status) == written["status"]


def test_an_error_deep_in_a_field_hides_the_field_of_the_spec():
    found = decode_tolerantly(Worker, text({**SPEC, "pools": [{"minimum": "1"}]}))
    assert found.spec.region == "eu-1"
    with pytest.raises(DecodeError, match=r"^spec\.pools\[0\]\.minimum: expected an integer, got"):
        attrgetter("spec.pools")(found)


def test_the_kubelet_of_an_operating_system_config_may_have_been_an_object_before():
    """Gardener changed the type of spec.inPlaceUpdates.kubelet."""
    updates = {"operatingSystemVersion": "1", "kubelet": {"version": "1.31.1"}}
    spec = {"type": "local", "purpose": "reconcile", "inPlaceUpdates": updates}
    found = decode_tolerantly(OperatingSystemConfig, text(spec))
    assert found.spec.purpose == "reconcile"
    with pytest.raises(DecodeError, match=r"inPlaceUpdates.*: expected a string, got an object"):
        attrgetter("spec.in_place_updates")(found)


@pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.__name__)
def test_a_wrong_field_of_any_kind_is_tolerated(cls):
    found = decode_tolerantly(cls, text({"type": 5, "class": "shoot"}, status={"conditions": "x"}))
    assert found.spec.class_ == "shoot"
    with pytest.raises(DecodeError, match=r"^spec\.type: "):
        attrgetter("spec.type")(found)
    with pytest.raises(DecodeError, match=r"^status\.conditions: "):
        attrgetter("status.conditions")(found)


def test_equal_problems_share_one_class():
    assert type(wrong().spec) is type(wrong().spec)


@pytest.mark.parametrize(
    "unreadable",
    [
        pytest.param(b"[]", id="a list"),
        pytest.param(text(metadata={"name": 5}), id="wrong metadata"),
        pytest.param(text("x"), id="a spec that is a text"),
        pytest.param(text({**SPEC, "region": 5}, metadata={"name": 5}), id="both"),
        pytest.param(
            text({**SPEC, "region": 5, "providerConfig": {"a": "?"}}).replace(
                b'"?"', b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH
            ),
            id="too deep beside a wrong field",
        ),
    ],
)
def test_an_object_with_another_problem_stays_unreadable(unreadable):
    with pytest.raises(DecodeError):
        decode_tolerantly(Infrastructure, unreadable)
