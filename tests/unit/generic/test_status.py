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
    """What the API server makes of such a patch."""
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
def test_success_takes_the_error_away(before):
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
PROCESSING, SUCCEEDED, ERROR = (
    LastOperationState.PROCESSING,
    LastOperationState.SUCCEEDED,
    LastOperationState.ERROR,
)


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
def test_a_kind_outside_gardener_says_it_by_the_condition_ready(
    type, state, failure, before, expected
):
    after = shown(before, state, "so it is", failure=failure, type=type, ready=READY)
    others, found = after["conditions"][:-1], after["conditions"][-1]
    assert (found["type"], found["status"], found["reason"]) == ("Ready", *expected)
    assert found["message"] == "so it is"
    assert others == (before or {"conditions": []})["conditions"][:-1]
    stays = before is not None and expected[0] == "True"
    assert found["lastTransitionTime"] == ("2025-01-01T00:00:00Z" if stays else NOW)
    assert after.get("observedGeneration") == (None if state is PROCESSING else 3)
    assert not {"lastOperation", "lastError"} & after.keys()
    waits = not_ready_because({"metadata": {"generation": 3}, "status": after})
    assert (waits is None) == (state is SUCCEEDED)


def test_an_actuator_changes_everything_but_what_is_ours():
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


def test_conditions_are_written_upon_what_was_read():
    before = {"conditions": [{"type": "a", "status": "True"}]}
    wanted = {"conditions": [{"type": "b", "status": "True"}]}
    patch = status.patch(obj(before), wanted)
    test = {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}
    assert test in patch
