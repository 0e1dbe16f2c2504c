"""Of the versions of objects, only gardenlet's writes and their order are left."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest
from harness import eventually

from actuator import Resource
from hack.gardenlet.comparison import differences, of_thresholds, unexplained, version_problem
from hack.gardenlet.errors import shown_after
from hack.gardenlet.protocol import FlowProtocol, Known, Recording, read, written
from hack.gardenlet.reduction import runs_of
from hack.gardenlet.watching import Log, Version, watched
from hack.gardenlet.writes import write_between

SHOOT = "shoot--a--b"
OPERATION, TIMESTAMP = "gardener.cloud/operation", "gardener.cloud/timestamp"
CONFIRM = "confirmation.gardener.cloud/deletion"
FORCE = "confirmation.gardener.cloud/force-deletion"
ASKED = {OPERATION: "reconcile", TIMESTAMP: "2026-11-25T00:00:00Z"}
CONFIRMED = {CONFIRM: "true", TIMESTAMP: "2026-11-25T00:00:01Z"}
READY = {"observedGeneration": 1, "lastOperation": {"type": "Create", "state": "Succeeded",
         "lastUpdateTime": "2026-11-25T00:00:00Z"}}  # fmt: skip
CREATED = f"create with {OPERATION}=reconcile, {TIMESTAMP}"
DELETION = [f"annotate {CONFIRM}=true, {TIMESTAMP}", "delete"]


def obj(kind="Worker", annotations=None, name="x", spec=None, **more):
    meta = {"name": name, "namespace": SHOOT, "generation": 1, "annotations": annotations or {}}
    status = more.pop("status", {})
    return {"kind": kind, "metadata": {**meta, **more}, "spec": spec or {}, "status": status}


def cluster(operation="Create", state="Processing", annotations=None, **meta):
    status = {"lastOperation": {"type": operation, "state": state}}
    shoot = {"metadata": {"annotations": annotations or {}, **meta}, "spec": {}, "status": status}
    return {"kind": "Cluster", "metadata": {"name": SHOOT}, "spec": {"shoot": shoot}}


class OneStream:
    """Answers each watch with the same lines."""

    def __init__(self, *lines):
        self.lines = lines

    def pages(self, _resource):
        yield [], "1"

    @contextmanager
    def stream(self, _path, _query, *, read_timeout):
        yield iter(self.lines)


def test_an_object_that_cannot_be_decoded_does_not_end_a_watch():
    """Tests share the cluster with attacks."""
    deep = b'{"type": "ADDED", "object": {"spec": %s}}' % (b'{"a":' * 9000 + b"1" + b"}" * 9000)
    seen = json.dumps({"type": "ADDED", "object": obj(resourceVersion="7")}).encode()
    log = Log()
    with watched(OneStream(deep, seen), [Resource("v1", "configmaps")], log):
        eventually(log.versions)
    assert {version.number for version in log.versions()} == {7}


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (None, obj(annotations=ASKED), CREATED),
        (None, obj(), "create"),
        (None, obj(spec={"infrastructureProviderStatus": {}, "region": "r"}),
         "create with spec.infrastructureProviderStatus"),
        (obj(annotations=ASKED), obj(annotations={TIMESTAMP: ASKED[TIMESTAMP]}), ""),
        (obj(), obj(finalizers=["x"]), ""),
        (obj(), obj(status=READY), ""),
        (obj(), obj(annotations=CONFIRMED), DELETION[0]),
        (obj(), obj(deletionTimestamp="now"), "delete"),
        (obj(annotations={"a": "b"}), obj(), "remove annotation a"),
        (obj(), obj(annotations={"example.org/a": "b"}), "annotate example.org/a"),
        (obj(), obj(annotations=ASKED, spec={"pools": []}),
         f"annotate {OPERATION}=reconcile, {TIMESTAMP}; change spec.pools"),
        (obj(), obj(status={"state": {"a": 1}}), "write status.state"),
        (None, cluster(), "create with lastOperation Create Processing"),
        (cluster(), cluster(), ""),
        (cluster(), cluster("Delete", deletionTimestamp="now", annotations={FORCE: "true"}),
         f"show lastOperation Delete Processing, deletionTimestamp, {FORCE}=true"),
    ],
)  # fmt: skip
def test_a_write_is_told_by_what_it_changed(before, after, text):
    assert write_between(before, after) == text


class History:
    """Versions of objects, numbered as an API server does."""

    def __init__(self):
        self.versions = []

    def write(self, obj, event="MODIFIED"):
        number = len(self.versions) + 1
        meta = {**obj["metadata"], "resourceVersion": str(number)}
        self.versions.append(Version(float(number), event, {**obj, "metadata": meta}))

    def create(self, *kinds, ready=True):
        for kind in kinds:
            self.write(obj(kind, ASKED), "ADDED")
        for kind in kinds if ready else ():
            self.ready(kind)

    def ready(self, kind):
        self.write(obj(kind, {TIMESTAMP: ASKED[TIMESTAMP]}, status=READY))

    def delete(self, *kinds):
        for kind in kinds:
            self.write(obj(kind, CONFIRMED, status=READY))
            self.write(obj(kind, CONFIRMED, status=READY, deletionTimestamp="now"))
        for kind in kinds:
            self.gone(kind)

    def gone(self, kind):
        self.write(obj(kind, CONFIRMED, status=READY, deletionTimestamp="now"), "DELETED")

    def flows(self):
        return runs_of(self.versions, [SHOOT]).protocols()


@pytest.fixture
def history():
    made = History()
    made.write(cluster(), "ADDED")
    return made


def test_a_kind_is_after_those_that_were_ready_before_its_first_write(history):
    history.create("Infrastructure", "DNSRecord", ready=False)
    history.ready("Infrastructure")
    history.create("Worker")
    history.ready("DNSRecord")
    flow = history.flows()["create"]
    assert flow.order["Worker"] == ["Cluster", "Infrastructure"]
    assert flow.steps["Worker"] == [[CREATED]]
    assert flow.runs == 1


def test_a_kind_of_which_one_object_is_not_ready_is_before_no_other(history):
    history.create("DNSRecord")
    history.write(obj("DNSRecord", ASKED, name="other"), "ADDED")
    history.create("Worker")
    assert history.flows()["create"].order["Worker"] == ["Cluster"]


def test_writes_after_the_shoot_is_deleted_belong_to_the_deletion(history):
    history.create("Infrastructure", "Worker")
    history.write(cluster("Delete", deletionTimestamp="now"))
    history.delete("Worker")
    history.delete("Infrastructure")
    flow = history.flows()["delete"]
    assert flow.steps["Worker"] == flow.steps["Infrastructure"] == [DELETION]
    assert flow.order == {"Infrastructure": ["Worker"]}


def test_a_deletion_without_finalizers_is_a_write(history):
    history.create("Worker")
    history.write(cluster("Delete", deletionTimestamp="now"))
    history.write(obj(annotations=CONFIRMED, status=READY))
    history.write(obj(annotations=CONFIRMED, status=READY), "DELETED")
    assert history.flows()["delete"].steps["Worker"] == [DELETION]


def test_a_forced_deletion_is_no_normal_one(history):
    history.create("Infrastructure", "Worker")
    history.write(cluster("Delete", deletionTimestamp="now"))
    history.delete("Worker")
    history.write(cluster("Delete", annotations={FORCE: "true"}, deletionTimestamp="now"))
    history.delete("Infrastructure")
    flows = history.flows()
    assert flows.keys() == {"create", "force-delete"}
    assert flows["force-delete"].steps["Infrastructure"] == [DELETION]
    assert "Worker" not in flows["force-delete"].steps


def test_only_orders_of_all_runs_are_kept(history):
    history.create("Infrastructure", "Worker")
    other = History()
    other.write(cluster(), "ADDED")
    other.create("Infrastructure")
    other.create("Worker")
    last = len(history.versions)
    for version in other.versions:
        moved = version.obj["metadata"] | {"resourceVersion": str(last + version.number)}
        where = {"name": "other"} if version.obj["kind"] == "Cluster" else {"namespace": "other"}
        versioned = {**version.obj, "metadata": {**moved, **where}}
        history.versions.append(Version(0.0, version.event, versioned))
    both = runs_of(history.versions, [SHOOT, "other"]).protocols()["create"]
    alone = runs_of(history.versions, ["other"]).protocols()["create"]
    assert both.runs == 2
    assert both.order["Worker"] == ["Cluster"]
    assert alone.order["Worker"] == ["Cluster", "Infrastructure"]


FLOW = FlowProtocol(
    2,
    {"Infrastructure": [[CREATED]], "Worker": [[CREATED]]},
    {"Worker": ["Infrastructure"]},
)


@pytest.mark.parametrize(
    ("simulated", "expected"),
    [
        ({"create": FLOW}, []),
        ({}, ["create: the simulation does not have this flow"]),
        ({"create": FLOW, "wake": FLOW}, ["wake: the recording does not have this flow"]),
        ({"create": FlowProtocol(1, FLOW.steps, {})},
         ["create: only gardenlet waits for Infrastructure before it writes Worker"]),
        ({"create": FlowProtocol(1, FLOW.steps, {**FLOW.order, "Infrastructure": ["Worker"]})},
         ["create: only the simulation waits for Worker before it writes Infrastructure"]),
        ({"create": FlowProtocol(1, {"Infrastructure": [[CREATED]]}, {})},
         ["create: the simulation writes no Worker"]),
        ({"create": FlowProtocol(1, {**FLOW.steps, "Network": [["create"]]}, FLOW.order)},
         ["create: gardenlet writes no Network, the simulation does"]),
        ({"create": FlowProtocol(1, {**FLOW.steps, "Worker": [["delete", "create"]]}, FLOW.order)},
         [f"create: Worker: only gardenlet writes [{CREATED}]",
          "create: Worker: only the simulation writes [delete, then create]"]),
    ],
)  # fmt: skip
def test_each_difference_is_a_sentence(simulated, expected):
    assert list(differences({"create": FLOW}, simulated)) == expected


@pytest.mark.parametrize(
    ("lasted", "word"), [(160, "earlier"), (172, ""), (200, ""), (230, "later")]
)
def test_a_threshold_is_compared_within_a_poll_and_the_end_of_a_flow(lasted, word):
    sentence = f"errors: gardenlet shows an error of Worker {word} than after the 180 s of the"
    found = list(of_thresholds({"Worker": lasted, "Network": 1.0}, {"Worker": 180.0}))
    assert found == ([f"{sentence} simulation"] if word else [])


SHOWN = {"lastErrors": [{"description": f"Error while waiting for Worker {SHOOT}/x to become"}]}


def test_the_time_until_a_shoot_shows_an_error_counts_from_the_request():
    history = History()
    history.create("Worker", ready=False)
    history.write(obj("Worker", ASKED, status={"lastError": {"description": "no"}}))
    later = obj("Worker", {TIMESTAMP: "later"}, status={"lastError": {"description": "no"}})
    history.write(later)
    garden = [
        Version(0.0, "ADDED", {"kind": "Shoot", "metadata": {}}),
        Version(31.0, "MODIFIED", {"kind": "Shoot", "metadata": {}, "status": SHOWN}),
        Version(99.0, "MODIFIED", {"kind": "Shoot", "metadata": {}, "status": SHOWN}),
    ]
    assert shown_after(history.versions, garden) == {"Worker": 30.0}


def test_a_known_difference_is_explained_as_long_as_it_exists():
    sentence = "create: the simulation does not have this flow"
    recorded = Recording("v1", {"create": FLOW}, {}, [Known("it is not simulated", [sentence])])
    assert unexplained(recorded, Recording("", {})) == []
    ended = f"known difference no longer exists, remove it: {sentence}"
    assert unexplained(recorded, Recording("", {"create": FLOW})) == [ended]


def test_a_recording_of_another_version_fails_by_name():
    problem = version_problem(Recording("v1.149.0", {}), "v1.150.0")
    assert problem is not None
    for part in ("v1.149.0", "v1.150.0", "make record-gardenlet"):
        assert part in problem
    assert version_problem(Recording("v1.149.0", {}), "v1.149.0") is None


def test_a_recording_is_read_as_it_was_written():
    recording = Recording("v1", {"create": FLOW}, {"Worker": 30.0}, [Known("why", ["a", "b"])])
    text = written(recording)
    assert read(text) == recording
    assert max(map(len, text.splitlines())) <= 100
