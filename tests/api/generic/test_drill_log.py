"""The evidence log of a drill on a real API server, and the bystanders that it places."""

import threading

import attrs
import pytest

from actuator.errors import Gone
from actuator.v1alpha1 import Infrastructure
from generic.kube.client import HttpClient
from generic.testing.drill.bystanders import DISTURBANCE, report_health
from generic.testing.drill.log import EVENT, DrillLog
from tests.support.cluster.harness import INFRASTRUCTURES, eventually
from tests.support.objects.builders import infrastructure

NOWHERE = attrs.evolve(Infrastructure.KIND, name="Nowhere", plural="nowheres")
KINDS = {"Infrastructure": Infrastructure.KIND, "Nowhere": NOWHERE}
"""The second has no CRD."""
LABEL = "tests.example.org/log"


@pytest.fixture
def labelled(admin, namespace):
    """Creates Infrastructures that the log of this test follows."""

    def create(name):
        found = infrastructure(namespace, "log", name, labels={LABEL: namespace})
        return admin.create(INFRASTRUCTURES, found)

    return create


def log_of(admin, namespace):
    return DrillLog(admin, KINDS, f"{LABEL}={namespace}", lambda _: None)


def changes(log, name):
    return [entry.gone for entry in log.entries() if entry.obj["metadata"]["name"] == name]


def test_the_log_has_each_version_once_also_the_last_before_it_ends(admin, namespace, labelled):
    log = log_of(admin, namespace)
    with log.watching():
        created = labelled("short")
        log.take("Infrastructure", created)  # and the watch shows it too
        admin.patch(INFRASTRUCTURES, "short", namespace, {"metadata": {"annotations": {"a": "b"}}})
        admin.delete(INFRASTRUCTURES, "short", namespace)
    assert changes(log, "short") == [False, False, True]
    assert not log.gaps


def test_after_versions_are_lost_a_list_shows_the_newest(admin, namespace, labelled, monkeypatch):
    """As after a restart of the API server, whose cache begins with the newest version."""
    log = log_of(admin, namespace)
    lost = threading.Event()
    stream = HttpClient.stream

    def refuses_once(self, path, query, **options):
        if lost.is_set() and query.get("resourceVersion") and path.endswith("/infrastructures"):
            raise Gone(410, "too old resource version")
        return stream(self, path, query, **options)

    with log.watching():
        labelled("stays")
        labelled("goes")
        eventually(lambda: changes(log, "goes") and changes(log, "stays"))
        monkeypatch.setattr(HttpClient, "stream", refuses_once)
        lost.set()
        admin.delete(INFRASTRUCTURES, "goes", namespace)
        eventually(lambda: changes(log, "goes") == [False, True])
        lost.clear()
    assert changes(log, "stays") == [False]


def test_an_api_server_that_does_not_answer_at_the_end_leaves_a_gap(admin, namespace, monkeypatch):
    monkeypatch.setattr("generic.testing.drill.log._MAX_SECONDS", 0.5)
    log = log_of(admin, namespace)
    with log.watching():
        monkeypatch.setattr(HttpClient, "stream", _refuse)
    assert {gap.partition(":")[0] for gap in log.gaps} == {"Infrastructure", "Cluster", EVENT}


def _refuse(*_, **__):
    raise ValueError("no answer")


@pytest.mark.parametrize("conditions", [None, [{"type": "A", "status": "True"}]])
def test_a_health_condition_is_added_to_an_object_with_or_without_others(
    admin, namespace, labelled, conditions
):
    labelled("one")
    if conditions:
        full = {"reason": "R", "message": "m"}
        full |= dict.fromkeys(["lastTransitionTime", "lastUpdateTime"], "2026-01-01T00:00:00Z")
        status = {"status": {"conditions": [{**condition, **full} for condition in conditions]}}
        admin.patch(INFRASTRUCTURES, "one", namespace, status, subresource="status")
    report_health(admin, INFRASTRUCTURES, namespace, "one")
    found = admin.get(INFRASTRUCTURES, "one", namespace)["status"]["conditions"]
    assert [item["type"] for item in found] == [
        condition["type"] for condition in conditions or ()
    ] + [DISTURBANCE]
    report_health(admin, INFRASTRUCTURES, namespace, "missing")
