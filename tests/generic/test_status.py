"""lastOperation and lastError, exactly as gardenlet reads them."""

import copy

import pytest

from actuator.errors import ErrorCode
from actuator.meta import LastOperationType
from generic import status
from generic.garden import not_ready_because

NOW = "2026-01-01T00:00:00Z"
TYPE = LastOperationType.RECONCILE
BEFORE = {
    "providerStatus": {"a": 1},
    "lastError": {"description": "old", "codes": ["ERR_INFRA_DEPENDENCIES"]},
    "observedGeneration": 1,
}


def obj(before=None):
    made = {"metadata": {"uid": "u", "generation": 3}}
    return made if before is None else {**made, "status": copy.deepcopy(before)}


def applied(patch, to):
    """What the API server makes of such a patch."""
    after = copy.deepcopy(to)
    for op in patch:
        if op["op"] == "test":
            assert op["path"] in ("/metadata/uid", "/status")
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
    after = applied(status.processing(obj(before), TYPE, "at it", NOW), obj(before))
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
    patch = status.failed(
        obj(before), TYPE, "Error: no", NOW, generation=3, codes=codes, changed={}
    )
    after = applied(patch, obj(before))
    assert after["lastOperation"]["state"] == "Error"
    assert after["lastOperation"]["progress"] == 50
    assert after["lastOperation"]["description"] == after["lastError"]["description"] == "Error: no"
    assert after["lastError"].get("codes", []) == [str(code) for code in codes]
    assert after["observedGeneration"] == 3


@pytest.mark.parametrize("before", [None, {}, BEFORE], ids=["no status", "empty", "full"])
def test_success_takes_the_error_away(before):
    changed = {"providerStatus": {"b": 2}, "state": None}
    patch = status.succeeded(obj(before), TYPE, "done", NOW, generation=3, changed=changed)
    after = applied(patch, obj(before))
    assert "lastError" not in after
    assert "state" not in after
    assert after["providerStatus"] == {"b": 2}
    assert after["lastOperation"]["state"] == "Succeeded"
    assert after["lastOperation"]["progress"] == 100
    assert not_ready_because({"metadata": {"generation": 3}, "status": after}) is None


def test_an_actuator_changes_everything_but_what_is_ours():
    before = {"state": {"a": 1}, "nodesCIDR": "x", "lastOperation": {"type": "Create"}}
    after = {"state": {"a": 2}, "providerStatus": {}, "lastOperation": {"type": "Delete"}}
    assert status.changes(before, after) == {
        "nodesCIDR": None,
        "providerStatus": {},
        "state": {"a": 2},
    }


READY = {
    "observedGeneration": 3,
    "lastOperation": {"state": "Succeeded", "lastUpdateTime": "2026-01-01T10:00:00Z"},
}
STAMP = "gardener.cloud/timestamp"


@pytest.mark.parametrize(
    ("change", "annotations", "reason"),
    [
        pytest.param({}, {}, None, id="ready"),
        pytest.param({"lastError": {"description": "no"}}, {}, "error: no", id="an error"),
        pytest.param({"observedGeneration": 2}, {}, "generation", id="an old generation"),
        pytest.param({}, {"gardener.cloud/operation": "x"}, "picked up", id="any request left"),
        pytest.param({"lastOperation": None}, {}, "no last operation", id="never operated on"),
        pytest.param(
            {"lastOperation": {"state": "Error"}}, {}, "last operation is Error", id="not succeeded"
        ),
        pytest.param({}, {STAMP: "2026-01-01T10:00:00.999Z"}, None, id="the same second"),
        pytest.param({}, {STAMP: "2026-01-01T10:00:01Z"}, "older", id="a later request"),
    ],
)
def test_readiness_is_what_gardenlet_takes_it_for(change, annotations, reason):
    seen = {"metadata": {"generation": 3, "annotations": annotations}, "status": READY | change}
    because = not_ready_because(seen)
    assert (because is None) if reason is None else (reason in because)
