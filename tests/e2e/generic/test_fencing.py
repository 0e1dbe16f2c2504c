"""After the lease is lost no write leaves the process: counted on its way to the API server."""

import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import pytest

from actuator.errors import LeaseLost
from generic.kube.clock import SystemClock
from generic.kube.headers import Request
from generic.manager.leaderelection import LEASES, LeaderElector, Timing
from generic.manager.options import Options
from generic.serving.metrics import Metrics
from hack.faults import Effect, Fault, FaultProxy
from tests.support.cluster.harness import PATIENCE, Script, eventually, own_user, running
from tests.support.objects.builders import infrastructure
from tests.support.objects.present import present
from tests.support.programs import suspended_manager as fenced

WRITES = ["create", "update", "patch", "delete", "deletecollection"]
SHORT = Timing(lease_duration=8.0, renew_deadline=6.0, retry_period=0.4)
LEASE = Options().leader_election_id
NAMES = [f"infra-{number}" for number in range(4)]


class Counts:
    """Counts of writes from its creation on: of the lease, and all others."""

    def __init__(self, proxy):
        self._lease = self._count(proxy, "leases.*")
        self._rest = self._count(proxy, "*")

    def _count(self, proxy, resource):
        return proxy.inject(Fault(effect=Effect.DELAY, verbs=WRITES, resource=resource))

    @property
    def writes(self):
        return self._rest.hits


@pytest.fixture
def proxy(environment, admin, namespace, tmp_path):
    """A proxy for a manager with the permissions of the sleeper."""
    manager = fenced.manager(namespace, tmp_path)
    with (
        own_user(environment, admin, manager, namespace) as kubeconfig,
        FaultProxy(kubeconfig, tmp_path) as proxy,
    ):
        yield proxy


@contextmanager
def sleeper(proxy, namespace, folder):
    command = [sys.executable, fenced.__file__, str(proxy.kubeconfig), namespace, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    stdout = present(process.stdout)
    try:
        assert stdout.readline() == b"started\n"
        yield process
    finally:
        process.kill()
        process.wait()
        stdout.close()


def notes(folder, name):
    path = folder / f"{name}.notes"
    return path.read_text().split("\n")[:-1] if path.exists() else []


def called(folder):
    return [name for name in NAMES if notes(folder, name)]


def are_processing(seed, names):
    """Whether their calls have published all that they ever do before they return."""
    return all(seed.last_operation(name)[1] == "Processing" for name in names)


def holder(client, namespace):
    return client.get(LEASES, LEASE, namespace)["spec"]["holderIdentity"]


@pytest.mark.long
def test_a_suspended_leader_writes_nothing_after_another_leads(
    environment, admin, seed, namespace, proxy, gate, tmp_path
):
    for name in NAMES:
        seed.create(infrastructure(namespace, namespace, name))
    with sleeper(proxy, namespace, tmp_path) as process:
        eventually(lambda: len(called(tmp_path)) == 2)
        in_flight = called(tmp_path)
        first = holder(admin, namespace)
        eventually(lambda: are_processing(seed, in_flight))  # now it only renews the lease
        process.send_signal(signal.SIGSTOP)
        script = Script(delete=lambda *_: gate.wait(200))
        options = running(
            environment, admin, namespace, script, leader_election=True, max_concurrent_reconciles=4
        )
        with options:
            eventually(lambda: all(seed.is_ready(name) for name in NAMES))
            second = holder(admin, namespace)
            for name in NAMES:
                seed.delete(name)
            eventually(lambda: len([c for c in script.calls if c[0] == "delete"]) == len(NAMES))
            counts = Counts(proxy)
            (tmp_path / "go").touch()
            process.send_signal(signal.SIGCONT)
            eventually(lambda: all(notes(tmp_path, name)[-1] == "returned" for name in in_flight))
            time.sleep(3)  # for the watch to bring the deletions, and workers to try something
            assert counts.writes == 0
            assert holder(admin, namespace) == second != first
            gate.set()
            eventually(lambda: all(seed.is_gone(name) for name in NAMES))
            assert counts.writes == 0
        assert process.poll() is None
    for name in in_flight:
        assert notes(tmp_path, name) == ["called", *["LeaseLost"] * 7, "returned"]
    assert called(tmp_path) == in_flight


@pytest.mark.long
def test_a_leader_that_cannot_renew_stops_before_another_leads(
    environment, admin, seed, namespace, proxy, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        "generic.manager.running.LeaderElector", partial(LeaderElector, timing=SHORT)
    )
    for name in NAMES[:2]:
        seed.create(infrastructure(namespace, namespace, name))
    leads = threading.Event()
    stop = threading.Event()
    was_fenced = []

    def lead():
        was_fenced.append(_is_fenced(manager))
        leads.set()

    other = LeaderElector(
        admin,
        namespace,
        LEASE,
        on_started=lead,
        on_lost=lambda: None,
        clock=SystemClock(),
        metrics=Metrics(),
        timing=SHORT,
    )
    manager = fenced.manager(namespace, tmp_path, proxy.kubeconfig)
    manager.start()
    try:
        eventually(lambda: len(called(tmp_path)) == 2)
        eventually(lambda: are_processing(seed, NAMES[:2]))
        threading.Thread(target=other.run, args=[stop], daemon=True).start()
        blocked = proxy.inject(Fault(effect=Effect.STALL, resource="leases.*"))
        rest = proxy.inject(Fault(effect=Effect.DELAY, verbs=WRITES))
        eventually(lambda: _is_fenced(manager))
        (tmp_path / "go").touch()
        eventually(lambda: all(notes(tmp_path, name)[-1] == "returned" for name in NAMES[:2]))
        assert leads.wait(PATIENCE)
        assert was_fenced == [True]
        for name in NAMES[:2]:
            seed.ask("reconcile", name)
        time.sleep(1)
        blocked.remove()  # what hung about the lease reaches the API server now, too late
        time.sleep(1)
        assert rest.hits == 0
        assert holder(admin, namespace) == other.identity
    finally:
        manager.stop()
        stop.set()
        other.release()
    for name in NAMES[:2]:
        assert notes(tmp_path, name) == ["called", *["LeaseLost"] * 7, "returned"]


def test_an_actuator_that_never_checks_is_not_called_without_the_lease(
    seed, namespace, start, script, monkeypatch
):
    asked = threading.Event()

    def closed():
        if "worker" in threading.current_thread().name:
            asked.set()
        raise LeaseLost("another leads")

    manager = start(script)
    seed.create(infrastructure(namespace, namespace))
    eventually(seed.is_ready)
    (watched,) = manager._running.wiring.routes.ours.values()
    [(controller, _)] = watched.controllers
    monkeypatch.setattr(manager._running, "_elector", SimpleNamespace(check=closed))
    seed.delete()
    eventually(asked.is_set)
    eventually(lambda: Request(namespace, seed.name) not in controller._busy)
    assert script.operations() == ["reconcile"]
    monkeypatch.undo()
    controller.queue.add(Request(namespace, seed.name))
    eventually(seed.is_gone)
    assert script.operations() == ["reconcile", "delete"]


def _is_fenced(manager):
    try:
        manager._running._gate()
    except LeaseLost:
        return True
    return False
