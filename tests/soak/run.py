"""One soak from start to end: a cluster, a proxy, a manager, a crowd, and a script."""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from actuator.interface import Client
from actuator.v1alpha1 import Infrastructure
from generic.kube.client import HttpClient
from generic.manager.orphans.ledger import read_orphans
from generic.testing.drill.names import Names
from generic.testing.drill.world import PatientClient
from generic.testing.envtest import Environment
from generic.testing.polling import polling, wait_while
from hack.faults import FaultProxy, FaultStage, FaultStep, play
from tests.adversary.intruder import Intruder
from tests.soak.figures import Sampler
from tests.soak.judge import Seen, outcomes_by_uid, unexplained
from tests.soak.lives import Crowd, Ending, Life
from tests.soak.script import random_script, to_json
from tests.soak.subject import Outcomes, Outside, Things, manager_of
from tests.support.driver import admitted, crashes, started

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
            outside=[
                resource for resource in outside.all() if resource.tags["uid"] not in intruder.uids
            ],
            orphans=[orphan.spec.resource for orphan in orphans],
            made=intruder.without(outside.made()),
            samples=sampler.samples[:troubled],
            settled=sampler.samples[troubled:],
            crashes=[*dead, *crashes(log)],
        )


@contextmanager
def _stage(
    names: Names, folder: Path, say: Callable[[str], None]
) -> Iterator[tuple[FaultStage, HttpClient, Path]]:
    """Yield the stage, an administrator's client, and the manager's kubeconfig of the proxy."""
    with ExitStack() as stack:
        environment = stack.enter_context(Environment(progress=say))
        model = manager_of(Things(Outside(folder)), names.type, None)
        connections = _USERS + _STAYING + 4
        admin, mine = admitted(environment, [Infrastructure], model, names, connections)
        proxy = stack.enter_context(FaultProxy(mine, folder))
        stage = FaultStage(proxy=proxy, environment=environment, admin=admin, role=names.type)
        yield stage, admin, proxy.kubeconfig


def _script(seed: int, seconds: float, faults: Sequence[str]) -> list[FaultStep]:
    return random_script(seed, seconds, faults, pause=_PAUSE) if faults else []


def _play(script: Sequence[FaultStep], manager: subprocess.Popen[str], stage: FaultStage) -> None:
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


def _wait_for_outcomes(crowd: Crowd, folder: Path, client: Client) -> None:
    """Wait for late outcomes, such as removed finalizers; the judge reports missing ones."""
    gone = [life for life in crowd.lives if life.over and life.ending is not Ending.STAYS]

    def missing() -> list[Life]:
        known = outcomes_by_uid(Outcomes(folder).all(), read_orphans(client))
        return [life for life in gone if unexplained(life, known.get(life.uid, ()))]

    wait_while(missing, _PATIENCE, every=1)
