"""The Gardener contract: which events are worth a look."""

import pytest

from generic.controller.predicates import has_class, has_type, operation_requested
from generic.kube.clusters import CLUSTERS
from generic.kube.headers import Event, EventType, Request, header
from tests.support.cluster.harness import OPERATION, eventually
from tests.support.objects.builders import cluster, infrastructure


def seen(**more):
    """The header of an object; `last` is its last operation."""
    last = more.pop("last", ("Reconcile", "Succeeded"))
    status = {"lastOperation": {"type": last[0], "state": last[1]}} if last else {}
    meta = {"name": "o", "namespace": "n", "uid": "u", "generation": 1, "resourceVersion": "1"}
    spec = {"type": more.pop("type", "aws"), "class": more.pop("class_", None)}
    return header({"metadata": {**meta, **more}, "spec": spec, "status": status})


def event(old, new):
    kind = EventType.MODIFIED if old and new else EventType.ADDED if new else EventType.DELETED
    return Event(kind, Request("n", "o"), old, new)


DELETING = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"]}


def test_an_event_without_an_object_is_nothing():
    assert not operation_requested(Event(EventType.ADDED, Request("n", "o"), None, None))


@pytest.mark.parametrize("operation", ["reconcile", "migrate", "restore"])
@pytest.mark.parametrize("old", [None, seen()])
def test_a_requested_operation_is_worth_a_look(old, operation):
    assert operation_requested(event(old, seen(annotations={OPERATION: operation})))


@pytest.mark.parametrize("operation", ["wait-for-state", "anything"])
def test_other_values_ask_for_nothing(operation):
    assert not operation_requested(event(seen(), seen(annotations={OPERATION: operation})))


@pytest.mark.parametrize(
    ("new", "passes"),
    [
        (seen(**DELETING), True),
        (seen(last=None), True),
        (seen(last=("Create", "Error")), True),
        (seen(last=("Reconcile", "Processing")), True),
        (seen(), False),
    ],
)
def test_after_a_restart_unfinished_objects_are_enqueued(new, passes):
    assert operation_requested(event(None, new)) is passes


def test_only_changes_that_decide_a_deletion_trigger_a_terminating_object():
    """Difference: Go's library asks whether the status is equal, to leave out its own writes. So it
    drops changes of others together with it, and other writers set the rate of its attempts."""
    deleting = seen(**DELETING)
    assert not operation_requested(event(deleting, seen(**DELETING, last=("Delete", "Error"))))
    assert not operation_requested(event(deleting, seen(**DELETING, annotations={"a": "b"})))
    both = seen(**DELETING, last=("Delete", "Error"), annotations={"gardener.cloud/timestamp": "2"})
    assert operation_requested(event(deleting, both))
    assert not operation_requested(event(deleting, None))


def test_a_deletion_is_worth_a_look():
    assert operation_requested(event(seen(), seen(**DELETING)))


@pytest.mark.parametrize("missing", [False, True])
def test_a_failed_shoot_loses_no_event(seed, start, script, missing):
    """Difference: Go's predicate drops events while the shoot has failed or the Cluster cannot be
    read; here they are decided by the reconciler, and looked at again when the Cluster changes."""
    if missing:
        seed.client.delete(CLUSTERS, seed.namespace)
    else:
        seed.update_cluster(cluster(seed.namespace, failed=True))
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    if missing:
        eventually(lambda: seed.last_operation() == ("Create", "Error"))
        seed.create(cluster(seed.namespace))
    else:
        seed.update_cluster(cluster(seed.namespace))
    eventually(seed.is_ready)
    assert script.operations() == ["reconcile"]


@pytest.mark.parametrize(
    ("class_", "served", "passes"),
    [
        *((class_, served, True) for class_ in (None, "shoot") for served in ([], [""], ["shoot"])),
        *((class_, ["garden"], False) for class_ in (None, "shoot")),
        *((class_, ["seed", "garden"], False) for class_ in (None, "shoot")),
        ("garden", [], False),
        ("garden", ["shoot"], False),
        ("garden", ["garden"], True),
        ("garden", ["seed", "garden"], True),
    ],
)
def test_no_class_means_shoot(class_, served, passes):
    assert has_class(*served)(event(None, seen(class_=class_))) is passes


def test_one_type_or_several():
    assert has_type("aws")(event(None, seen()))
    assert not has_type("azure")(event(None, seen()))
    assert has_type("azure", "aws")(event(None, seen()))
