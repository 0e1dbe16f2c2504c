"""One soak from start to end: a cluster, a proxy, a manager, a crowd, and a script."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from actuator.errors import ActuatorError
from actuator.interface import Client
from actuator.v1alpha1 import Cluster, Infrastructure
from generic.kube.client import HttpClient, connect
from generic.reconciler.orphans import Orphan
from generic.reconciler.orphans.ledger import read_orphans
from generic.testing.drill.names import Names
from generic.testing.drill.seeds import EmbeddedSeed
from generic.testing.drill.world import PatientClient
from generic.testing.envtest import Environment
from generic.testing.faults import FaultProxy, Stage, Step, play
from generic.testing.polling import polling, wait_while
from generic.testing.seed import install_crds
from generic.tools.packaging.chart import MALLOC
from tests.adversary.intruder import Intruder
from tests.soak.figures import Sampler
from tests.soak.judge import Seen, outcomes_by_uid, unexplained
from tests.soak.lives import Crowd, Ending, Life
from tests.soak.script import random_script, to_json
from tests.soak.subject import Outcomes, Outside, Things, manager_of

INPUT = "input"
WORDS = ("request", "stream", "actuator", "permission", "kill", "refuse", INPUT)
"""The faults of a script, and INPUT: hostile objects in addition to the others, all the time."""
_PAUSE = 8.0
"""Seconds between two faults on average: objects need time for progress in between."""
_USERS = 6
_STAYING = 4
_PATIENCE = 180.0
_SETTLE_SECONDS = 25.0
"""Seconds after the end of all lives until all abandoned calls have returned."""
_PROGRESS_SECONDS = 15.0
CRASHED = ("Traceback (most recent call last)", "Exception in thread")


def soak(
    seed: int, seconds: float, folder: Path, say: Callable[[str], None], words: Sequence[str]
) -> Seen:
    """Run with faults for `seconds`, then without until the end; return the observations.

    Raises ActuatorError, ApiError or EnvtestError if the soak could not run.
    """
    script = _script(seed, seconds, [word for word in words if word != INPUT])
    (folder / "script.json").write_text(to_json(script))
    outside, log, names = Outside(folder), folder / "manager.log", Names()
    with ExitStack() as stack:
        stage, admin, way = stack.enter_context(_stage(names, folder, say))
        subject = ("tests.soak.subject", way, names.type, folder)
        manager = stack.enter_context(started(log, *subject))
        sampler = Sampler(manager.pid)
        client = PatientClient(admin, _PATIENCE)
        crowd = Crowd(client, names, seed, _PATIENCE)
        crowd.start(_USERS, _STAYING)
        intruder = Intruder(admin, names, seed)
        if INPUT in words:
            intruder.start()
        say(f"{len(script)} faults within {seconds:g} s")
        end = time.monotonic() + seconds
        with polling(lambda: say(_progress(crowd, sampler)), "progress", every=_PROGRESS_SECONDS):
            _play(script, manager, stage)
            time.sleep(max(0.0, end - time.monotonic()))
        troubled = len(sampler.samples)
        say("No more faults; everything may settle")
        intruder.finish()
        crowd.finish()
        _wait_for_outcomes(crowd, folder, client)
        time.sleep(_SETTLE_SECONDS)
        sampler.stop()
        dead = [] if manager.poll() is None else [f"it exited with {manager.returncode}"]
        orphans = read_orphans(client)
        return Seen(
            lives=crowd.lives,
            outcomes=intruder.without(outcomes_by_uid(Outcomes(folder).all(), orphans)),
            outside=[one for one in outside.all() if one.tags["uid"] not in intruder.uids],
            orphans=[orphan.spec.resource for orphan in orphans],
            made=intruder.without(outside.made()),
            samples=sampler.samples[:troubled],
            settled=sampler.samples[troubled:],
            crashes=[*dead, *_crashes(log)],
        )


@contextmanager
def _stage(
    names: Names, folder: Path, say: Callable[[str], None]
) -> Iterator[tuple[Stage, HttpClient, Path]]:
    """Yield the stage, an administrator's client, and the manager's kubeconfig of the proxy."""
    with ExitStack() as stack:
        environment = stack.enter_context(Environment(progress=say))
        admin = connect(environment.kubeconfig, connections=_USERS + _STAYING + 4)
        install_crds(admin, [Cluster, Orphan, Infrastructure])
        model = manager_of(Things(Outside(folder)), names.type, None)
        mine = EmbeddedSeed(environment, admin).admit(model, names.type)
        proxy = stack.enter_context(FaultProxy(mine, folder))
        stage = Stage(proxy=proxy, environment=environment, admin=admin, role=names.type)
        yield stage, admin, proxy.kubeconfig


@contextmanager
def started(log: Path, module: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run a manager in a separate process, started when entered; kill it at the end."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    pipe, environment = subprocess.PIPE, {**os.environ, **MALLOC}  # as the chart sets it
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=errors, text=True, env=environment
        ) as process,
    ):
        try:
            if process.stdout is None or process.stdout.readline() != "working\n":
                raise ActuatorError(f"the manager did not start; see {log}")
            yield process
        finally:
            process.kill()


def _script(seed: int, seconds: float, faults: Sequence[str]) -> list[Step]:
    return random_script(seed, seconds, faults, pause=_PAUSE) if faults else []


def _play(script: Sequence[Step], manager: subprocess.Popen[str], stage: Stage) -> None:
    """Play both parts of the script: the manager's process plays the faults in its actuator."""
    inside = [step for step in script if step.actuator]
    ours = [step for step in script if not step.actuator]
    assert manager.stdin is not None
    manager.stdin.write(to_json(inside).replace("\n", "") + "\n")
    manager.stdin.flush()
    play(ours, stage, threading.Event())


def _progress(crowd: Crowd, sampler: Sampler) -> str:
    now = sampler.look()
    lives = list(crowd.lives)
    over = sum(life.over for life in lives)
    return (
        f"{now.at:5.0f} s: {len(lives)} objects, {over} ended, {now.memory:.1f} MiB, "
        f"{now.threads} threads"
    )


def _crashes(log: Path) -> list[str]:
    """Return the first lines of tracebacks that no logger wrote."""
    return [line for line in log.read_text().splitlines() if line.startswith(CRASHED)]


def _wait_for_outcomes(crowd: Crowd, folder: Path, client: Client) -> None:
    """Wait for late outcomes, such as removed finalizers; the judge reports missing ones."""
    gone = [life for life in crowd.lives if life.over and life.ending is not Ending.STAYS]

    def missing() -> list[Life]:
        known = outcomes_by_uid(Outcomes(folder).all(), read_orphans(client))
        return [life for life in gone if unexplained(life, known.get(life.uid, ()))]

    wait_while(missing, _PATIENCE, every=1)
