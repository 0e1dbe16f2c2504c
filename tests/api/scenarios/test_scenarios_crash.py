"""A process that dies, freezes or shuts down in the middle of an object's life."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from actuator import Resource
from generic.manager.manager import Manager
from generic.manager.options import Options
from tests.support.cluster.harness import Script, eventually, own_user
from tests.support.objects.builders import cluster, infrastructure

PROGRAM = Path(__file__).parents[2].joinpath("support", "crash_program.py")
LEASES = Resource("coordination.k8s.io/v1", "leases")
LEASE = "gardener-actuator-leader-election"
RENEW_DEADLINE = 10.0


class Mortals:
    """Starts managers as programs; a folder holds the external resources."""

    def __init__(self, seed, kubeconfig, folder, stack):
        self.seed = seed
        self.folder = folder
        self._kubeconfig = kubeconfig
        self._stack = stack
        (folder / "changes").touch()
        (folder / "calls").touch()

    def start(self, *flags, die=""):
        if die:
            (self.folder / "die").write_text(die)
        addresses = ["--health-bind-address=0", "--metrics-bind-address=0"]
        command = [sys.executable, str(PROGRAM), self.seed.namespace, str(self.folder)]
        command += [f"--kubeconfig={self._kubeconfig}", *addresses, *flags]
        log = self._stack.enter_context((self.folder / f"log-{time.monotonic_ns()}").open("wb"))
        process = subprocess.Popen(command, stdout=log, stderr=log)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def elected(self):
        """A manager that leads."""
        process = self.start(
            "--leader-election", f"--leader-election-namespace={self.seed.namespace}"
        )
        eventually(self.holder)
        return process

    def holder(self):
        found = self.seed.client.list(LEASES, self.seed.namespace)
        return found and found[0]["spec"].get("holderIdentity")

    def things(self):
        return [thing.name for thing in self.folder.glob("thing-*")]

    def _lines(self, file):
        lines = (self.folder / file).read_text().splitlines()
        return [(int(pid), what) for pid, what in map(str.split, lines)]

    def changes(self):
        """Changes of external resources with their authors, in order."""
        return self._lines("changes")

    def calls(self):
        return self._lines("calls")

    def hold(self):
        (self.folder / "hold").touch()

    def release(self):
        (self.folder / "hold").unlink()

    def made(self):
        """An object that is ready, its thing outside."""
        self.seed.create(infrastructure(self.seed.namespace, self.seed.namespace))
        eventually(self.seed.is_ready)
        assert len(self.things()) == 1


@pytest.fixture
def processes(environment, admin, seed, tmp_path):
    manager = Manager(Options(leader_election=True, leader_election_namespace=seed.namespace))
    manager.add(Script(), type=seed.namespace)
    with own_user(environment, admin, manager, seed.namespace) as kubeconfig, ExitStack() as stack:
        yield Mortals(seed, kubeconfig, tmp_path, stack)


def died(process):
    return process.wait(100) == 9


def test_scenario_01_a_crash_after_the_deletion_outside_is_finished_as_not_found(processes):
    first = processes.start(die="after remove")
    processes.made()
    processes.seed.delete()
    assert died(first)
    assert not processes.seed.is_gone()
    processes.start()
    eventually(processes.seed.is_gone)
    assert [what for _, what in processes.changes()] == ["make", "remove"]


def test_scenario_02_a_crash_before_the_finalizer_patch_changes_nothing_more_outside(processes):
    first = processes.start()
    processes.made()
    (processes.folder / "die").write_text("before /metadata/finalizers")
    processes.seed.delete()
    assert died(first)
    processes.start()
    eventually(processes.seed.is_gone)
    assert [what for _, what in processes.changes()] == ["make", "remove"]
    assert len(processes.calls()) == 2, "the actuator ran again, as it may"


def test_scenario_03_a_crash_between_finalizer_and_create_deletes_nothing_outside(processes):
    first = processes.start(die="before make")
    processes.seed.create(infrastructure(processes.seed.namespace, processes.seed.namespace))
    assert died(first)
    processes.seed.delete()
    assert not processes.seed.is_gone(), "the finalizer was on before anything was made"
    processes.start()
    eventually(processes.seed.is_gone)
    assert processes.changes() == []


@pytest.mark.parametrize("place", ["after make", "before /status"])
def test_scenario_04_a_crash_after_the_create_leaks_nothing_and_makes_no_second(processes, place):
    first = processes.start(die=place)
    processes.seed.create(infrastructure(processes.seed.namespace, processes.seed.namespace))
    assert died(first)
    assert not processes.seed.status().get("providerStatus"), "its id was not stored"
    processes.start()
    eventually(processes.seed.is_ready)
    assert processes.things() == [processes.seed.status()["providerStatus"]["thing"]]
    processes.seed.delete()
    eventually(processes.seed.is_gone)
    assert processes.things() == []
    assert [what for _, what in processes.changes()] == ["make", "remove"]


@pytest.mark.parametrize("forced", [False, True])
def test_scenario_15_who_loses_the_lease_in_a_deletion_writes_no_more(processes, forced):
    seed = processes.seed
    first = processes.elected()
    processes.made()
    if forced:
        seed.update_cluster(cluster(seed.namespace, force="true"))
    processes.hold()
    seed.delete()
    eventually(processes.calls)
    second = processes.start("--leader-election", f"--leader-election-namespace={seed.namespace}")
    thief = {"holderIdentity": "a-thief", "leaseDurationSeconds": 1}
    seed.client.patch(LEASES, LEASE, seed.namespace, {"spec": thief})
    assert first.wait(100) == 1
    processes.release()
    eventually(seed.is_gone)
    assert processes.changes() == [(first.pid, "make"), (second.pid, "remove")]


def freeze(process):
    """Afterwards none of its threads runs."""
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)


def test_scenario_16_an_old_leader_that_wakes_up_is_fenced(processes):
    """Frozen for longer than it may act on its last renewal.

    The lease is shortened for the successor alone, so that the test does not wait for 15 s.
    """
    seed = processes.seed
    first = processes.elected()
    processes.made()
    processes.hold()
    seed.delete()
    eventually(processes.calls)
    freeze(first)
    frozen = time.monotonic()
    seed.client.patch(LEASES, LEASE, seed.namespace, {"spec": {"leaseDurationSeconds": 1}})
    old = processes.holder()
    second = processes.start("--leader-election", f"--leader-election-namespace={seed.namespace}")
    eventually(lambda: processes.holder() not in ("", old))
    eventually(lambda: (second.pid, "delete") in processes.calls())
    time.sleep(max(0.0, frozen + RENEW_DEADLINE + 0.5 - time.monotonic()))
    freeze(second)  # so that only the old one could act
    processes.release()
    first.send_signal(signal.SIGCONT)
    assert first.wait(100) == 1
    assert processes.changes() == [(first.pid, "make")]
    second.send_signal(signal.SIGCONT)
    # Frozen for long, as by a busy machine, the second has lost the lease as well: to a third.
    third = processes.start("--leader-election", f"--leader-election-namespace={seed.namespace}")
    eventually(seed.is_gone)
    made, (remover, what) = processes.changes()
    assert (made, what) == ((first.pid, "make"), "remove")
    assert remover in (second.pid, third.pid)


def test_scenario_46_sigterm_in_a_deletion_that_ends_in_time_hands_the_lease_over(processes):
    first = processes.elected()
    processes.made()
    processes.hold()
    processes.seed.delete()
    eventually(processes.calls)
    first.terminate()
    time.sleep(1)
    assert first.poll() is None
    processes.release()
    assert first.wait(100) == 0
    assert processes.seed.is_gone()
    assert not processes.holder()


def test_scenario_46_sigterm_in_a_deletion_that_hangs_ends_in_time_and_loses_nothing(processes):
    flags = ("--shutdown-timeout=2",)
    first = processes.start(*flags)
    processes.made()
    processes.hold()
    processes.seed.delete()
    eventually(processes.calls)
    first.terminate()
    assert first.wait(100) == 1
    assert not processes.seed.is_gone()
    processes.release()
    processes.start()
    eventually(processes.seed.is_gone)
    assert [what for _, what in processes.changes()] == ["make", "remove"]
