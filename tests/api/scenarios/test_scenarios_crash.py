"""A process that dies, freezes, or is told to go, in the middle of an object's life."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from builders import cluster, infrastructure
from harness import Script, eventually, own_user

from actuator import Resource
from generic.manager.manager import Manager
from generic.manager.options import Options

PROGRAM = Path(__file__).parents[2].joinpath("mortal.py")
LEASES = Resource("coordination.k8s.io/v1", "leases")
LEASE = "gardener-actuator-leader-election"
RENEW_DEADLINE = 10.0


class Mortals:
    """Starts managers as programs; what is outside is a folder."""

    def __init__(self, seed, kubeconfig, folder, stack):
        self.seed, self.folder = seed, folder
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
        """Who changed what outside, in order."""
        return self._lines("changes")

    def calls(self):
        return self._lines("calls")

    def hold(self):
        (self.folder / "hold").touch()

    def let_go(self):
        (self.folder / "hold").unlink()

    def made(self):
        """An object that is ready, its thing outside."""
        self.seed.create(infrastructure(self.seed.namespace, self.seed.namespace))
        eventually(self.seed.is_ready)
        assert len(self.things()) == 1


@pytest.fixture
def mortals(environment, admin, seed, tmp_path):
    manager = Manager(Options(leader_election=True, leader_election_namespace=seed.namespace))
    manager.add(Script(), type=seed.namespace)
    with own_user(environment, admin, manager, seed.namespace) as kubeconfig, ExitStack() as stack:
        yield Mortals(seed, kubeconfig, tmp_path, stack)


def died(process):
    return process.wait(100) == 9


def test_scenario_01_a_crash_after_the_deletion_outside_is_finished_as_not_found(mortals):
    first = mortals.start(die="after remove")
    mortals.made()
    mortals.seed.delete()
    assert died(first)
    assert not mortals.seed.is_gone()
    mortals.start()
    eventually(mortals.seed.is_gone)
    assert [what for _, what in mortals.changes()] == ["make", "remove"]


def test_scenario_02_a_crash_before_the_finalizer_patch_changes_nothing_more_outside(mortals):
    first = mortals.start()
    mortals.made()
    (mortals.folder / "die").write_text("before /metadata/finalizers")
    mortals.seed.delete()
    assert died(first)
    mortals.start()
    eventually(mortals.seed.is_gone)
    assert [what for _, what in mortals.changes()] == ["make", "remove"]
    assert len(mortals.calls()) == 2, "the actuator ran again, as it may"


def test_scenario_03_a_crash_between_finalizer_and_create_deletes_nothing_outside(mortals):
    first = mortals.start(die="before make")
    mortals.seed.create(infrastructure(mortals.seed.namespace, mortals.seed.namespace))
    assert died(first)
    mortals.seed.delete()
    assert not mortals.seed.is_gone(), "the finalizer was on before anything was made"
    mortals.start()
    eventually(mortals.seed.is_gone)
    assert mortals.changes() == []


@pytest.mark.parametrize("place", ["after make", "before /status"])
def test_scenario_04_a_crash_after_the_create_leaks_nothing_and_makes_no_second(mortals, place):
    first = mortals.start(die=place)
    mortals.seed.create(infrastructure(mortals.seed.namespace, mortals.seed.namespace))
    assert died(first)
    assert not mortals.seed.status().get("providerStatus"), "its id was not stored"
    mortals.start()
    eventually(mortals.seed.is_ready)
    assert mortals.things() == [mortals.seed.status()["providerStatus"]["thing"]]
    mortals.seed.delete()
    eventually(mortals.seed.is_gone)
    assert mortals.things() == []
    assert [what for _, what in mortals.changes()] == ["make", "remove"]


@pytest.mark.parametrize("forced", [False, True])
def test_scenario_15_who_loses_the_lease_in_a_deletion_writes_no_more(mortals, forced):
    seed = mortals.seed
    first = mortals.elected()
    mortals.made()
    if forced:
        seed.update_cluster(cluster(seed.namespace, force="true"))
    mortals.hold()
    seed.delete()
    eventually(mortals.calls)
    second = mortals.start("--leader-election", f"--leader-election-namespace={seed.namespace}")
    thief = {"holderIdentity": "a-thief", "leaseDurationSeconds": 1}
    seed.client.patch(LEASES, LEASE, seed.namespace, {"spec": thief})
    assert first.wait(100) == 1
    mortals.let_go()
    eventually(seed.is_gone)
    assert mortals.changes() == [(first.pid, "make"), (second.pid, "remove")]


def freeze(process):
    """Afterwards none of its threads runs."""
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)


def test_scenario_16_an_old_leader_that_wakes_up_is_fenced(mortals):
    """Frozen for longer than it may act on its last renewal.

    The lease is cut short for the successor alone, so that nobody waits for all of its 15 s.
    """
    seed = mortals.seed
    first = mortals.elected()
    mortals.made()
    mortals.hold()
    seed.delete()
    eventually(mortals.calls)
    freeze(first)
    frozen = time.monotonic()
    seed.client.patch(LEASES, LEASE, seed.namespace, {"spec": {"leaseDurationSeconds": 1}})
    old = mortals.holder()
    second = mortals.start("--leader-election", f"--leader-election-namespace={seed.namespace}")
    eventually(lambda: mortals.holder() not in ("", old))
    eventually(lambda: (second.pid, "delete") in mortals.calls())
    time.sleep(max(0.0, frozen + RENEW_DEADLINE + 0.5 - time.monotonic()))
    freeze(second)  # so that only the old one could act
    mortals.let_go()
    first.send_signal(signal.SIGCONT)
    assert first.wait(100) == 1
    assert mortals.changes() == [(first.pid, "make")]
    second.send_signal(signal.SIGCONT)
    # Frozen for long, as by a busy machine, the second has lost the lease as well: to a third.
    third = mortals.start("--leader-election", f"--leader-election-namespace={seed.namespace}")
    eventually(seed.is_gone)
    made, (remover, what) = mortals.changes()
    assert (made, what) == ((first.pid, "make"), "remove")
    assert remover in (second.pid, third.pid)


def test_scenario_46_sigterm_in_a_deletion_that_ends_in_time_hands_the_lease_over(mortals):
    first = mortals.elected()
    mortals.made()
    mortals.hold()
    mortals.seed.delete()
    eventually(mortals.calls)
    first.terminate()
    time.sleep(1)
    assert first.poll() is None
    mortals.let_go()
    assert first.wait(100) == 0
    assert mortals.seed.is_gone()
    assert not mortals.holder()


def test_scenario_46_sigterm_in_a_deletion_that_hangs_ends_in_time_and_loses_nothing(mortals):
    flags = ("--shutdown-timeout=2",)
    first = mortals.start(*flags)
    mortals.made()
    mortals.hold()
    mortals.seed.delete()
    eventually(mortals.calls)
    first.terminate()
    assert first.wait(100) == 1
    assert not mortals.seed.is_gone()
    mortals.let_go()
    mortals.start()
    eventually(mortals.seed.is_gone)
    assert [what for _, what in mortals.changes()] == ["make", "remove"]
