"""lastOperation and lastError, exactly as gardenlet reads them."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator.errors import ErrorCode
from actuator.meta import LastOperationState, LastOperationType, ReadyReasons
from generic.reconciler import status
from generic.testing.garden import not_ready_because

NOW = "2026-01-01T00:00:00Z"
TYPE = LastOperationType.RECONCILE
BEFORE = {
    "providerStatus": {"a": 1},
    "lastError": {"description": "old", "codes": ["ERR_INFRA_DEPENDENCIES"]},
    "observedGeneration": 1,
}


def obj(before=None):
    made = {"metadata": {"uid": "u", "generation": 3, "resourceVersion": "7"}}
    return made if before is None else {**made, "status": copy.deepcopy(before)}


def shown(before, state, text, changed=None, failure=None, type=TYPE, ready=None):
    """The status after that was reported."""
    report = status.Report(
        type=type, state=state, text=text, now=NOW, generation=3, failure=failure
    )
    fields = status.reported(obj(before), changed or {}, report, ready)
    return applied(status.patch(obj(before), fields), obj(before))


def applied(patch, to):
    """The object after such a patch by the API server."""
    after = copy.deepcopy(to)
    for op in patch:
        if op["op"] == "test":
            assert op["path"] in ("/metadata/uid", "/status", "/metadata/resourceVersion")
            continue
        _, field, *rest = op["path"].split("/")
        target = after["status"] if rest else after
        if op["op"] == "remove":
            del target[rest[0]]
        else:
            target[rest[0] if rest else field] = op["value"]
    return after["status"]


@pytest.mark.parametrize("before", [None, {}, BEFORE], ids=["no status", "empty", "full"])
def test_processing_leaves_error_and_generation_alone(before):
    after = shown(before, LastOperationState.PROCESSING, "at it")
    assert after["lastOperation"] == {
        "type": "Reconcile",
        "state": "Processing",
        "progress": 1,
        "description": "at it",
        "lastUpdateTime": NOW,
    }
    for field in ("lastError", "observedGeneration", "providerStatus"):
        assert after.get(field) == (before or {}).get(field)


@pytest.mark.parametrize("before", [None, {}, BEFORE], ids=["no status", "empty", "full"])
@pytest.mark.parametrize("codes", [(), (ErrorCode.ERR_INFRA_UNAUTHENTICATED,)])
def test_an_error_says_the_same_twice_with_its_codes(before, codes):
    failure = status.Failure(text="no", codes=codes)
    after = shown(before, LastOperationState.ERROR, "Error: no", failure=failure)
    assert after["lastOperation"]["state"] == "Error"
    assert after["lastOperation"]["progress"] == 50
    assert after["lastOperation"]["description"] == after["lastError"]["description"] == "Error: no"
    assert after["lastError"].get("codes", []) == [str(code) for code in codes]
    assert after["observedGeneration"] == 3


@pytest.mark.parametrize("before", [None, {}, BEFORE], ids=["no status", "empty", "full"])
def test_success_removes_the_error(before):
    changed = {"providerStatus": {"b": 2}, "state": None}
    after = shown(before, LastOperationState.SUCCEEDED, "done", changed)
    assert "lastError" not in after
    assert "state" not in after
    assert after["providerStatus"] == {"b": 2}
    assert after["lastOperation"]["state"] == "Succeeded"
    assert after["lastOperation"]["progress"] == 100
    assert not_ready_because({"metadata": {"generation": 3}, "status": after}) is None


READY = ReadyReasons(succeeded="Provisioned", failed="ProvisionFailed")
WAS_READY = {
    "conditions": [
        {"type": "Other", "status": "True"},
        {"type": "Ready", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"},
    ]
}
DELETE = LastOperationType.DELETE
PROCESSING = LastOperationState.PROCESSING
SUCCEEDED = LastOperationState.SUCCEEDED
ERROR = LastOperationState.ERROR


@pytest.mark.parametrize(
    ("type", "state", "failure", "before", "expected"),
    [
        (TYPE, PROCESSING, None, None, ("False", "Reconciling")),
        (TYPE, PROCESSING, None, WAS_READY, ("True", "Reconciling")),
        (TYPE, SUCCEEDED, None, None, ("True", "Provisioned")),
        (TYPE, ERROR, status.Failure(text="no"), WAS_READY, ("False", "ProvisionFailed")),
        (TYPE, ERROR, status.Failure(text="no", reason="Lost"), None, ("False", "Lost")),
        (DELETE, PROCESSING, None, WAS_READY, ("False", "Deleting")),
        (DELETE, ERROR, status.Failure(text="no"), None, ("False", "DeletionFailed")),
        (
            DELETE,
            ERROR,
            status.Failure(text="no", reason="Lost", gives_up=True),
            None,
            ("False", "DeletionFailedPermanently"),
        ),
    ],
)
def test_a_kind_outside_gardener_reports_by_the_condition_ready(
    type, state, failure, before, expected
):
    after = shown(before, state, "so it is", failure=failure, type=type, ready=READY)
    others = after["conditions"][:-1]
    found = after["conditions"][-1]
    assert (found["type"], found["status"], found["reason"]) == ("Ready", *expected)
    assert found["message"] == "so it is"
    assert others == (before or {"conditions": []})["conditions"][:-1]
    stays = before is not None and expected[0] == "True"
    assert found["lastTransitionTime"] == ("2025-01-01T00:00:00Z" if stays else NOW)
    assert after.get("observedGeneration") == (None if state is PROCESSING else 3)
    assert not {"lastOperation", "lastError"} & after.keys()
    waits = not_ready_because({"metadata": {"generation": 3}, "status": after})
    assert (waits is None) == (state is SUCCEEDED)


def test_an_actuator_changes_every_field_but_ours():
    before = {"state": {"a": 1}, "nodesCIDR": "x", "lastOperation": {"type": "Create"}}
    after = {"state": {"a": 2}, "providerStatus": {}, "lastOperation": {"type": "Delete"}}
    assert status.changes(before, after) == {
        "nodesCIDR": None,
        "providerStatus": {},
        "state": {"a": 2},
    }


TYPES = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["True", "False"]))


def listed(conditions):
    return [{"type": type, "status": status} for type, status in conditions.items()]


@given(before=TYPES, wanted=TYPES, now=TYPES)
def test_of_the_conditions_only_those_that_the_actuator_changed_are_touched(before, wanted, now):
    changed = {"conditions": listed(wanted), "state": {}}
    seen = {"status": {"conditions": listed(now)}}
    after = status.onto(seen, changed, {"conditions": listed(before)})
    result = {c["type"]: c["status"] for c in after["conditions"]}
    for type in "abcd":
        touched = before.get(type) != wanted.get(type)
        assert result.get(type) == (wanted if touched else now).get(type)
    assert after["state"] == {}


def test_without_a_change_of_conditions_there_is_no_word_of_them():
    assert status.onto({"status": {"conditions": []}}, {"state": {}}, {}) == {"state": {}}


def test_conditions_are_written_only_to_the_version_read():
    before = {"conditions": [{"type": "a", "status": "True"}]}
    wanted = {"conditions": [{"type": "b", "status": "True"}]}
    patch = status.patch(obj(before), wanted)
    test = {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}
    assert test in patch


TESTS_UID = {"op": "test", "path": "/metadata/uid", "value": "u"}
TESTS_VERSION = {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}
NO_STATUS = {"op": "test", "path": "/status", "value": None}


@pytest.mark.parametrize(
    ("before", "fields", "operations"),
    [
        pytest.param(
            None,
            {"a": 1, "b": None},
            [NO_STATUS, {"op": "add", "path": "/status", "value": {"a": 1}}],
            id="without a status it is added whole",
        ),
        pytest.param(
            {"b": 1},
            {"a": 1, "b": None},
            [
                {"op": "add", "path": "/status/a", "value": 1},
                {"op": "add", "path": "/status/b", "value": {}},
                {"op": "remove", "path": "/status/b"},
            ],
            id="a field is removed also if it is missing",
        ),
        pytest.param(
            {},
            {"conditions": []},
            [TESTS_VERSION, {"op": "add", "path": "/status/conditions", "value": []}],
            id="conditions need the version that was read",
        ),
        pytest.param({}, {}, [], id="no field"),
    ],
)
def test_a_patch_sets_exactly_the_given_fields(before, fields, operations):
    assert status.patch(obj(before), fields) == [TESTS_UID, *operations]


def test_a_condition_has_its_codes_and_times():
    made = status.condition("T", "True", "R", "m", codes=[], now=NOW, since=None)
    assert made == {
        "type": "T",
        "status": "True",
        "reason": "R",
        "message": "m",
        "lastTransitionTime": NOW,
        "lastUpdateTime": NOW,
    }
    denied = [ErrorCode.ERR_INFRA_UNAUTHENTICATED]
    later = status.condition("T", "True", "R", "m", codes=denied, now=NOW, since="2025")
    changed = {"lastTransitionTime": "2025", "codes": ["ERR_INFRA_UNAUTHENTICATED"]}
    assert later == made | changed


def test_the_condition_ready_has_the_codes_and_the_times_of_its_report():
    failure = status.Failure(text="no", codes=[ErrorCode.ERR_INFRA_UNAUTHENTICATED])
    after = shown(None, ERROR, "no", failure=failure, ready=READY)
    [found] = after["conditions"]
    assert found["codes"] == ["ERR_INFRA_UNAUTHENTICATED"]
    assert found["lastUpdateTime"] == NOW
    without_time = {"conditions": [{"type": "Ready", "status": "False"}]}
    [found] = shown(without_time, ERROR, "no", failure=failure, ready=READY)["conditions"]
    assert found["lastTransitionTime"] == NOW


@pytest.mark.parametrize(
    ("type", "was", "status_", "since"),
    [
        pytest.param(TYPE, "True", "True", "2025", id="a ready object stays ready"),
        pytest.param(TYPE, "False", "False", "2025", id="as one that is not"),
        pytest.param(DELETE, "True", "False", NOW, id="an object under deletion is not ready"),
        pytest.param(DELETE, "False", "False", "2025", id="nor becomes it"),
        pytest.param(TYPE, "Unknown", "False", NOW, id="unknown is not ready"),
    ],
)
def test_processing_keeps_ready_only_for_an_object_that_stays(type, was, status_, since):
    before = {"conditions": [{"type": "Ready", "status": was, "lastTransitionTime": "2025"}]}
    [found] = shown(before, PROCESSING, "at it", type=type, ready=READY)["conditions"]
    assert (found["status"], found["lastTransitionTime"]) == (status_, since)


def fact(text, now, *before):
    [found] = status.with_fact({}, {"conditions": [*before]}, "A", "B", text, now)["conditions"]
    return found


def test_a_fact_is_written_once_for_each_text():
    first = fact("one", NOW)
    assert first == status.condition("A", "True", "B", "one", codes=(), now=NOW, since=None)
    assert fact("one", "2027", first) is first
    assert fact("two", "2027", first)["lastTransitionTime"] == "2027"
    assert fact("one", "2027", {"type": "A"})["message"]
    obj = {"status": {"conditions": [first]}}
    assert status.with_fact(obj, {}, "A", "B", "one", "2027") == {"conditions": [first]}


CONDITIONS = {name: {"type": name, "status": "True"} for name in "abc"}


def conditions(names):
    return {"conditions": [CONDITIONS[name] for name in names]}


@pytest.mark.parametrize(
    ("now", "before", "wanted", "after"),
    [
        pytest.param("ab", "a", "", "b", id="one that the actuator removed"),
        pytest.param("b", "a", "", "b", id="one that another controller removed too"),
        pytest.param("b", "a", "a", "b", id="one that the actuator left as it was"),
        pytest.param("b", "", "c", "bc", id="one that the actuator added"),
        pytest.param("", "", "c", "c", id="the first"),
    ],
)
def test_changed_conditions_are_merged_with_the_current_ones(now, before, wanted, after):
    changed = {**conditions(wanted), "state": {}}
    merged = status.onto({"status": conditions(now)}, changed, conditions(before))
    assert merged == {**conditions(after), "state": {}}


@pytest.mark.parametrize(
    ("current", "changed", "kept"),
    [
        pytest.param(None, {}, [], id="no status"),
        pytest.param({"conditions": None}, {}, [], id="no list"),
        pytest.param({"conditions": ["x", {"type": "a"}]}, {}, [{"type": "a"}], id="no object"),
        pytest.param(conditions("a"), conditions("b"), [CONDITIONS["b"]], id="changed ones"),
        pytest.param(conditions("a"), {"x": 1}, [CONDITIONS["a"]], id="current ones"),
    ],
)
def test_one_more_condition_is_added_to_the_changed_or_the_current_ones(current, changed, kept):
    def make(before):
        assert before is None
        return {"type": "new"}

    after = status.with_condition({"status": current}, changed, "new", make)
    assert after == {**changed, "conditions": [*kept, {"type": "new"}]}


def test_a_condition_that_exists_is_made_again_from_its_current_state():
    now = {"status": conditions("ab")}
    after = status.with_condition(
        now, {}, "a", lambda before: {**(before or {}), "status": "False"}
    )
    assert after == {"conditions": [{"type": "a", "status": "False"}, CONDITIONS["b"]]}


@pytest.mark.parametrize("name", ["lastOperation", "lastError", "observedGeneration"])
def test_an_actuator_cannot_change_a_field_of_the_reconciler(name):
    assert status.changes({name: 1}, {name: 2}) == {}
    assert status.changes({name: 1}, {}) == {}
    assert status.changes({}, {name: 2, "state": 0}) == {"state": 0}


def test_the_last_operation_of_every_state_is_complete():
    failure = status.Failure(text="no", codes=[ErrorCode.ERR_INFRA_UNAUTHENTICATED])
    after = shown(BEFORE, ERROR, "no", failure=failure, type=DELETE)
    assert after["lastOperation"] == {
        "description": "no",
        "lastUpdateTime": NOW,
        "progress": 50,
        "state": "Error",
        "type": "Delete",
    }
    assert after["lastError"] == {
        "description": "no",
        "lastUpdateTime": NOW,
        "codes": ["ERR_INFRA_UNAUTHENTICATED"],
    }
    uncoded = shown(BEFORE, ERROR, "no", failure=status.Failure(text="no"))
    assert uncoded["lastError"] == {"description": "no", "lastUpdateTime": NOW}
