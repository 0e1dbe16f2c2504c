"""The converter: an object of the API server is written equal, and no value is coerced."""

import copy
import json
import time
from contextlib import suppress

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actuator.codec import (
    CUT,
    MAX_DEPTH,
    decode,
    decode_json,
    encode,
    is_deep,
    plain_json,
    read_json,
)
from actuator.errors import DecodeError
from actuator.meta import Base64, parse_time
from actuator.v1alpha1 import Cluster, ControlPlane, Infrastructure
from extensions.aws import config, status
from tests.support.objects.strictly import decode_strictly

TEXT = st.text(max_size=8)
NAMES = st.text("abcdefgXYZ-._/", min_size=1, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
RAW = st.dictionaries(NAMES, JSON, max_size=3)


def unknown(prefix: str):
    """Fields that no class of ours has."""
    return st.dictionaries(NAMES.map(lambda name: f"zz{prefix}{name}"), JSON, max_size=2)


def merged(*parts):
    return st.tuples(*parts).map(lambda dicts: {k: v for d in dicts for k, v in d.items()})


def fields(required=None, optional=None):
    """Required fields are there; optional ones may be, also as null or empty."""
    nullable = {name: st.none() | value for name, value in (optional or {}).items()}
    return merged(st.fixed_dictionaries(required or {}, optional=nullable), unknown("f"))


STRINGS = st.dictionaries(NAMES, TEXT, max_size=3)
TIMES = st.datetimes().map(lambda t: t.strftime("%Y-%m-%dT%H:%M:%SZ"))
OWNERS = fields(
    {"apiVersion": TEXT, "kind": TEXT, "name": TEXT, "uid": TEXT},
    {"controller": st.booleans(), "blockOwnerDeletion": st.booleans()},
)
META = fields(
    {"name": NAMES},
    {
        "namespace": TEXT,
        "uid": TEXT,
        "resourceVersion": TEXT,
        "generation": st.integers(0, 2**40),
        "creationTimestamp": TIMES,
        "deletionTimestamp": TIMES,
        "deletionGracePeriodSeconds": st.integers(0, 60),
        "labels": STRINGS,
        "annotations": STRINGS,
        "finalizers": st.lists(NAMES, max_size=3),
        "ownerReferences": st.lists(OWNERS, max_size=2),
        "managedFields": st.lists(RAW, max_size=2),
    },
)
OPERATION = fields(
    {
        "description": TEXT,
        "lastUpdateTime": TIMES,
        "progress": st.integers(0, 100),
        "state": st.sampled_from(["Processing", "Succeeded", "Error", "SomethingNew"]),
        "type": st.sampled_from(["Create", "Delete", "LiveMigrate"]),
    }
)
ERROR = fields(
    {"description": TEXT},
    {"taskID": TEXT, "codes": st.lists(TEXT, max_size=2), "lastUpdateTime": TIMES},
)
CONDITION = fields(
    {
        "type": TEXT,
        "status": TEXT,
        "reason": TEXT,
        "message": TEXT,
        "lastTransitionTime": TIMES,
        "lastUpdateTime": TIMES,
    },
    {"codes": st.lists(TEXT, max_size=2)},
)
REFERENCE = fields(
    {"name": TEXT, "resourceRef": fields({"kind": TEXT, "name": TEXT}, {"apiVersion": TEXT})}
)
STATUS = {
    "providerStatus": RAW,
    "conditions": st.lists(CONDITION, max_size=2),
    "lastError": ERROR,
    "lastOperation": OPERATION,
    "observedGeneration": st.integers(0, 9),
    "state": RAW,
    "resources": st.lists(REFERENCE, max_size=2),
}
SPEC_REQUIRED = {
    "type": TEXT,
    "region": TEXT,
    "secretRef": fields({}, {"name": TEXT, "namespace": TEXT}),
}
SPEC_OPTIONAL = {"class": st.sampled_from(["shoot", "seed", "garden"]), "providerConfig": RAW}
NETWORKS = st.lists(TEXT, max_size=2)


def objects(spec, status):
    return fields({"apiVersion": TEXT, "kind": TEXT, "metadata": META, "spec": spec}, status)


INFRASTRUCTURES = objects(
    fields(
        SPEC_REQUIRED,
        {**SPEC_OPTIONAL, "sshPublicKey": st.binary(max_size=9).map(Base64.encode_bytes).map(str)},
    ),
    {
        "status": fields(
            {},
            {
                **STATUS,
                "nodesCIDR": TEXT,
                "egressCIDRs": NETWORKS,
                "networking": fields(
                    {}, {"pods": NETWORKS, "nodes": NETWORKS, "services": NETWORKS}
                ),
            },
        )
    },
)
CONTROL_PLANES = objects(
    fields(SPEC_REQUIRED, {**SPEC_OPTIONAL, "infrastructureProviderStatus": RAW}),
    {"status": fields({}, STATUS)},
)
CLUSTERS = objects(fields({"cloudProfile": JSON, "shoot": JSON}, {"seed": JSON}), {})


@settings(max_examples=150, deadline=None)
@given(INFRASTRUCTURES)
def test_an_infrastructure_comes_back_equal(obj):
    assert_round_trip(Infrastructure, obj)


@settings(max_examples=100, deadline=None)
@given(CONTROL_PLANES)
def test_a_controlplane_comes_back_equal(obj):
    assert_round_trip(ControlPlane, obj)


@settings(max_examples=100, deadline=None)
@given(CLUSTERS)
def test_a_cluster_comes_back_equal(obj):
    assert_round_trip(Cluster, obj)


def assert_round_trip(cls, obj):
    before = copy.deepcopy(obj)
    decoded = decode(cls, obj)
    assert encode(decoded) == before
    assert obj == before, "decoding changes nothing"
    assert decode(cls, encode(decoded)) == decoded


@given(RAW)
@settings(deadline=None)
def test_anything_at_all_is_an_object_or_a_clear_error(obj):
    message = ""
    try:
        decode(Infrastructure, obj)
    except DecodeError as error:
        message = str(error)
    assert "\n" not in message


@pytest.mark.parametrize(
    ("wire", "named"),
    [
        pytest.param(
            {"spec": {"type": 5}},
            "spec.type: expected a string, got an integer",
            id="a number is no string",
        ),
        pytest.param(
            {"spec": {"secretRef": []}},
            "spec.secretRef: expected an object, got a list",
            id="a list is no object",
        ),
        pytest.param({"spec": "x"}, "spec: expected an object", id="a string is no spec"),
        pytest.param({"metadata": {"generation": "5"}}, "generation", id="no number from text"),
        pytest.param({"metadata": {"generation": True}}, "generation", id="a bool is no number"),
        pytest.param({"metadata": {"finalizers": "x"}}, "finalizers", id="a string is no list"),
        pytest.param(
            {"status": {"conditions": [{"type": 1}]}},
            "status.conditions[0].type: ",
            id="an entry of a list is named",
        ),
    ],
)
def test_an_invalid_value_is_an_error_that_names_the_field(wire, named):
    with pytest.raises(DecodeError) as caught:
        decode(Infrastructure, wire)
    assert named in str(caught.value)


def test_text_that_is_no_json_is_an_error():
    with pytest.raises(DecodeError, match="not JSON"):
        decode_json(Infrastructure, b"{")
    with pytest.raises(DecodeError, match="expected an object"):
        decode_json(Infrastructure, b"[]")


@attrs.frozen(kw_only=True)
class Config:
    zone_name: str
    size: int = 1


@attrs.frozen(kw_only=True)
class Outer:
    inner: Config | None = None
    zones: list[Config] = attrs.field(factory=list)


@pytest.mark.parametrize(
    ("wire", "named"),
    [
        pytest.param({"inner": "text"}, "inner: expected an object, got a string", id="a string"),
        pytest.param({"inner": []}, "inner: expected an object, got a list", id="a list"),
        pytest.param(
            {"zones": [{"zoneName": "a"}, 5]}, "zones[1]: expected an object", id="an entry"
        ),
    ],
)
def test_a_value_that_is_no_object_is_named_in_a_configuration_too(wire, named):
    with pytest.raises(DecodeError) as caught:
        decode_strictly(Outer, wire)
    assert named in str(caught.value)


def test_a_users_configuration_is_decoded_strictly():
    assert decode_strictly(Config, {"zoneName": "a"}) == Config(zone_name="a")
    with pytest.raises(DecodeError, match="unknown field siez"):
        decode_strictly(Config, {"zoneName": "a", "siez": 2})
    with pytest.raises(DecodeError, match="zoneName"):
        decode_strictly(Config, {})


def test_removing_a_field_removes_it_from_the_wire():
    obj = decode(Infrastructure, {"status": {"providerStatus": {"a": 1}, "nodesCIDR": "10/8"}})
    obj.status.provider_status = None
    assert encode(obj)["status"] == {"nodesCIDR": "10/8"}


def test_a_status_is_mutable_and_a_spec_is_not():
    obj = decode(Infrastructure, {"spec": {"type": "aws"}})
    obj.status.provider_status = {"vpc": "1"}
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        obj.spec.region = "other"  # type: ignore[misc]  # what is refused


@pytest.mark.parametrize(
    "text", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456789Z", "2026-01-02T04:04:05+01:00"]
)
def test_every_timestamp_that_go_writes_is_read(text):
    assert parse_time(text).timestamp() == pytest.approx(1767323045, abs=1)


@attrs.define(kw_only=True)
class Remembered:
    """A status as an author writes it, inside another one."""

    api_version: str = "example.org/v1"
    kind: str = "Remembered"
    id: str = ""


@attrs.define(kw_only=True)
class Outermost:
    kind: str = ""
    remembered: Remembered | None = None


STATUSES = [
    status.BackupBucketStatus,
    status.BastionStatus,
    status.ControlPlaneStatus,
    status.DNSRecordStatus,
    status.InfrastructureStatus,
    config.ControlPlaneConfig,
    config.WorkerConfig,
    Remembered,
]


@pytest.mark.parametrize("cls", STATUSES)
def test_api_version_and_kind_are_always_written(cls):
    written = encode(cls())
    assert written == {"apiVersion": cls().api_version, "kind": cls().kind}
    assert encode(decode(cls, written)) == written


def test_a_nested_status_has_its_kind_and_an_empty_kind_is_left_out():
    assert encode(Outermost(remembered=Remembered(id="1"))) == {
        "remembered": {"apiVersion": "example.org/v1", "kind": "Remembered", "id": "1"}
    }
    assert encode(Outermost(kind="X")) == {"kind": "X"}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='{}[]"\\ü\u2028a'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
)


def nested(levels: int, value: object) -> object:
    """`value`, in so many lists and objects."""
    for level in range(levels):
        value = [value] if level % 2 else {"a": value, "}": "["}
    return value


def test_a_value_within_the_depth_limit_is_read_unchanged():
    value = nested(MAX_DEPTH, "x")
    assert read_json(json.dumps(value).encode()) == value


@given(JSON_VALUES, st.integers(0, 20))
def test_any_json_is_read_as_it_is(value, levels):
    wrapped = nested(levels, value)
    assert read_json(json.dumps(wrapped).encode()) == wrapped


@given(JSON_VALUES, st.sampled_from([MAX_DEPTH + 1, 950, 5000, 9990]))
def test_only_values_nested_too_deeply_are_left_out(value, levels):
    text = '[{"]":' * (levels // 2) + json.dumps(value) + "}]" * (levels // 2)
    found = read_json(f'{{"before": {json.dumps(value)}, "deep": {text}, "after": 1}}'.encode())
    assert (found["before"], found["after"]) == (value, 1)
    deep = found["deep"]
    depth = 1
    while isinstance(deep, (list, dict)):
        deep = deep[0] if isinstance(deep, list) else deep["]"]
        depth = depth + 1
    assert (deep, depth) == (CUT, MAX_DEPTH)


def test_an_object_with_a_part_left_out_names_the_field():
    text = b'{"spec":{"providerConfig":' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}}"
    for read in (text, json.dumps(read_json(text)).encode()):
        with pytest.raises(DecodeError, match=r"spec\.providerConfig is nested deeper than 200"):
            decode_json(Infrastructure, read)


@pytest.mark.parametrize("text", [b"", b"[", b"[" * 9990, b'{"a":1,}', b'"a', b"nul"])
def test_invalid_json_is_a_value_error(text):
    with pytest.raises(ValueError):
        read_json(text)


FRAGMENTS = ("[", "]", "{", "}", '{"":', '"', '""', "\\", '\\"', '"]', ",", "1", "\u2201", "\u5b7b")
HOSTILE = st.lists(
    st.tuples(st.sampled_from(FRAGMENTS), st.sampled_from((1, 2, 201, 1100))), max_size=8
).map(lambda parts: "".join(text * count for text, count in parts))
ENCODINGS = st.sampled_from(("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-8-sig"))


def levels_of(value):
    """The levels of objects and lists, without recursion."""
    levels = 0
    inner = [value]
    while inner := [item for item in inner if isinstance(item, (dict, list))]:
        levels += 1
        inner = [v for item in inner for v in (item.values() if isinstance(item, dict) else item)]
    return levels


def is_shallow_or_refused(text):
    """Whether any bytes are an error, or a value that recursive code can read."""
    try:
        return levels_of(read_json(text)) <= MAX_DEPTH
    except ValueError:
        return True


@given(HOSTILE, ENCODINGS)
def test_no_text_in_any_encoding_exhausts_the_stack(text, encoding):
    assert is_shallow_or_refused(text.encode(encoding))
    for levels in (MAX_DEPTH + 1, 1100):  # the byte 0x22 of U+2201 is a quote in UTF-8
        hidden = '{"a":"\u2201","b":' + "[" * levels + "]" * levels + ',"c":"\u2201"}'
        assert is_shallow_or_refused(hidden.encode(encoding))


@given(JSON_VALUES)
def test_brackets_in_strings_are_no_levels(value):
    text = json.dumps(value).encode()
    levels = levels_of(value)
    assert not is_deep(text, levels)
    assert is_deep(text, levels - 1)


def test_strings_across_blocks_hide_their_brackets():
    strings = ",".join('"[{"' for _ in range(100_000))
    assert not is_deep(f"[{strings},{'[' * 199}{']' * 199}]".encode())
    assert is_deep(f"[{strings},{'[' * 200}{']' * 200}]".encode())


LARGE = 2**15
COSTLY = {
    "escaped quotes": b"[" * 201 + b'"' + b'\\"' * LARGE,
    "quotes": b"[" * 201 + b'"' * LARGE,
    "no end": b"[" * 201 + b'"' * LARGE + b"x",
    "many ends": b"[" * 201 + b"]" * LARGE,
    "stairs": (b"[" * 199 + b"]" * 199) * (LARGE // 400),
    "deep stairs": (b"[" * 299 + b"]" * 299) * (LARGE // 600),
    "no value": (b"[" * 150 + b"]" * 149) * (LARGE // 300) + b"]" * LARGE,
    "backslashes": b"[" * 201 + b"\\" * LARGE,
    "strings": b"[" * 201 + b'"]"' * LARGE,
}


@pytest.mark.parametrize("text", COSTLY.values(), ids=COSTLY)
def test_the_time_to_read_text_does_not_explode(text):
    began = time.thread_time()
    for read in (is_deep, read_json):
        with suppress(ValueError):
            read(text)
    assert time.thread_time() - began < 1.0  # 0.01 s; with the square of the length, half a minute


@pytest.mark.parametrize(
    "value", [float("nan"), 2**63, -(2**63) - 1, 10**400, {1}, b"x", nested(300, 1), "x" * 101]
)
def test_a_value_that_the_api_server_cannot_store_is_no_plain_json(value):
    with pytest.raises((ValueError, TypeError, RecursionError)):
        plain_json(value, 100 if isinstance(value, str) else 10**6)


def test_plain_json_is_a_copy():
    value = {"a": [1, -(2**63), 2**63 - 1, 1.5, None, "ü"]}
    copied = plain_json(value, 1000)
    assert copied == value
    assert copied["a"] is not value["a"]
