"""SIGKILL at random points of each operation: every object still reaches its outcome, once."""

import os
import random
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from generic.manager.manager import Manager
from tests.support.cluster.harness import (
    FINALIZER,
    OPERATION,
    TIMESTAMP,
    Script,
    eventually,
    own_user,
)
from tests.support.objects.builders import cluster, infrastructure
from tests.support.objects.present import present

PROGRAM = Path(__file__).parents[2].joinpath("support", "crash_program.py")
NAMES = [f"infra-{number}" for number in range(8)]
KILLS = 2
MANY = [f"many-{number}" for number in range(60)]
WORKERS = 3


@pytest.fixture
def rng(request):
    """Random numbers from a seed that is printed, and can be given: KILL_SEED=…"""
    number = int(os.environ.get("KILL_SEED") or random.randrange(10**6))
    print(f"KILL_SEED={number}")
    return random.Random(number)


class Victims:
    """Starts managers under their generated Role, and kills them."""

    def __init__(self, kubeconfig, seed, folder):
        self.kubeconfig = kubeconfig
        self.seed = seed
        self.folder = folder

    @contextmanager
    def one(self):
        command = [sys.executable, str(PROGRAM), self.seed.namespace, str(self.folder)]
        command += [f"--kubeconfig={self.kubeconfig}", f"--max-concurrent-reconciles={WORKERS}"]
        command += ["--health-bind-address=0", "--metrics-bind-address=0", "--log-level=error"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        stdout = present(process.stdout)
        try:
            assert stdout.readline() == b"working\n"
            yield process
        finally:
            process.kill()
            process.wait()
            stdout.close()

    def survive(self, act, done, rng):
        """`act`, with a manager that is killed again and again; then one that may finish."""
        acted = False
        for _ in range(KILLS):
            with self.one():
                if not acted:
                    act()
                    acted = True
                time.sleep(rng.uniform(0, 0.25))
        with self.one():
            eventually(lambda: all(done(name) for name in NAMES), seconds=100)

    def calls(self, operation):
        lines = (self.folder / "done").read_text().splitlines()
        return {name for what, name in map(str.split, lines) if what == operation}

    def counted(self):
        return (self.folder / "counted").read_text().splitlines()

    def things(self):
        return sorted(self.folder.glob("thing-*"))


@pytest.fixture
def victims(environment, admin, seed, tmp_path):
    for notes in ("done", "counted", "leaves"):
        (tmp_path / notes).touch()
    manager = Manager()
    manager.add(Script(), type=seed.namespace)
    with own_user(environment, admin, manager, seed.namespace) as kubeconfig:
        yield Victims(kubeconfig, seed, tmp_path)


def create(seed, names=NAMES, **annotations):
    asked = {OPERATION: "reconcile", TIMESTAMP: "2026-01-01T00:00:00Z", **annotations}
    for name in names:
        seed.create(infrastructure(seed.namespace, seed.namespace, name, annotations=asked))


def unowned(obj):
    return FINALIZER not in (obj["metadata"].get("finalizers") or [])


def test_creation_survives(seed, victims, rng):
    victims.survive(lambda: create(seed), seed.is_ready, rng)
    assert victims.calls("reconcile") == set(NAMES)
    assert len(victims.things()) == len(NAMES), "each was made once"
    kept = {seed.status(name)["providerStatus"]["thing"] for name in NAMES}
    assert kept == {thing.name for thing in victims.things()}


def test_a_requested_reconcile_survives(seed, victims, rng):
    with victims.one():
        create(seed)
        eventually(lambda: all(seed.is_ready(name) for name in NAMES))
    (victims.folder / "done").write_text("")

    def ask():
        for name in NAMES:
            seed.ask("reconcile", name)

    victims.survive(ask, seed.is_ready, rng)
    assert victims.calls("reconcile") == set(NAMES), "no request is lost"
    assert len(victims.things()) == len(NAMES)


@pytest.mark.parametrize("forced", [False, True])
def test_deletion_survives(seed, victims, rng, forced):
    with victims.one():
        create(seed)
        eventually(lambda: all(seed.is_ready(name) for name in NAMES))
    if forced:
        seed.update_cluster(cluster(seed.namespace, force="true"))

    def delete():
        for name in NAMES:
            seed.delete(name)

    victims.survive(delete, seed.is_gone, rng)
    assert victims.calls("force_delete" if forced else "delete") == set(NAMES)
    assert len(victims.things()) == (len(NAMES) if forced else 0)
    recorded = {event["involvedObject"]["name"] for event in seed.events("OrphansRecorded")}
    assert recorded == (set(NAMES) if forced else set()), "each is on record, or none"


def test_a_kill_costs_the_count_of_final_outcomes_one_for_each_worker_at_most(seed, victims, rng):
    with victims.one():
        create(seed, MANY)
        eventually(lambda: all(seed.is_ready(name) for name in MANY))
    kill_after = rng.randint(1, len(MANY) // 4)
    for name in MANY:  # while nobody runs, who might be done before the last of them
        seed.delete(name)
    with victims.one():
        eventually(lambda: len(victims.counted()) >= kill_after)
    assert not all(seed.is_gone(name) for name in MANY), "it was killed amid its work"
    with victims.one():
        eventually(lambda: all(seed.is_gone(name) for name in MANY), seconds=100)
        eventually(lambda: len(victims.counted()) >= len(MANY) - WORKERS)
    counted = victims.counted()
    assert len(counted) == len(set(counted)), "nothing is counted twice"
    assert set(counted) <= {f"deleted {name}" for name in MANY}


def test_migration_survives(seed, victims, rng):
    with victims.one():
        create(seed)
        eventually(lambda: all(seed.is_ready(name) for name in NAMES))

    def ask():
        for name in NAMES:
            seed.ask("migrate", name)

    def moved(name):
        obj = seed.get(name)
        return unowned(obj) and OPERATION not in obj["metadata"].get("annotations", {})

    victims.survive(ask, moved, rng)
    assert {seed.last_operation(name) for name in NAMES} == {("Migrate", "Succeeded")}
    assert len(victims.things()) == len(NAMES)


def test_restore_survives(seed, victims, rng):
    victims.survive(lambda: create(seed, **{OPERATION: "restore"}), seed.is_ready, rng)
    assert victims.calls("restore") == set(NAMES)
    assert len(victims.things()) == len(NAMES)
    for name in NAMES:
        assert seed.last_operation(name)[1] == "Succeeded"
