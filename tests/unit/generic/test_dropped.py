"""Dropped fields are found: in generated values, pruned as Kubernetes does by generated schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from actuator import Resource
from actuator.codec import read_json
from actuator.errors import ErrorCode, codes_of
from generic.kube.dropped import CHANGED, NotStored, lost
from generic.kube.encoding import go_json
from generic.kube.errorinfo import read_error
from generic.kube.finalizers import patch_adding, patch_tested
from tests.support.objects.stand_ins import StandIn

NAMES = st.sampled_from("abcd")
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text(max_size=3)
ANY = st.recursive(
    SCALARS,
    lambda part: st.lists(part, max_size=2) | st.dictionaries(NAMES, part, max_size=3),
    max_leaves=6,
)
# A schema is a dict of properties, ["items", schema], ["map", schema], or "any": it keeps all.
SCHEMAS = st.recursive(
    st.just("any"),
    lambda part: (
        st.dictionaries(NAMES, part, max_size=3)
        | st.tuples(st.sampled_from(["items", "map"]), part).map(list)
    ),
    max_leaves=6,
)


@st.composite
def values(draw: Any, schema: Any) -> Any:
    """A value of the type of the schema, also with fields that it lacks."""
    if schema == "any":
        return draw(ANY)
    if isinstance(schema, dict):
        known = {name: values(part) for name, part in schema.items()}
        unknown = draw(st.dictionaries(NAMES, ANY, max_size=2))
        unknown = {name: part for name, part in unknown.items() if name not in schema}
        return unknown | draw(st.fixed_dictionaries({}, optional=known))
    kind, part = schema
    if kind == "items":
        return draw(st.lists(values(part), max_size=2))
    return draw(st.dictionaries(NAMES, values(part), max_size=2))


WRITES = SCHEMAS.flatmap(lambda schema: st.tuples(st.just(schema), values(schema)))


def pruned(value: Any, schema: Any, path: str, dropped: list[str]) -> Any:
    """The value as the API server stores it; the fields that it drops are added to `dropped`."""
    if schema == "any" or value is None:
        return value
    if isinstance(schema, list) and schema[0] == "items":
        return [pruned(item, schema[1], f"{path}[{i}]", dropped) for i, item in enumerate(value)]
    kept = {}
    for name, part in value.items():
        place = f"{path}.{name}"
        if isinstance(schema, list):
            kept[name] = pruned(part, schema[1], place, dropped)
        elif name in schema and part is not None:  # a null that is not nullable is removed
            kept[name] = pruned(part, schema[name], place, dropped)
        elif part is not None:
            dropped.append(place)
    return kept


def with_defaults(value: Any) -> Any:
    """The value with the fields that defaults add to objects."""
    if isinstance(value, list):
        return [with_defaults(item) for item in value]
    if isinstance(value, dict):
        return {**{name: with_defaults(part) for name, part in value.items()}, "default": 1}
    return value


def check(compare: Any, write: tuple[Any, Any]) -> bool:
    schema, value = write
    dropped: list[str] = []
    stored = with_defaults(pruned(value, schema, "status", dropped))
    return sorted(compare(value, stored, "status")) == sorted(dropped)


@given(WRITES)
def test_each_dropped_field_is_found_and_nothing_else(write):
    assert check(lost, write)


def not_in_lists(sent: Any, stored: Any, path: str) -> Iterator[str]:
    return (item for item in lost(sent, stored, path) if "[" not in item)


def only_at_the_top(sent: Any, stored: Any, path: str) -> Iterator[str]:
    return (item for item in lost(sent, stored, path) if item.count(".") < 2)


@pytest.mark.parametrize("careless", [not_in_lists, only_at_the_top])
def test_the_law_finds_a_comparison_that_overlooks_fields(careless):
    quickly = settings(phases=[Phase.generate], max_examples=1000)
    assert find(WRITES, lambda write: not check(careless, write), settings=quickly)


@given(ANY)
def test_a_value_that_comes_back_as_go_writes_it_is_no_loss(value):
    assert not [*lost(value, read_json(go_json(value).encode(errors="replace")), "status")]


CHANGES = {
    "a value": ({"id": "a"}, {"id": "b"}, [f"status.id{CHANGED}"]),
    "its type": ({"id": {"a": 1}}, {"id": "a"}, [f"status.id{CHANGED}"]),
    "a shorter list": ({"ids": [1, 2]}, {"ids": [1]}, [f"status.ids{CHANGED}"]),
    "another order": (
        {"ids": [1, 2]},
        {"ids": [2, 1]},
        [f"status.ids[{i}]{CHANGED}" for i in (0, 1)],
    ),
    "a null": ({"id": "a"}, {"id": None}, [f"status.id{CHANGED}"]),
    "a missing empty value": ({"id": {}}, {}, ["status.id"]),
    "an integer as a number": ({"n": 1.0}, {"n": 1}, []),
    "a null that is removed": ({"id": None}, {}, []),
    "a null with a default": ({"id": None}, {"id": "d"}, []),
    "an additional entry": ({"ids": [1]}, {"ids": [1, 2]}, []),
    "no encoding": ({"id": "\ud800"}, {"id": "?"}, []),
    "no status": ({"id": 1}, None, ["status.id"]),
}


@pytest.mark.parametrize(("sent", "stored", "paths"), CHANGES.values(), ids=CHANGES)
def test_a_change_is_named_and_a_normalisation_is_none(sent, stored, paths):
    assert [*lost(sent, stored, "status")] == paths


def test_the_error_names_fields_crd_and_remedy_and_allows_a_force_deletion():
    resource = Resource("extensions.gardener.cloud/v1alpha1", "infrastructures")
    error = NotStored(resource, ["status.a", f"status.b{CHANGED}", *["status.c"] * 100])
    assert str(error).startswith("cannot store status.a, status.b (changed), status.c, ")
    assert "the CRD infrastructures.extensions.gardener.cloud in this cluster" in str(error)
    assert "install the CRDs of this version (actuator crds)" in str(error)
    assert len(str(error)) < 400
    assert codes_of(error) == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)
    assert read_error(error).codes == codes_of(error)
    assert read_error(error).blocked_reason == "NotStored"
    assert error.codes[0].allows_force_deletion


@pytest.mark.parametrize(("kept", "is_stored"), [(["a/b", "c/d"], True), (["a/b"], False)])
def test_a_finalizer_is_on_the_object_only_if_the_answer_has_it(kept, is_stored):
    class Answering(StandIn):
        def patch(self, *_: Any, **__: Any) -> Any:
            return {"metadata": {"finalizers": kept}}

    where = Resource("v1", "secrets"), "name", "namespace"
    patch = patch_adding("c/d", "uid", ["a/b"])
    if is_stored:
        patch_tested(Answering(), *where, patch)
        return
    with pytest.raises(NotStored, match=r"cannot store metadata\.finalizers"):
        patch_tested(Answering(), *where, patch)
