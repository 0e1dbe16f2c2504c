"""The field managers whose fields ours takes over before an apply, and those that stay."""

import pytest

from actuator.meta import Raw
from generic.kube.writing import handed_over

WANTED = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "a", "labels": {"purpose": "x"}, "annotations": {"mine": "1"}},
    "data": {"key": "eA=="},
}
DATA: Raw = {"f:data": {"f:old": {}, "f:key": {}}}
LABELS: Raw = {"f:metadata": {"f:labels": {".": {}, "f:old": {}, "f:purpose": {}}}}
FINALIZERS: Raw = {"f:metadata": {"f:finalizers": {".": {}, 'v:"a/b"': {}}}}
TOKEN = {"f:data": {"f:token": {}}, "f:metadata": {"f:annotations": {".": {}, "f:renewed": {}}}}


def entry(manager, fields, operation="Update", **more):
    head = {"manager": manager, "operation": operation, "apiVersion": "v1"}
    return {**head, "fieldsType": "FieldsV1", "fieldsV1": fields, **more}


OURS = entry("actuator", DATA, "Apply")

FORMER = {
    "a Go extension, by a key": [entry("go", DATA)],
    "a Go extension, by a label": [entry("go", LABELS)],
    "the creator of the data, which has other keys": [
        entry("go", {"f:data": {".": {}, "f:old": {}}})
    ],
    "this library, by POST": [entry("actuator", DATA)],
    "this library, by POST and then by apply": [entry("actuator", LABELS), OURS],
}
OTHERS = {
    "no one": [],
    "we, by apply": [OURS],
    "a controller that adds keys of its own": [entry("grm", TOKEN)],
    "a controller with a finalizer": [entry("mcm", FINALIZERS)],
    "a controller that sets the status": [entry("c", DATA, subresource="status")],
    "a writer of another version, whose paths may differ": [entry("go", DATA, apiVersion="v2")],
    "another manager that applies": [entry("flux", DATA, "Apply")],
    "a user who changed a field of ours": [OURS, entry("kubectl-edit", DATA)],
    "this library, by a patch of another field": [OURS, entry("actuator", TOKEN)],
}


def taken_over(managed: list[Raw]) -> list[Raw]:
    found = handed_over(managed, WANTED)
    assert found is not None
    return found


@pytest.mark.parametrize("managed", FORMER.values(), ids=FORMER)
def test_the_fields_of_a_former_writer_are_taken_over(managed):
    [found] = taken_over(managed)
    assert (found["manager"], found["operation"]) == ("actuator", "Apply")
    for former in managed:
        assert former["fieldsV1"].keys() <= found["fieldsV1"].keys()


@pytest.mark.parametrize("managed", OTHERS.values(), ids=OTHERS)
def test_the_fields_of_others_stay(managed):
    assert handed_over(managed, WANTED) is None


def test_finalizers_stay_with_the_manager_that_set_them():
    both = {"f:metadata": {**LABELS["f:metadata"], **FINALIZERS["f:metadata"]}, **DATA}
    rest, ours = taken_over([entry("go", both)])
    assert rest == entry("go", FINALIZERS)
    assert ours["fieldsV1"] == {**DATA, **LABELS}


def test_the_union_has_the_fields_of_both():
    beside = entry("actuator", {**LABELS, "f:data": {"f:key": {}}})
    [found] = taken_over([OURS, beside])
    assert found["fieldsV1"] == {**DATA, **LABELS}
