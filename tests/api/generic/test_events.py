import secrets
import tracemalloc
from datetime import timedelta

import pytest

from actuator.interface import Resource
from generic.kube import events
from generic.kube.client import connect
from generic.kube.clock import SystemClock
from generic.kube.events import EVENTS, About, EventRecorder

CONFIG_MAPS = Resource("v1", "configmaps")
NAMESPACES = Resource("v1", "namespaces", namespaced=False)
COMPONENT = "gardener-actuator"


class LaterClock(SystemClock):
    """The real clocks, so many seconds ahead."""

    ahead = 0.0

    def now(self):
        return super().now() + timedelta(seconds=self.ahead)

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


@pytest.fixture
def client(kubeconfig):
    return connect(kubeconfig)


@pytest.fixture
def clock():
    return LaterClock()


@pytest.fixture
def recorder(client, clock):
    return EventRecorder(client, COMPONENT, clock)


@pytest.fixture
def about(namespace):
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Infrastructure",
        "namespace": namespace,
        "name": "shoot",
        "uid": secrets.token_hex(8),
    }


@pytest.fixture
def terminating(client, namespace):
    """The test's namespace, being deleted, held by an object with a finalizer."""
    meta = {"name": "held", "namespace": namespace, "finalizers": ["example.org/held"]}
    client.create(CONFIG_MAPS, {"metadata": meta})
    client.delete(NAMESPACES, namespace)
    yield namespace
    client.patch(CONFIG_MAPS, "held", namespace, {"metadata": {"finalizers": None}})


def found(client, about: About) -> list[dict]:
    """The events about that object."""
    listed = client.list(EVENTS, about["namespace"] or "default")
    return [event for event in listed if event["involvedObject"].get("uid") == about["uid"]]


def found_in_default(client, about: About) -> list[dict]:
    """The events in `default` about that object's namespace."""
    listed = client.list(EVENTS, "default")
    return [event for event in listed if event["involvedObject"]["name"] == about["namespace"]]


def test_an_event_names_the_object_the_reason_and_the_reporting_component(client, recorder, about):
    recorder.record(about, "FinalizerStripped", "took it off", warning=True)
    [event] = found(client, about)
    assert event["involvedObject"] == {
        "apiVersion": about["apiVersion"],
        "kind": "Infrastructure",
        "namespace": about["namespace"],
        "name": "shoot",
        "uid": about["uid"],
    }
    assert (event["type"], event["reason"]) == ("Warning", "FinalizerStripped")
    assert event["message"] == "took it off"
    assert event["source"]["component"] == event["reportingComponent"] == COMPONENT
    assert event["count"] == 1
    assert event["firstTimestamp"] == event["lastTimestamp"]


def test_a_repeat_counts_up(client, recorder, clock, about):
    for ahead in (0, 100, 599):
        clock.ahead = ahead
        recorder.record(about, "Error", "no access")
    [event] = found(client, about)
    assert event["count"] == 3
    assert event["lastTimestamp"] > event["firstTimestamp"]


def test_a_different_or_later_record_is_another_event(client, recorder, clock, about):
    recorder.record(about, "Error", "no access")
    recorder.record(about, "Error", "no such network")
    recorder.record(dict(about, uid="another"), "Error", "no access")
    clock.ahead = 601
    recorder.record(about, "Error", "no access")
    messages = sorted(event["message"] for event in found(client, about))
    assert messages == ["no access", "no access", "no such network"]


def test_a_repeat_of_an_event_that_expired_is_a_new_one(client, recorder, about):
    recorder.record(about, "Error", "no access")
    [event] = found(client, about)
    client.delete(EVENTS, event["metadata"]["name"], about["namespace"])
    recorder.record(about, "Error", "no access")
    recorder.record(about, "Error", "no access")
    [event] = found(client, about)
    assert event["count"] == 2


def test_memory_is_bounded_and_the_oldest_is_forgotten(client, recorder, about, monkeypatch):
    monkeypatch.setattr(events, "REMEMBERED", 2)
    for message in ("a", "b", "c", "a"):
        recorder.record(about, "Error", message)
    assert len(recorder._recent) == 2
    assert sorted(event["message"] for event in found(client, about)) == ["a", "a", "b", "c"]


def test_failing_to_record_is_only_logged(environment, about, caplog):
    unauthorized = connect(environment.user_kubeconfig("nobody"))
    EventRecorder(unauthorized, COMPONENT, SystemClock()).record(about, "Error", "no access")
    [line] = [r for r in caplog.records if r.name == "generic.kube.events"]
    assert "forbidden" in line.fields["error"]


def test_failing_to_record_once_is_only_logged(environment, about, caplog):
    unauthorized = connect(environment.user_kubeconfig("nobody"))
    EventRecorder(unauthorized, COMPONENT, SystemClock()).record(
        about, "Deleted", "gone", once=True
    )
    [line] = [r for r in caplog.records if r.name == "generic.kube.events"]
    assert "forbidden" in line.fields["error"]


def test_an_event_recorded_once_exists_once_also_after_a_restart(client, recorder, about):
    recorder.record(about, "Orphaned", "left behind", warning=True, once=True)
    recorder.record(about, "Orphaned", "said again", once=True)
    EventRecorder(client, COMPONENT, SystemClock()).record(
        about, "Orphaned", "restarted", once=True
    )
    [event] = found(client, about)
    assert (event["message"], event["type"]) == ("left behind", "Warning")


def test_two_reasons_are_two_events(client, recorder, about):
    recorder.record(about, "Orphaned", "left behind", once=True)
    recorder.record(about, "FinalizerRemovedExternally", "left behind", once=True)
    assert len(found(client, about)) == 2


def test_an_event_for_a_terminating_namespace_goes_to_default(client, recorder, about, terminating):
    recorder.record(about, "Error", "no access")
    recorder.record(about, "Error", "no access")
    recorder.record(about, "OrphansRecorded", "left", once=True)
    recorder.record(about, "OrphansRecorded", "left", once=True)
    said, left = sorted(found_in_default(client, about), key=lambda event: event["reason"])
    for event in (left, said):
        involved = {"apiVersion": "v1", "kind": "Namespace", "name": terminating}
        assert event["involvedObject"] == involved
        assert event["message"].startswith(f"Infrastructure {terminating}/shoot: ")
    assert said["count"] == 2


def test_an_event_for_a_namespace_that_is_gone_goes_to_default(client, recorder, about):
    gone = dict(about, namespace=f"{about['namespace']}-gone")
    recorder.record(gone, "OrphansRecorded", "left", once=True)
    [event] = found_in_default(client, gone)
    assert event["message"].startswith(f"Infrastructure {gone['namespace']}/shoot: ")


def test_an_event_about_a_cluster_scoped_object_is_in_default(client, recorder, about):
    cluster = dict(about, kind="Cluster", namespace="", name=about["namespace"])
    recorder.record(cluster, "Error", "no access")
    recorder.record(cluster, "OrphansRecorded", "left", once=True)
    assert [e["metadata"]["namespace"] for e in found(client, cluster)] == ["default"] * 2


@pytest.mark.parametrize("name", ["a" * 253, "a" * 231 + "-" * 10 + "b", "a.b-c"])
def test_every_name_of_an_object_gives_a_valid_name_of_an_event(client, recorder, about, name):
    recorder.record(dict(about, name=name), "OrphansRecorded", "left", once=True)
    assert len(found(client, about)) == 1


def test_a_long_message_is_cut_at_a_character(client, recorder, about):
    recorder.record(about, "Error", "ä" * 2000)
    [event] = found(client, about)
    assert len(event["message"].encode()) <= 1024
    assert set(event["message"]) == {"ä", "…"}


def test_long_messages_are_not_kept(recorder, about):
    size = 200_000
    count = 40
    tracemalloc.start()
    try:
        for number in range(count):
            recorder.record(about, "DeleteFailed", f"{number}" + "x" * size)
        kept, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < count * size / 8
