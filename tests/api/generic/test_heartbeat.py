"""The heartbeat Lease, as gardenlet reads it."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from actuator import Resource
from actuator.errors import NotFound
from actuator.meta import parse_time
from generic.manager.heartbeat import Heartbeat
from tests.support.cluster.harness import PATIENCE, eventually

LEASES = Resource("coordination.k8s.io/v1", "leases")
NAMESPACES = Resource("v1", "namespaces", namespaced=False)
LEASE = "gardener-extension-heartbeat"


class Moved:
    """A clock that is moved by hand."""

    def __init__(self):
        self.time = datetime(2026, 1, 1, 12, 0, 0, 250000, tzinfo=UTC)

    def now(self):
        return self.time

    def monotonic(self):
        return 0.0


@pytest.fixture
def beating(admin):
    """Starts heartbeats that end with the test."""
    stop = threading.Event()
    threads = []

    def start(heartbeat):
        thread = threading.Thread(target=heartbeat.run, args=(admin, stop), daemon=True)
        thread.start()
        threads.append(thread)
        return stop

    yield start
    stop.set()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def renewed(admin, namespace):
    try:
        return parse_time(admin.get(LEASES, LEASE, namespace)["spec"]["renewTime"])
    except NotFound:
        return None


def test_the_lease_is_created_with_holder_and_duration_and_renewed_as_time_goes_by(
    admin, namespace, beating
):
    clock = Moved()
    beating(Heartbeat("provider-test", namespace, 0.1, clock=clock))
    first = eventually(lambda: renewed(admin, namespace))
    spec = admin.get(LEASES, LEASE, namespace)["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("provider-test", 1)
    assert first == clock.time
    clock.time += timedelta(seconds=30)
    eventually(lambda: renewed(admin, namespace) == clock.time)


def test_a_lease_of_a_former_process_is_taken_over(admin, namespace, beating):
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LEASE, "namespace": namespace},
        "spec": {"holderIdentity": "old", "renewTime": "2020-01-01T00:00:00.000000Z"},
    }
    admin.create(LEASES, lease)
    beating(Heartbeat("new", namespace))
    eventually(lambda: renewed(admin, namespace) > datetime(2026, 1, 1, tzinfo=UTC))
    spec = admin.get(LEASES, LEASE, namespace)["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("new", 30)


def test_an_error_is_logged_and_retried(admin, namespace, beating, caplog):
    late = f"{namespace}-late"
    beating(Heartbeat("test", late, 0.1))
    eventually(lambda: any("heartbeat renewal failed" in r.message for r in caplog.records))
    admin.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": late}})
    eventually(lambda: renewed(admin, late))


def test_failures_of_some_seconds_are_no_warning(admin, namespace, caplog):
    """An extension that is uninstalled loses its Role before it is stopped."""
    stop = threading.Event()
    failed = []

    def renewed(ok):
        failed.append(not ok)
        if len(failed) == 3:
            stop.set()

    Heartbeat("test", f"{namespace}-late", 0.1, renewed=renewed).run(admin, stop)
    assert failed == [True] * 3
    assert caplog.records == []


def test_a_heartbeat_ends_at_once_when_it_is_stopped(admin, namespace, beating):
    stop = beating(Heartbeat("test", namespace, 3600))
    eventually(lambda: renewed(admin, namespace))
    stop.set()  # the fixture sees to it that the thread ends


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_an_interval_must_be_above_zero(seconds):
    with pytest.raises(ValueError, match="'interval_seconds' must be"):
        Heartbeat("test", "extension-test", seconds)
