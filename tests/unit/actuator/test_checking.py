"""A configuration is checked against its JSON Schema, and each problem has its exact path."""

import time
from enum import StrEnum
from random import Random
from typing import Annotated, Any, Literal

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.validators import extend

from actuator import checking
from actuator.checking import MAX_PROBLEMS, check
from actuator.codec import decode
from actuator.errors import DecodeError
from actuator.meta import Base64, Raw, Schema
from actuator.schema import json_schema, structural
from tests.support.objects.strictly import decode_strictly

VERSION = "example.org/v1"


class Policy(StrEnum):
    DELETE = "Delete"
    RETAIN = "Retain"


@attrs.frozen(kw_only=True)
class Zone:
    """A zone."""

    name: Annotated[str, Schema(pattern="[a-z]+", example="a")]
    workers: Annotated[str, Schema(format="cidr", example="10.0.0.0/8")] = "10.0.0.0/8"
    """The range
    of the nodes."""


@attrs.frozen(kw_only=True)
class Networks:
    zones: Annotated[list[Zone], Schema(min_length=1, max_length=3)]
    mtu: Annotated[int | None, Schema(minimum=1280, maximum=9000)] = None


@attrs.frozen(kw_only=True)
class Config:
    """A configuration."""

    api_version: str = VERSION
    kind: str = "Config"
    networks: Networks
    policy: Policy = Policy.DELETE
    mode: Literal["fast", "safe"] = "fast"
    ratio: float = 0.5
    is_public: bool = False
    size: int | str = 1
    counts: dict[str, int] = attrs.field(factory=dict)
    labels: dict[str, Annotated[str, Schema(max_length=3)]] = attrs.field(factory=dict)
    data: Base64 | None = None
    raw: Raw | None = None
    anything: Any = None
    token: Annotated[str, Schema(format="password", min_length=8)] = "changeme"


GOOD = {"networks": {"zones": [{"name": "a"}]}}
FORMATS = FormatChecker(())
FORMATS.checks("cidr")(lambda text: not isinstance(text, str) or checking._is_range(text))
INTEGERS = Draft202012Validator.TYPE_CHECKER.redefine(
    "integer", lambda _, item: type(item) is int and -(2**63) <= item < 2**63
)
"""JSON Schema has no limit; the API server reads larger numbers as floats."""
VALIDATOR = extend(Draft202012Validator, type_checker=INTEGERS)(
    json_schema(Config), format_checker=FORMATS
)


def accepts(value: object) -> bool:
    return bool(VALIDATOR.is_valid(value))


def decodes(value: object) -> bool:
    try:
        decode_strictly(Config, value)
    except DecodeError:
        return False
    return True


TEXTS = st.sampled_from(["a", "ab", "A", "", "Delete", "fast", "10.0.0.0/8", "10.0.0.1/8", "1.5"])
SCALARS = TEXTS | st.booleans() | st.sampled_from([0, 1, 1280, 9000, 9001, -1, 0.5, 2**70])
ANY = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


def fields(**known: st.SearchStrategy[Any]) -> st.SearchStrategy[Raw]:
    """Some of these fields, now and then with a value of any type, or an unknown field."""
    odd = {name: value | ANY for name, value in known.items()}
    unknown: st.SearchStrategy[Raw] = (
        st.dictionaries(st.just("nmae"), ANY, max_size=1) | st.just({}) | st.just({})
    )
    return st.builds(
        lambda item, other: item | other, st.fixed_dictionaries({}, optional=odd), unknown
    )


ZONES = fields(name=TEXTS, workers=TEXTS)
CONFIGS = fields(
    apiVersion=st.sampled_from([VERSION, "example.org/v2"]),
    kind=st.sampled_from(["Config", "Other"]),
    networks=fields(zones=st.lists(ZONES, max_size=4), mtu=st.integers(1279, 9001)) | st.just({}),
    policy=TEXTS,
    mode=TEXTS,
    ratio=st.floats(0.1, 0.9) | st.integers(),
    isPublic=st.booleans(),
    size=SCALARS,
    counts=st.dictionaries(TEXTS, SCALARS, max_size=2),
    labels=st.dictionaries(TEXTS, TEXTS, max_size=2),
    data=TEXTS,
    raw=ANY,
    anything=ANY,
    token=TEXTS,
)
LIKELY = st.builds(lambda value, rest: {**rest, **value}, st.just(GOOD), CONFIGS)


@settings(max_examples=200)
@given(CONFIGS | LIKELY | ANY)
@example(GOOD | {"size": 2**70})
def test_the_schema_accepts_exactly_the_values_that_decode(value):
    assert accepts(value) == decodes(value)


NEAR_MISSES = {
    "a bound": {"networks": {"zones": [{"name": "a"}], "mtu": 1279}},
    "a pattern": {"networks": {"zones": [{"name": "A"}]}},
    "a range": {"networks": {"zones": [{"name": "a", "workers": "10.0.0.1/8"}]}},
    "too few": {"networks": {"zones": []}},
    "too long": GOOD | {"labels": {"a": "abcd"}},
    "an enum": GOOD | {"policy": "delete"},
    "a literal": GOOD | {"mode": "slow"},
    "a type": GOOD | {"counts": {"a": "1"}},
    "a bool": GOOD | {"size": True},
    "a field": GOOD | {"polcy": "Delete"},
    "a missing field": {"networks": {}},
    "another version": GOOD | {"apiVersion": "example.org/v2"},
}


@pytest.mark.parametrize("miss", NEAR_MISSES)
def test_schema_and_decoding_refuse_the_same_near_misses(miss):
    assert accepts(GOOD)
    assert decodes(GOOD)
    assert not accepts(NEAR_MISSES[miss])
    assert not decodes(NEAR_MISSES[miss])


@pytest.mark.parametrize(
    "keyword", ["enum", "minimum", "pattern", "maxLength", "minItems", "format"]
)
def test_a_constraint_that_decoding_forgets_is_noticed(monkeypatch, keyword):
    phrase, _, operator = checking.CONSTRAINTS[keyword]
    monkeypatch.setitem(checking.CONSTRAINTS, keyword, (phrase, (), operator))
    forgotten = [miss for miss in NEAR_MISSES.values() if accepts(miss) != decodes(miss)]
    assert forgotten or keyword == "enum", "an Enum also refuses its value when it is decoded"


def with_zone(**changes: Any) -> Raw:
    return {"networks": {"zones": [{"name": "a"}, {"name": "b"} | changes]}}


RANGE = "a string like '10.0.0.0/8' (the first address of a range and its prefix length)"
PROBLEMS = [
    (
        with_zone(workers="10.0.0.1/8"),
        f".networks.zones[1].workers: expected {RANGE}, got '10.0.0.1/8'",
    ),
    (with_zone(worker="x"), ".networks.zones[1]: unknown field worker; did you mean workers?"),
    (with_zone(NAME="x"), ".networks.zones[1]: unknown field NAME; did you mean name?"),
    (with_zone(x=1), ".networks.zones[1]: unknown field x; remove it, or use one of name, workers"),
    (
        with_zone(name=5),
        ".networks.zones[1].name: expected a string like 'a' (pattern [a-z]+), got an integer",
    ),
    (
        with_zone(name=None),
        ".networks.zones[1].name: required field missing; set a string like 'a' (pattern [a-z]+)",
    ),
    ({}, ".networks: required field missing; set an object"),
    ([], ": expected an object, got a list"),
    (GOOD | {"policy": "delete"}, ".policy: expected one of Delete, Retain, got 'delete'"),
    (GOOD | {"counts": {"a": "1"}}, ".counts.a: expected an integer, got a string"),
    (GOOD | {"size": 1.5}, ".size: expected an integer or a string, got a number"),
    (
        GOOD | {"token": "secret"},
        ".token: expected a string (characters: at least 8), got a secret value",
    ),
    (
        GOOD | {"kind": "Confg", "x": 1},
        f": {VERSION} Confg is not supported; set apiVersion {VERSION} and kind Config",
    ),
]


@pytest.mark.parametrize(("value", "problem"), PROBLEMS)
def test_a_problem_has_the_path_the_expectation_and_the_value(value, problem):
    assert [f"{field}: {text}" for field, text in check(Config, value, "spec")] == [
        f"spec{problem}"
    ]


def test_a_null_counts_as_an_absent_field():
    given = GOOD | {"policy": None, "kind": None, "counts": None}
    assert decode_strictly(Config, given) == decode_strictly(Config, GOOD)


def test_values_of_unknown_fields_are_in_no_message():
    assert "hunter2" not in str(check(Config, GOOD | {"pasword": "hunter2"}))


@pytest.mark.parametrize(
    "value",
    [
        {f"field{number}": 1 for number in range(200_000)},
        {"networks": {"zones": [{"name": "A" * 10**6}] * 3}},
        {"networks": {"zones": [1] * 10**6}},
        GOOD | {"labels": {f"{number}" * 9: "x" * 9 for number in range(10**5)}},
        GOOD | {"\x1b]0;x\x07" * 10**5: 1, "kind": "\x1b" * 10**6},
        GOOD | {"ratio": "1" * 10**6, "policy": "x" * 10**6},
    ],
)
def test_problems_are_few_and_short_whatever_the_value(value):
    began = time.monotonic()
    problems = check(Config, value, "spec")
    assert time.monotonic() - began < 5
    assert 0 < len(problems) <= MAX_PROBLEMS
    assert all(
        len(f"{field}{text}") < 500 and (field + text).isprintable() for field, text in problems
    )


def test_the_schema_is_valid_and_has_the_texts_below_the_fields():
    schema = json_schema(Config)
    Draft202012Validator.check_schema(schema)
    zone = schema["properties"]["networks"]["properties"]["zones"]["items"]
    assert zone["description"] == "A zone."
    assert zone["properties"]["workers"]["description"] == "The range of the nodes."
    assert zone["properties"]["workers"]["default"] == "10.0.0.0/8"
    assert schema["properties"]["kind"]["enum"] == ["Config"]


def test_the_structural_schema_has_no_default_and_is_open():
    text = str(structural(Config))
    assert "default'" not in text
    assert "additionalProperties': False" not in text
    assert "'x-kubernetes-int-or-string': True" in text


def test_a_dict_of_integers_is_no_integer_or_string():
    assert decode(Config, GOOD | {"counts": {"a": 1}}).counts == {"a": 1}


@attrs.frozen(kw_only=True)
class Limits:
    """Constraints of fields with several types, of lists and of maps."""

    replicas: Annotated[int | str, Schema(minimum=1, pattern="[0-9]+%")] = 1
    tokens: Annotated[list[Annotated[str, Schema(format="password")]], Schema(max_length=1)] = (
        attrs.field(factory=list)
    )
    labels: Annotated[dict[str, str], Schema(max_length=1)] = attrs.field(factory=dict)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"replicas": 3}, ""),
        ({"replicas": "50%"}, ""),
        ({"replicas": 0}, "(at least 1, pattern [0-9]+%), got 0"),
        ({"replicas": "all"}, "got 'all'"),
        ({"tokens": ["hunter2", "hunter3"]}, "a list (entries: at most 1), got 2 entries"),
        ({"labels": {"a": "hunter2", "b": ""}}, "an object (entries: at most 1), got 2 entries"),
    ],
)
def test_a_constraint_is_for_the_values_of_its_type(value, words):
    problems = check(Limits, value)
    assert Draft202012Validator(json_schema(Limits)).is_valid(value) == (words == "")
    assert [text for _, text in problems if words in text and "hunter" not in text] == [
        text for _, text in problems
    ]
    assert bool(problems) == bool(words)


def test_an_invalid_pattern_is_refused_where_it_is_declared():
    with pytest.raises(ValueError, match=r"Schema\(pattern='\['\): unterminated .*; correct it"):
        Schema(pattern="[")


@attrs.frozen
class Tree:
    children: "list[Tree]" = attrs.field(factory=list)


@pytest.mark.parametrize("schema_of", [json_schema, structural])
def test_a_class_that_contains_itself_is_named(schema_of):
    with pytest.raises(TypeError, match=r"^Tree contains itself and has no schema; use dict\["):
        schema_of(Tree)


@attrs.frozen
class Odd:
    callback: set[str] = attrs.field(factory=set)


def test_a_type_without_schema_is_named():
    with pytest.raises(TypeError, match=r"Odd\.callback: set\[str\] has no schema; use a scalar"):
        json_schema(Odd)


SHARED = [
    "a", ".", "-", r"\.", r"\\", r"\[", r"\]", r"\(", r"\?", r"\+", r"\*", r"\}", r"\d", "[0-9]",
    "[^a-z]", "[]a]", "[^]a]", r"[\]\\]", r"[\w.-]", "[*+?{}()|]", "[(?=a)]", "[:a]", r"[\[:]",
    "[,0-9]",
]  # fmt: skip
"""Atoms that Python and RE2 read alike: characters, escapes and classes."""
REPEATS = ["", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{2,}", "{1,63}", "{0,999}?"]
GROUPS = ["{}", "{}", "({})", "(?:{})", "(?P<g{}>{})", "{}|b"]
ONLY_PYTHON = [
    r"(?=a)b", r"(?i:a)", r"(a)\1", r"\s", r"[\s]", r"[^a\S]", r"[\b]", r"\Z", "a*+", "[ab]++",
    "[0-9]?+", r"\]*+", "a{2}+", "a{,3}", "[a]{,3}", "a{1001}", "[a]{1,1001}", "[[:alpha:]]+",
    "[a[:digit:]]", r"\u0041", r"[\u0041]", r"\é", "(?>a)", "(?#x)", "(?<!a)b", r"\\\s",
]  # fmt: skip


def shared_pattern(rng):
    """A pattern of atoms, each with or without a repeat, some of them in a group."""
    parts = []
    for number in range(rng.randint(1, 6)):
        part = rng.choice(SHARED) + rng.choice(REPEATS)
        group = rng.choice(GROUPS)
        parts.append(group.format(*([number, part] if group.count("{}") == 2 else [part])))
    return "".join(parts)


@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")
def test_a_pattern_of_shared_constructs_is_accepted_and_any_other_refused():
    rng = Random(7)
    for _ in range(3000):
        pattern = shared_pattern(rng)
        more = shared_pattern(rng)
        assert Schema(pattern=pattern).pattern == pattern
        other = rng.choice(ONLY_PYTHON)
        with pytest.raises(ValueError, match=r"differs between Python and RE2|redefinition of"):
            Schema(pattern=f"{pattern}{other}{more}")


@pytest.mark.parametrize("pattern", ["-?[0-9]+", r"\?+", "[a-z]{2}[0-9]+", "a{b2024}", r"[*+?]+"])
def test_a_pattern_that_both_read_alike_is_accepted(pattern):
    assert Schema(pattern=pattern).pattern == pattern


@attrs.frozen(kw_only=True)
class Read:
    digits: Annotated[str, Schema(pattern=r"\d+")] = "1"
    number: int = 1
    address: Annotated[str, Schema(format="ip")] = "::1"
    cidr: Annotated[str, Schema(format="cidr")] = "::/0"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"digits": "\u0663"}, "expected a string (pattern \\d+), got '\u0663'"),
        ({"number": 2**63}, "expected an integer, got one of more than 64 bits"),
        ({"number": 2**63 - 1}, ""),
        ({"address": "10.0.0.1"}, ""),
        ({"address": "::ffff:10.0.0.1"}, "address of IPv4 or IPv6), got '::ffff:10.0.0.1'"),
        ({"address": "10.0.0.0/8"}, "address of IPv4 or IPv6), got '10.0.0.0/8'"),
        ({"address": "fe80::1%eth0"}, "address of IPv4 or IPv6), got 'fe80::1%eth0'"),
        ({"cidr": "10.0.0.0/08"}, "prefix length), got '10.0.0.0/08'"),
        ({"cidr": "::ffff:10.0.0.0/104"}, "prefix length), got '::ffff:10.0.0.0/104'"),
    ],
)
def test_a_value_is_read_as_the_api_server_reads_it(value, problem):
    found = " ".join(text for _, text in check(Read, value))
    assert found.endswith(problem)
    assert bool(found) == bool(problem)
