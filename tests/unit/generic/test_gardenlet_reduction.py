"""Of the versions of objects, only gardenlet's writes and their order are left."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

from actuator import Resource
from actuator.errors import Gone
from hack.gardenlet.comparison import (
    differences,
    of_thresholds,
    of_waits,
    unexplained,
    version_problem,
)
from hack.gardenlet.errors import shown_after
from hack.gardenlet.protocol import FlowProtocol, Known, Recording, read, written
from hack.gardenlet.reduction import flows_of, retried_in
from hack.gardenlet.watching import ObjectVersion, WatchLog, watched
from hack.gardenlet.writes import write_between
from tests.support.cluster.harness import eventually
from tests.support.objects.stand_ins import StandIn

SHOOT = "shoot--a--b"
OPERATION = "gardener.cloud/operation"
TIMESTAMP = "gardener.cloud/timestamp"
CONFIRM = "confirmation.gardener.cloud/deletion"
FORCE = "confirmation.gardener.cloud/force-deletion"
ASKED = {OPERATION: "reconcile", TIMESTAMP: "2026-11-25T00:00:00Z"}
LATER = "2026-11-25T00:00:00.5Z"
CONFIRMED = {CONFIRM: "true", TIMESTAMP: "2026-11-25T00:00:01Z"}
READY = {"observedGeneration": 1, "lastOperation": {"type": "Create", "state": "Succeeded",
         "lastUpdateTime": "2026-11-25T00:00:00Z"}}  # fmt: skip
CREATED = f"create with {OPERATION}=reconcile, {TIMESTAMP}"
DELETION = [f"annotate {CONFIRM}=true, {TIMESTAMP}", "delete"]


def obj(kind="Worker", annotations=None, name="x", spec=None, **more):
    meta = {"name": name, "namespace": SHOOT, "generation": 1, "annotations": annotations or {}}
    status = more.pop("status", {})
    return {"kind": kind, "metadata": {**meta, **more}, "spec": spec or {}, "status": status}


def cluster(operation="Create", state="Processing", annotations=None, sleep="", **meta):
    """`sleep`: "to", "in" or "from" hibernation."""
    operation = {"type": operation, "state": state}
    status = {"lastOperation": operation, "hibernated": sleep in ("in", "from")}
    spec = {"hibernation": {"enabled": sleep in ("to", "in")}}
    shoot = {"metadata": {"annotations": annotations or {}, **meta}, "spec": spec, "status": status}
    return {"kind": "Cluster", "metadata": {"name": SHOOT}, "spec": {"shoot": shoot}}


class OneStream(StandIn):
    """Answers each watch with the same lines."""

    def __init__(self, *lines):
        self.lines = lines

    def pages(self, _resource, *, label_selector):
        yield [], "1"

    @contextmanager
    def stream(self, _path, _query, *, read_timeout):
        yield iter(self.lines)


def test_an_object_that_cannot_be_decoded_does_not_end_a_watch():
    """Tests share the cluster with attacks."""
    deep = b'{"type": "ADDED", "object": {"spec": %s}}' % (b'{"a":' * 9000 + b"1" + b"}" * 9000)
    seen = json.dumps({"type": "ADDED", "object": obj(resourceVersion="7")}).encode()
    log = WatchLog()
    with watched(OneStream(deep, seen), [Resource("v1", "configmaps")], log):
        eventually(log.versions)
    assert {version.number for version in log.versions()} == {7}


class Forgetting(OneStream):
    """An API server that refuses some streams, because it does not have these versions."""

    def __init__(self, *refused):
        super().__init__()
        self.refused = refused
        self.streams = 0

    @contextmanager
    def stream(self, _path, _query, *, read_timeout):
        self.streams += 1
        if self.streams in self.refused:
            raise Gone(410, "too old resource version: 29560 (29582)")
        yield iter(())


@pytest.mark.parametrize(
    ("refused", "failed"),
    [
        pytest.param((1, 2), [], id="before anything is recorded"),
        pytest.param((2,), ["configmaps: too old resource version"], id="versions are missing"),
    ],
)
def test_a_recording_begins_with_a_version_that_the_api_server_has(refused, failed):
    """One that serves a kind anew does not have the version of its own list."""
    log = WatchLog()
    client = Forgetting(*refused)
    with watched(client, [Resource("v1", "configmaps")], log):
        eventually(lambda: client.streams > len(refused) + 1 or log.failed)
    assert [text.partition(": 2")[0] for text in log.failed] == failed


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
def test_a_write_is_described_by_its_changes(before, after, text):
    assert write_between(before, after) == text


class History:
    """Versions of objects, numbered as an API server does."""

    def __init__(self):
        self.versions = []

    def write(self, obj, event="MODIFIED"):
        number = len(self.versions) + 1
        meta = {**obj["metadata"], "resourceVersion": str(number)}
        self.versions.append(ObjectVersion(float(number), event, {**obj, "metadata": meta}))

    def create(self, *kinds, ready=True):
        for kind in kinds:
            self.write(obj(kind, ASKED), "ADDED")
        for kind in kinds if ready else ():
            self.ready(kind)

    def ask(self, kind, operation="reconcile", status=READY):
        self.write(obj(kind, {OPERATION: operation, TIMESTAMP: LATER}, status=READY))
        self.ready(kind, status, LATER)

    def ready(self, kind, status=READY, asked=ASKED[TIMESTAMP]):
        self.write(obj(kind, {TIMESTAMP: asked}, status=status))

    def delete(self, *kinds, **more):
        for kind in kinds:
            self.write(obj(kind, CONFIRMED, status=READY, **more))
            self.write(obj(kind, CONFIRMED, status=READY, deletionTimestamp="now", **more))
        for kind in kinds:
            self.gone(kind, **more)

    def gone(self, kind, **more):
        self.write(obj(kind, CONFIRMED, status=READY, deletionTimestamp="now", **more), "DELETED")

    def succeed(self, operation="Create", **more):
        self.write(cluster(operation, "Succeeded", **more))

    def end(self, *annotations):
        """The Cluster is deleted."""
        forced = dict.fromkeys(annotations, "true")
        self.write(cluster("Delete", annotations=forced, deletionTimestamp="now"), "DELETED")

    def flows(self, *others, shoots=()):
        return flows_of([self.versions, *(other.versions for other in others)], [SHOOT, *shoots])


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
    history.succeed()
    flow = history.flows()["create"]
    assert flow.order["Worker"] == ["Cluster", "Infrastructure"]
    assert flow.steps["Worker"] == [[CREATED]]
    assert flow.runs == 1


def test_a_kind_of_which_one_object_is_not_ready_is_before_no_other(history):
    history.create("DNSRecord")
    history.write(obj("DNSRecord", ASKED, name="other"), "ADDED")
    history.create("Worker")
    history.succeed()
    assert history.flows()["create"].order["Worker"] == ["Cluster"]


def test_writes_after_the_shoot_is_deleted_belong_to_the_deletion(history):
    history.create("Infrastructure", "Worker", "ControlPlane")
    history.write(cluster("Delete", deletionTimestamp="now"))
    history.ask("ControlPlane")
    history.delete("Worker")
    history.delete("Infrastructure")
    history.end()
    flow = history.flows()["delete"]
    assert flow.steps["Worker"] == flow.steps["Infrastructure"] == [DELETION]
    assert flow.order["deletion of Worker"] == ["Cluster", "ControlPlane"]
    assert flow.order["deletion of Infrastructure"] == [
        "Cluster", "ControlPlane", "deletion of Worker",
    ]  # fmt: skip


def test_a_deletion_without_finalizers_is_a_write(history):
    history.create("Worker")
    history.write(cluster("Delete", deletionTimestamp="now"))
    history.write(obj(annotations=CONFIRMED, status=READY))
    history.write(obj(annotations=CONFIRMED, status=READY), "DELETED")
    history.end()
    assert history.flows()["delete"].steps["Worker"] == [DELETION]


def test_a_forced_deletion_is_no_normal_one(history):
    history.create("Infrastructure", "Worker")
    history.succeed()
    history.write(cluster("Delete", deletionTimestamp="now"))
    history.delete("Worker")
    history.write(cluster("Delete", annotations={FORCE: "true"}, deletionTimestamp="now"))
    history.delete("Infrastructure")
    history.end(FORCE)
    flows = history.flows()
    assert flows.keys() == {"create", "force-delete"}
    assert flows["force-delete"].steps["Infrastructure"] == [DELETION]
    assert "Worker" not in flows["force-delete"].steps


def test_a_flow_that_did_not_come_to_its_end_is_left_out(history):
    history.create("Worker")
    history.write(cluster(state="Error"))
    assert history.flows() == {}


def test_a_flow_of_which_an_attempt_failed_is_left_out(history):
    history.create("Worker")
    history.succeed()

    def shown(state, **meta):
        shoot = cluster(state=state, **meta)["spec"]["shoot"]
        return ObjectVersion(
            0.0, "MODIFIED", {**shoot, "status": {**shoot["status"], "technicalID": SHOOT}}
        )

    deletion = shown("Error", deletionTimestamp="now")
    assert retried_in([shown("Processing"), shown("Succeeded"), deletion]) == set()
    retried = retried_in([shown("Processing"), shown("Error")])
    assert retried == {("create", SHOOT)}
    assert flows_of([history.versions], [SHOOT], retried) == {}


def test_a_request_that_is_retried_with_a_new_timestamp_is_one_write(history):
    history.write(obj("Worker", ASKED), "ADDED")
    history.write(obj("Worker", {**ASKED, TIMESTAMP: LATER}))
    history.write(obj("Network", {OPERATION: "reconcile"}), "ADDED")
    history.write(obj("Network", {**ASKED, TIMESTAMP: LATER}))
    history.succeed()
    steps = history.flows()["create"].steps
    assert steps["Worker"] == [[CREATED]]
    assert steps["Network"] == [[f"create with {OPERATION}=reconcile", f"annotate {TIMESTAMP}"]]


def test_hibernation_and_waking_end_with_their_state_in_the_cluster(history):
    history.create("Worker", "DNSRecord")
    history.succeed()
    history.write(cluster("Create", "Succeeded", sleep="to"))
    history.write(cluster("Reconcile", sleep="to"))
    history.ask("Worker")
    history.delete("DNSRecord")
    history.succeed("Reconcile", sleep="in")
    history.write(cluster("Reconcile", sleep="from"))
    history.create("DNSRecord")
    history.ask("Worker")
    history.succeed("Reconcile")
    flows = history.flows()
    assert flows.keys() == {"create", "hibernate", "wake"}
    assert flows["hibernate"].order["deletion of DNSRecord"] == ["Cluster", "Worker"]
    assert flows["hibernate"].steps["DNSRecord"] == [DELETION]
    assert flows["wake"].order["Worker"] == ["Cluster", "DNSRecord"]
    assert flows["wake"].steps["DNSRecord"] == [[CREATED]]
    working, done = (
        f"show lastOperation Reconcile {state}" for state in ("Processing", "Succeeded")
    )
    assert flows["hibernate"].steps["Cluster"] == [[working, f"{done}, hibernated"]]
    assert flows["wake"].steps["Cluster"] == [[f"{working}, hibernated", done]]


def test_a_migration_is_recorded_in_one_seed_and_the_restoration_in_the_other(history):
    migrated = {"lastOperation": {"type": "Migrate", "state": "Succeeded"}}
    history.create("Worker")
    history.succeed()
    history.write(cluster("Migrate"))
    history.ask("Worker", "migrate", migrated)
    history.delete("Worker")
    history.write(cluster("Migrate"), "DELETED")
    other = History()
    other.write(cluster("Restore"), "ADDED")
    other.write(obj("Worker", {OPERATION: "wait-for-state", TIMESTAMP: "now"}), "ADDED")
    other.ask("Worker", "restore")
    other.succeed("Restore")
    flows = history.flows(other)
    assert flows.keys() == {"create", "migrate", "restore"}
    asked = f"annotate {OPERATION}=migrate, {TIMESTAMP}"
    assert flows["migrate"].steps["Worker"] == [[asked, *DELETION]]
    assert flows["migrate"].order["deletion of Worker"] == ["Cluster", "Worker"]
    assert flows["restore"].order["Worker"] == ["Cluster"]


def test_a_bastion_is_deleted_before_the_cluster_shows_the_deletion(history):
    asked = {TIMESTAMP: ASKED[TIMESTAMP]}
    history.create("Bastion")
    history.succeed()
    history.write(obj("Bastion", asked, status=READY, deletionTimestamp="now"))
    history.write(obj("Bastion", asked, status=READY, deletionTimestamp="now"), "DELETED")
    history.write(cluster("Delete", deletionTimestamp="now"))
    history.end()
    flow = history.flows()["delete"]
    assert flow.steps["Bastion"] == [["delete"]]
    assert flow.order["Cluster"] == ["deletion of Bastion"]


def test_a_forced_bastion_belongs_to_the_forced_deletion(history):
    asked = {TIMESTAMP: ASKED[TIMESTAMP]}
    forced = {FORCE: "true", **asked}
    history.create("Bastion")
    history.succeed()
    history.write(obj("Bastion", asked, status=READY, deletionTimestamp="now"))
    history.write(obj("Bastion", forced, status=READY, deletionTimestamp="now"))
    history.write(obj("Bastion", forced, status=READY, deletionTimestamp="now"), "DELETED")
    history.write(cluster("Delete", annotations=forced, deletionTimestamp="now"))
    history.end(FORCE)
    flows = history.flows()
    assert flows.keys() == {"create", "force-delete"}
    assert flows["force-delete"].steps["Bastion"] == [[f"annotate {FORCE}=true"]]
    assert flows["force-delete"].order["Cluster"] == ["deletion of Bastion"]


def test_backups_belong_to_their_shoot_and_a_bucket_to_none(history):
    entry = {"name": f"{SHOOT}--0a-1b", "namespace": ""}
    history.write(obj("BackupBucket", ASKED, name="bucket", namespace=""), "ADDED")
    history.write(obj("BackupEntry", ASKED, **entry), "ADDED")
    history.succeed()
    history.write(cluster("Delete", deletionTimestamp="now"))
    history.end()
    history.delete("BackupEntry", **entry)
    history.delete("BackupBucket", name="bucket", namespace="")
    source = {"name": f"source-{SHOOT}--0a-1b", "namespace": ""}
    history.write(obj("BackupEntry", {}, **source), "ADDED")
    flows = history.flows(shoots=["bucket"])
    assert flows["delete"].steps["BackupEntry of the source"] == [["create"]]
    assert flows["create"].steps["BackupBucket"] == flows["create"].steps["BackupEntry"]
    assert flows["delete"].steps["BackupEntry"] == flows["delete"].steps["BackupBucket"]
    assert flows["delete"].order["deletion of BackupEntry"] == ["Cluster", "deletion of Cluster"]
    assert "deletion of BackupBucket" not in flows["delete"].order


def test_only_orders_of_all_runs_are_kept(history):
    history.create("Infrastructure", "Worker")
    history.succeed()
    other = History()
    other.write(cluster(), "ADDED")
    other.create("Infrastructure")
    other.create("Worker")
    other.succeed()
    last = len(history.versions)
    for version in other.versions:
        moved = version.obj["metadata"] | {"resourceVersion": str(last + version.number)}
        where = {"name": "other"} if version.obj["kind"] == "Cluster" else {"namespace": "other"}
        versioned = {**version.obj, "metadata": {**moved, **where}}
        history.versions.append(ObjectVersion(0.0, version.event, versioned))
    both = flows_of([history.versions], [SHOOT, "other"])["create"]
    alone = flows_of([history.versions], ["other"])["create"]
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
         ["create: only gardenlet waits for Infrastructure before Worker"]),
        ({"create": FlowProtocol(1, FLOW.steps, {**FLOW.order, "Infrastructure": ["Worker"]})},
         ["create: only the simulation waits for Worker before Infrastructure"]),
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
    found = list(of_thresholds({"Worker": lasted, "Network": 1.0}, {"Worker": [180.0, 600.0]}))
    assert found == ([f"{sentence} simulation"] if word else [])


SHOWN = {"lastErrors": [{"description": f"Error while waiting for Worker {SHOOT}/x to become"}]}


def test_waits_that_differ_are_found_by_kind():
    recorded = {"Worker": [30.0, 600.0], "Network": [30.0, 180.0]}
    simulated = {"Worker": [15.0, 180.0], "Network": [30.0, 180.0], "Bastion": [30.0, 180.0]}
    assert list(of_waits(recorded, simulated)) == [
        "waits: gardenlet tolerates an error of Worker for 30 s, the simulation for 15 s",
        "waits: gardenlet waits for Worker for 600 s, the simulation for 180 s",
    ]


def test_the_time_until_a_shoot_shows_an_error_counts_from_the_request():
    history = History()
    history.create("Worker", ready=False)
    history.write(obj("Worker", ASKED, status={"lastError": {"description": "no"}}))
    later = obj("Worker", {TIMESTAMP: "later"}, status={"lastError": {"description": "no"}})
    history.write(later)
    garden = [
        ObjectVersion(0.0, "ADDED", {"kind": "Shoot", "metadata": {}}),
        ObjectVersion(31.0, "MODIFIED", {"kind": "Shoot", "metadata": {}, "status": SHOWN}),
        ObjectVersion(99.0, "MODIFIED", {"kind": "Shoot", "metadata": {}, "status": SHOWN}),
    ]
    assert shown_after(history.versions, garden) == {"Worker": 30.0}


def test_a_known_difference_is_explained_as_long_as_it_exists():
    sentence = "create: the simulation does not have this flow"
    recorded = Recording("v1", {"create": FLOW}, known=[Known("it is not simulated", [sentence])])
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
    known = [Known("why", ["a", "b"])]
    recording = Recording(
        "v1", {"create": FLOW}, {"Worker": 30.0}, {"Worker": [30.0, 600.0]}, known
    )
    text = written(recording)
    assert read(text) == recording
    assert max(map(len, text.splitlines())) <= 100
