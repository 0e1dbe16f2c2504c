import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from actuator.errors import Forbidden, LeaseLost
from generic.kube.client import connect
from generic.kube.clock import SystemClock
from generic.manager.leaderelection import LEASES, LeaderElector, Timing
from generic.serving.metrics import Metrics
from generic.testing.envtest import Environment
from generic.testing.envtest.servers import KillableServer

LEASE = "gardener-actuator"
LONG = Timing(lease_duration=15, renew_deadline=10, retry_period=0.2)
PATIENT = Timing(lease_duration=90, renew_deadline=60, retry_period=0.2)
"""Seconds for waits that take some seconds on an idle machine."""
STEADY = Timing(lease_duration=4.5, renew_deadline=4, retry_period=0.4)
"""Short enough to be waited for, long enough for a machine that is busy with other things."""
PAST_DEADLINE = 4.2
LATER = 5.0
"""Seconds by which a busy machine may be late."""

HOLDER = """
import sys, threading
from pathlib import Path
from generic.kube.client import connect
from generic.kube.clock import SystemClock
from generic.manager.leaderelection import LeaderElector, Timing
from generic.serving.metrics import Metrics

kubeconfig, namespace, name = sys.argv[1:]
LeaderElector(
    connect(Path(kubeconfig)), namespace, name,
    on_started=lambda: print("leading", flush=True),
    on_lost=lambda: print("lost", flush=True),
    clock=SystemClock(), metrics=Metrics(),
    timing=Timing(lease_duration=4.5, renew_deadline=4, retry_period=0.4),
).run(threading.Event())
"""


class Candidate:
    """An elector in a thread, and its notifications."""

    def __init__(self, client, namespace: str, timing: Timing) -> None:
        self.started = threading.Event()
        self.lost: list[float] = []
        self.metrics = Metrics()
        self.stop = threading.Event()
        self.elector = LeaderElector(
            client,
            namespace,
            LEASE,
            on_started=self.started.set,
            on_lost=lambda: self.lost.append(time.monotonic()),
            clock=SystemClock(),
            metrics=self.metrics,
            timing=timing,
        )
        self.thread = threading.Thread(target=self.elector.run, args=(self.stop,), daemon=True)
        self.thread.start()

    @property
    def leads(self) -> bool:
        return self.elector.is_leading()

    @property
    def gauge(self) -> float | None:
        return self.metrics.registry.get_sample_value(
            "leader_election_master_status", {"name": LEASE}
        )

    def end(self) -> None:
        self.stop.set()
        self.elector.release()
        self.thread.join(30)
        assert not self.thread.is_alive()


class Hanging:
    """A client whose writes hang on request, as on a connection that died silently."""

    def __init__(self, client) -> None:
        self._client = client
        self.free = threading.Event()
        self.free.set()

    def __getattr__(self, name: str):
        return getattr(self._client, name)

    def patch(self, *args, **kwargs):
        self.free.wait(60)
        return self._client.patch(*args, **kwargs)


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


@pytest.fixture
def client(kubeconfig):
    return connect(kubeconfig)


@pytest.fixture
def candidate(client, namespace):
    """Makes candidates that end with the test."""
    made = []

    def make(timing: Timing = STEADY, *, of=client, in_namespace: str = namespace) -> Candidate:
        made.append(Candidate(of, in_namespace, timing))
        return made[-1]

    yield make
    for item in made:
        item.end()


def record(client, namespace: str) -> dict:
    return client.get(LEASES, LEASE, namespace)["spec"]


def test_of_two_candidates_one_leads(client, namespace, candidate):
    both = [candidate(STEADY), candidate(STEADY)]
    assert eventually(lambda: any(c.leads for c in both))
    end = time.monotonic() + STEADY.lease_duration + 0.2  # renewals keep it
    while time.monotonic() < end:
        assert sum(c.leads for c in both) == 1
        time.sleep(0.02)
    [leader] = [c for c in both if c.leads]
    [other] = [c for c in both if not c.leads]
    assert (leader.started.is_set(), other.started.is_set()) == (True, False)
    assert (leader.gauge, other.gauge) == (1, 0)
    assert record(client, namespace)["holderIdentity"] == leader.elector.identity
    leader.elector.check()
    with pytest.raises(LeaseLost, match=f"{namespace}/{LEASE}"):
        other.elector.check()


def test_a_release_hands_over_within_one_retry_period(client, namespace, candidate):
    timing = Timing(lease_duration=15, renew_deadline=10, retry_period=0.5)
    first = candidate(timing)
    assert first.started.wait(60)
    second = candidate(timing)
    time.sleep(0.3)
    first.elector.release()
    released = time.monotonic()
    assert not first.leads
    assert eventually(lambda: second.leads)
    assert time.monotonic() - released < timing.retry_period + LATER, "long before it runs out"
    assert first.lost == []
    assert first.gauge == 0
    assert record(client, namespace)["leaseTransitions"] == 1


def test_a_released_lease_has_no_holder(client, namespace, candidate):
    first = candidate()
    assert first.started.wait(60)
    first.end()
    assert record(client, namespace)["holderIdentity"] == ""
    assert record(client, namespace)["leaseDurationSeconds"] == 1


def test_the_lease_of_a_killed_holder_is_taken_when_it_has_run_out(
    kubeconfig, client, namespace, candidate
):
    command = [sys.executable, "-c", HOLDER, str(kubeconfig), namespace, LEASE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "leading\n"
        assert record(client, namespace)["leaseDurationSeconds"] == 5, "whole seconds, and no fewer"
        successor = candidate()
        time.sleep(0.5)
        holder.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        assert holder.stdout.read() == "", "it led to its end"
    assert successor.started.wait(60)
    # The last renewal came up to one retry period before the end, earlier on a busy machine.
    assert time.monotonic() - killed > 2.5


def test_the_times_written_in_a_lease_are_not_believed(client, namespace, candidate):
    spec = {
        "holderIdentity": "somebody",
        "leaseDurationSeconds": 1,
        "renewTime": "2000-01-01T00:00:00.000000Z",
        "leaseTransitions": 6,
    }
    client.create(LEASES, {"metadata": {"name": LEASE, "namespace": namespace}, "spec": spec})
    began = time.monotonic()
    assert candidate().started.wait(60)
    assert time.monotonic() - began >= 1.0
    assert record(client, namespace)["leaseTransitions"] == 7


def test_a_leader_that_finds_the_lease_taken_has_lost_at_once(client, namespace, candidate):
    one = candidate(LONG)
    assert one.started.wait(60)
    client.patch(LEASES, LEASE, namespace, {"spec": {"holderIdentity": "somebody"}})
    assert eventually(lambda: len(one.lost) == 1)
    with pytest.raises(LeaseLost):
        one.elector.check()
    client.patch(LEASES, LEASE, namespace, {"spec": {"holderIdentity": one.elector.identity}})
    time.sleep(0.5)
    assert not one.leads
    assert len(one.lost) == 1
    assert one.gauge == 0


def test_the_lease_is_lost_at_the_deadline_also_while_a_request_hangs(client, candidate):
    hanging = Hanging(client)
    one = candidate(of=hanging)
    assert one.started.wait(60)
    hanging.free.clear()
    cut = time.monotonic()
    assert eventually(lambda: not one.leads)
    assert time.monotonic() - cut <= STEADY.renew_deadline + LATER
    assert eventually(lambda: len(one.lost) == 1)
    assert one.lost[0] - cut <= STEADY.renew_deadline + LATER
    hanging.free.set()  # the renewal arrives after all
    time.sleep(0.3)
    assert not one.leads
    assert len(one.lost) == 1


def test_a_foreign_label_on_the_lease_ends_no_leadership(client, namespace, candidate):
    one = candidate(STEADY)
    assert one.started.wait(60)
    client.patch(LEASES, LEASE, namespace, {"metadata": {"labels": {"a": "b"}}})
    time.sleep(PAST_DEADLINE)
    assert one.leads
    client.patch(LEASES, LEASE, namespace, {"metadata": {"labels": {"a": "c"}}})
    one.end()
    assert record(client, namespace)["holderIdentity"] == ""


def test_a_deleted_lease_is_made_again(client, namespace, candidate):
    one = candidate(STEADY)
    assert one.started.wait(60)
    client.delete(LEASES, LEASE, namespace)
    time.sleep(PAST_DEADLINE)
    assert one.leads
    assert record(client, namespace)["holderIdentity"] == one.elector.identity


def test_a_renewal_is_one_request(kubeconfig, candidate):
    seen: list[str] = []
    began = time.monotonic()
    one = candidate(
        LONG, of=connect(kubeconfig, observe=lambda method, _host, _code: seen.append(method))
    )
    assert one.started.wait(60)
    assert eventually(lambda: len(seen) > 4)
    methods = list(seen)
    took = time.monotonic() - began
    assert methods[:2] == ["GET", "POST"]
    assert set(methods[2:]) == {"PATCH"}
    assert len(methods) <= 3 + took / (0.8 * LONG.retry_period)


def test_an_error_is_logged_once_and_tried_again(environment, namespace, client, candidate, caplog):
    asked: list[str] = []
    unauthorized = connect(
        environment.user_kubeconfig("nobody"), observe=lambda method, *_: asked.append(method)
    )
    with caplog.at_level(logging.WARNING, "generic.manager.leaderelection"):
        one = candidate(of=unauthorized)
        assert eventually(lambda: len(asked) > 2)  # so that two answers have been dealt with
        assert one.thread.is_alive()
        assert not one.leads
    [line] = [r for r in caplog.records if r.name == "generic.manager.leaderelection"]
    assert "forbidden" in line.fields["error"]


class Forbidding:
    """A client whose writes are refused on request, as after its Role was deleted."""

    def __init__(self, client) -> None:
        self._client = client
        self.refused = 0
        self.forbids = False

    def __getattr__(self, name: str):
        return getattr(self._client, name)

    def patch(self, *args, **kwargs):
        if self.forbids:
            self.refused += 1
            raise Forbidden(403, "leases is forbidden")
        return self._client.patch(*args, **kwargs)


def warnings_of(caplog) -> list[str]:
    return [item.getMessage() for item in caplog.records if item.levelno >= logging.WARNING]


@pytest.mark.parametrize("stops_first", [False, True], ids=["role first", "stop first"])
def test_a_role_that_is_removed_just_before_the_end_is_no_warning(
    client, candidate, caplog, stops_first
):
    forbidding = Forbidding(client)
    one = candidate(PATIENT, of=forbidding)
    assert one.started.wait(60)
    if stops_first:
        one.stop.set()
    forbidding.forbids = True
    assert eventually(lambda: forbidding.refused >= 3)
    one.end()
    assert warnings_of(caplog) == []


def test_a_role_that_is_removed_is_a_warning_before_the_lease_is_lost(client, candidate, caplog):
    forbidding = Forbidding(client)
    one = candidate(STEADY, of=forbidding)
    assert one.started.wait(60)
    forbidding.forbids = True
    assert eventually(lambda: len(one.lost) == 1)
    assert warnings_of(caplog) == ["lease update failed", "lease lost"]


def test_an_end_without_the_lease_is_not_hidden(client, candidate, caplog):
    """The process is stopping, but an operation needs the lease, which is lost."""
    forbidding = Forbidding(client)
    one = candidate(STEADY, of=forbidding)
    assert one.started.wait(60)
    one.stop.set()
    forbidding.forbids = True
    assert eventually(lambda: len(one.lost) == 1)
    assert warnings_of(caplog) == ["lease lost"]


def test_waiting_ends_with_stop_and_leading_with_release(candidate):
    leader = candidate(STEADY)
    assert leader.started.wait(60)
    waiting = candidate(STEADY)
    waiting.stop.set()
    waiting.thread.join(30)
    assert not waiting.thread.is_alive()
    leader.stop.set()
    time.sleep(PAST_DEADLINE)  # operations that finish need the lease
    leader.elector.check()
    leader.elector.release()
    leader.thread.join(30)
    assert not leader.thread.is_alive()


def test_a_leader_that_cannot_start_is_no_leader(client, namespace):
    lost = threading.Event()

    def fail() -> None:
        raise ZeroDivisionError

    elector = LeaderElector(
        client,
        namespace,
        LEASE,
        on_started=fail,
        on_lost=lost.set,
        clock=SystemClock(),
        metrics=Metrics(),
        timing=STEADY,
    )
    elector.run(threading.Event())
    assert lost.wait(60)  # said by the thread that failed to start
    assert not elector.is_leading()


@pytest.mark.parametrize("values", [(10, 15, 2), (15, 10, 12), (15, 10, 0), (15, 15, 2)])
def test_timing_that_cannot_work_is_refused(values):
    duration, deadline, period = values
    with pytest.raises(ValueError, match="retry period < renew deadline < lease duration"):
        Timing(lease_duration=duration, renew_deadline=deadline, retry_period=period)


def test_a_long_absence_of_the_api_server_ends_the_leadership_and_a_restart_does_not():
    with Environment() as environment:
        client = connect(environment.kubeconfig)
        patient = Candidate(client, "default", PATIENT)
        assert patient.started.wait(60)
        before = record(client, "default")["renewTime"]
        environment.stop_apiserver()
        environment.restart(KillableServer.APISERVER)
        assert eventually(lambda: record(client, "default")["renewTime"] > before)
        assert patient.leads
        assert patient.lost == []
        patient.end()

        hasty = Candidate(client, "default", STEADY)
        assert hasty.started.wait(60)
        environment.kill(KillableServer.APISERVER)
        gone = time.monotonic()
        assert eventually(lambda: len(hasty.lost) == 1)
        assert hasty.lost[0] - gone <= STEADY.renew_deadline + LATER
        hasty.end()
