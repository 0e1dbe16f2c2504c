"""Headers by the typed decoder: the same as by a complete decode, whatever the text."""

import json
from contextlib import suppress
from typing import Any

import attrs
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from actuator.codec import CUT, MAX_DEPTH, read_json
from actuator.interface import Resource
from actuator.meta import ObjectMeta, Raw, wire_name
from generic.kube import documents
from generic.kube.documents import Document, read_event
from generic.kube.headers import cluster_header, header
from generic.kube.store import Store

_REFUSED = (ValueError, KeyError, TypeError, AttributeError)
"""Errors of a line that an informer cannot read."""


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def objects(names: st.SearchStrategy[str], values: st.SearchStrategy[str]) -> Any:
    pairs = st.tuples(names, values).map(":".join)
    return st.lists(pairs, max_size=5).map(lambda some: f"{{{','.join(some)}}}")  # some twice


def lists(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(values, max_size=3).map(lambda some: f"[{','.join(some)}]")


STRINGS = st.text(max_size=8).map(quoted)
NUMBERS = st.integers(-(2**70), 2**70).map(str)
ODD = st.sampled_from(
    [
        *(
            r'"\ud800"',
            r'"\ude00\ud83d"',
            r'"\ud83d\ude00"',
            r'"\u0000"',
            r'"\\\"{[\\"',
            '"\x7f\u2028"',
        ),
        *("NaN", "Infinity", "-0", "-0.0", "1.0", "1e400", "-1e-400", "1E2", "9" * 400),
    ]
)
SCALARS = st.one_of(STRINGS, NUMBERS, ODD, st.sampled_from(["null", "true", "false"]))
DEEP = st.integers(1, 2 * MAX_DEPTH).map(lambda n: "[" * n + "]" * n)
ANYTHING = st.recursive(
    SCALARS | DEEP, lambda inner: lists(inner) | objects(STRINGS, inner), max_leaves=6
)


def fields(**known: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """An object with some of these fields, and seldom with a wrong one, another, or one twice."""
    right = {name: value | st.just("null") for name, value in known.items()}
    wrong = st.tuples(st.sampled_from([*known, "other"]), ANYTHING)
    wrongs = st.integers(0, 29).flatmap(lambda n: wrong if n == 17 else st.none())

    def text(some: dict[str, str], odd: tuple[str, str] | None) -> str:
        pairs = [*some.items(), *([odd] if odd else [])]
        return f"{{{','.join(f'{quoted(name)}:{value}' for name, value in pairs)}}}"

    return st.builds(text, st.fixed_dictionaries({}, optional=right), wrongs)


TEXTS = objects(STRINGS, STRINGS)
OWNERS = lists(fields(apiVersion=STRINGS, kind=STRINGS, uid=STRINGS, controller=st.just("true")))
OPERATION = fields(type=STRINGS, state=st.just('"Failed"') | STRINGS)
REFERENCE = fields(name=STRINGS, namespace=STRINGS, kind=st.just('"Secret"') | STRINGS)
FORCE = '{"confirmation.gardener.cloud/force-deletion":"true"}'
META = fields(
    name=STRINGS,
    namespace=STRINGS,
    uid=STRINGS,
    resourceVersion=st.integers(0).map(lambda version: f'"{version}"') | STRINGS,
    generation=NUMBERS,
    deletionTimestamp=STRINGS,
    finalizers=lists(STRINGS),
    annotations=TEXTS,
    labels=TEXTS,
    ownerReferences=OWNERS,
    managedFields=ANYTHING,
)
STATUS = fields(
    lastOperation=OPERATION,
    lastError=fields(description=STRINGS),
    conditions=lists(fields(type=STRINGS, status=STRINGS)),
)
SHOOT = fields(metadata=fields(annotations=st.just(FORCE)), status=STATUS)
SPEC = fields(
    type=STRINGS, **{"class": STRINGS}, secretRef=REFERENCE, credentialsRef=REFERENCE, shoot=SHOOT
)
OBJECTS = fields(apiVersion=STRINGS, kind=STRINGS, metadata=META, spec=SPEC, status=STATUS)


def line_of(obj: str) -> bytes:
    return f'{{"type":"ADDED","object":{obj}}}'.encode()


def has_distinct_keys(line: bytes) -> bool:
    """Whether no object has a key twice; an API server never sends one that has."""
    distinct = True

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal distinct
        distinct = distinct and len(dict(pairs)) == len(pairs)
        return dict(pairs)

    with suppress(ValueError):
        json.loads(line, object_pairs_hook=note)
    return distinct


LINES = (OBJECTS | ANYTHING).map(line_of).filter(has_distinct_keys)


def completely(line: bytes) -> tuple[str, Document]:
    event = read_json(line)
    return event["type"], Document(event["object"])


def outcome(read: Any, line: bytes, make_header: Any) -> Any:
    """The result of a store for a line: the entry, with its JSON as a value; or a failure."""
    try:
        kind, document = read(line)
    except _REFUSED:
        return "refused"
    try:
        entry = Store(Resource("v1", "things"), make_header)._entry(document)
    except (ValueError, TypeError) as error:  # a lone surrogate, an owner that is a number
        return type(error)
    raw = json.dumps(read_json(entry.raw), sort_keys=True)  # NaN is not equal to itself
    return kind, document.request, document.uid, document.version, entry.header, raw


@pytest.mark.parametrize("make_header", [header, cluster_header])
@settings(max_examples=200)
@given(line=LINES)
@example(line=line_of('{"metadata":{"labels":{"a":"?"}}}').replace(b"?", b"\xff"))
@example(line=line_of('{"metadata":{},"spec":{"a":"?"}}').replace(b"?", b"\xff"))
@example(line=line_of(f'{{"metadata":{{}},"spec":{{"a":"{CUT}"}}}}'))
@example(line=line_of('{"spec":{"credentialsRef":{"kind":"Secret","name":"a"}}}'))
@example(line=line_of('{"metadatb":{"managedFields":[]}}'))
def test_both_ways_lead_to_the_same_header(make_header, line):
    assert outcome(read_event, line, make_header) == outcome(completely, line, make_header)


@pytest.mark.parametrize("name", sorted(documents._MetaFields.__annotations__))
@pytest.mark.parametrize("wrong", ["{}", "[5]", "true"])
def test_both_ways_find_a_cluster_with_wrong_metadata_unreadable(name, wrong):
    line = line_of(f'{{"metadata":{{"uid":"u","{name}":{wrong}}},"spec":{{"shoot":{{}}}}}}')
    assert outcome(read_event, line, cluster_header) == outcome(completely, line, cluster_header)


def test_no_field_of_metadata_is_forgotten():
    names = {wire_name(field) for field in attrs.fields(ObjectMeta)} - {"extra"}
    assert names == set(documents._MetaFields.__annotations__)


@given(line=LINES, at=st.integers(0), byte=st.integers(0, 255))
def test_both_ways_refuse_the_same_broken_text(line, at, byte):
    broken = bytearray(line)
    broken[at % len(line)] = byte
    assert outcome(read_event, bytes(broken), header) == outcome(completely, bytes(broken), header)


@pytest.mark.parametrize("levels", [MAX_DEPTH - 3, MAX_DEPTH - 2, 900, 1100, 50_000])
def test_a_field_nested_too_deeply_makes_an_object_unreadable(levels):
    deep = "[" * levels + "]" * levels
    _, document = read_event(line_of(f'{{"metadata":{{}},"spec":{{"a":{deep}}}}}'))
    entry = Store(Resource("v1", "things"), header)._entry(document)
    assert entry.header.unreadable == (levels > MAX_DEPTH - 3)


def test_a_usual_object_is_not_decoded_completely(monkeypatch):
    def decode(text: bytes) -> Any:
        raise AssertionError(text)

    monkeypatch.setattr(documents, "read_json", decode)
    obj: Raw = {
        "metadata": {"name": "ä", "resourceVersion": "5", "managedFields": [{"a": {}}]},
        "spec": {"shoot": {"metadata": {"name": "x"}}, "many": [{}] * MAX_DEPTH},
    }
    line = json.dumps({"type": "ADDED", "object": obj}, ensure_ascii=False).encode()
    kind, document = read_event(line)
    assert (kind, document.request.name, document.version) == ("ADDED", "ä", 5)
    assert "many" not in document.fields["spec"]
    del obj["metadata"]["managedFields"]
    assert msgspec.json.decode(document.encoded()) == obj
