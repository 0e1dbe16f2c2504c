"""One attack: a cluster, a manager, bystanders, and hostile inputs, so many at a time.

The inputs, their lives and the rules about them are in tests/adversary.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

from actuator.errors import ActuatorError
from actuator.interface import Resource
from generic.kube.client import HttpClient
from generic.kube.clock import SystemClock
from generic.manager.orphans.ledger import Serving, read_orphans
from generic.manager.orphans.verification import verify
from generic.reconciler.orphans import ORPHANS
from generic.testing.drill.names import Names
from generic.testing.envtest import Environment
from tests.adversary.bystanders import Bystanders
from tests.adversary.inputs import CLASSES, rng_of
from tests.adversary.judge import Report, leaks
from tests.adversary.lives import Lives
from tests.adversary.selections import attack_selections
from tests.adversary.subject import manager_of
from tests.adversary.tenants import attack_tenants
from tests.adversary.values import HANG
from tests.adversary.webhooksecrets import attack_webhook_secrets
from tests.soak.figures import Sampler
from tests.support.driver import admitted, crashes, started

__all__ = ["FAMILIES", "attack"]

FAMILIES = (
    *("objects", "values", "kubeconfigs", "reviews", "predicates", "answers", "tenants"),
    "webhooksecrets",
)
_ALIVE = 20
"""Objects at a time."""
_MIB = 64.0
_PROGRESS_SECONDS = 15.0
_VERIFIED = 300
_SETTLE_SECONDS = 2 * HANG + 15.0
_SPARE_THREADS = 1


def attack(
    environment: Environment,
    seed: int,
    family: str,
    numbers: Sequence[int],
    folder: Path,
    say: Callable[[str], None],
    *,
    plants: Sequence[str] = (),
    settle: float = _SETTLE_SECONDS,
) -> Report:
    """Let these inputs live, and return the broken rules. Raises ActuatorError if none could.

    `settle`: seconds in which the threads of calls that hang have to end.
    """
    report = Report(say)
    if family in _ATTACKS:
        _ATTACKS[family](environment, seed, numbers, report)
        return report
    if family == "answers":
        return _answer_wrongly(environment, seed, numbers, folder, report)
    names = Names()
    model = manager_of(names.type, seed)
    connections = _ALIVE + len(CLASSES) + 4
    admin, mine = admitted(environment, CLASSES, model, names, connections)
    subject = (mine, names.type, seed, folder, *plants)
    log = folder / f"{family}.log"
    bystanders = Bystanders(admin, names, report)
    with started(log, "tests.adversary.subject", *subject) as process:
        bystanders.start()
        sampler = Sampler(process.pid)
        start = sampler.look()
        lives = Lives(admin, names, seed, report)
        with ThreadPoolExecutor(_ALIVE) as pool:
            pending = [pool.submit(lives.live, family, number) for number in numbers]
            while to_go := wait(pending, timeout=_PROGRESS_SECONDS).not_done:
                seconds = sampler.samples[-1].at
                memory = sampler.samples[-1].memory
                say(f"{seconds:5.0f} s: {len(to_go)} to go, {memory:.0f} MiB, {report}")
        _wait_for_threads(sampler, start.threads, settle, report)
        bystanders.stop()
        with suppress(OSError):
            sampler.samples.append(sampler.look())
        sampler.stop()
        most = max([start.memory, *(sample.memory for sample in sampler.samples)])
        report.counts["memory, MiB, at most"] = round(most)
        if most - start.memory > _MIB:
            report.complain("memory", "the manager", f"{start.memory:.0f} MiB, then {most:.0f} MiB")
        _judge_process(process, log, report)
    lives.close()
    for item in pending:
        item.result()  # a mistake of ours would be silent
    _judge_rest(admin, lives, model.registrations, report)
    return report


def _wait_for_threads(sampler: Sampler, before: int, settle: float, report: Report) -> None:
    """Calls that hang return after HANG seconds, each in a thread of its own."""
    deadline = time.monotonic() + settle
    with suppress(OSError):  # the process is gone, which is judged elsewhere
        while (now := sampler.look().threads) > before + _SPARE_THREADS:
            if time.monotonic() > deadline:
                report.complain("alive", "the manager", f"{before} threads, and {now} in the end")
                return
            time.sleep(1)


def _judge_process(process: subprocess.Popen[str], log: Path, report: Report) -> None:
    alive = process.poll() is None
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=60)
    if not alive or process.returncode != 0:
        report.complain("alive", "the manager", f"exited with {process.returncode}")
    for line in crashes(log):
        report.complain("alive", log, line)
    for written in (log, log.with_name("metrics")):
        if not written.exists() or leaks(written.read_bytes()):
            report.complain("secret", written, "a part of a Secret is in it, or it is missing")


def _judge_rest(admin: HttpClient, lives: Lives, added: Sequence[Serving], report: Report) -> None:
    """Orphans and events, and the states that `actuator orphans verify` finds."""
    for resource in (Resource("v1", "events"), ORPHANS):
        if leaks(json.dumps(admin.list(resource)).encode()):
            report.complain("secret", resource, "a part of a Secret is in it")
    orphans = [orphan for orphan in read_orphans(admin) if orphan.spec.object.uid in lives.uids]
    report.counts["Orphans"] = len(orphans)
    for uid in lives.owed.keys() - {orphan.spec.object.uid for orphan in orphans}:
        report.complain("orphan", lives.owed[uid], "has no Orphan")
    try:
        asked = list(verify(admin, orphans[:_VERIFIED], added, SystemClock()))
        if len(asked) != len(orphans[:_VERIFIED]):
            raise ActuatorError("an Orphan was passed over")
    except BaseException as error:  # whatever still_exists returned or raised
        report.complain("alive", "orphans verify", f"{type(error).__name__}: {error}")


def _read_kubeconfigs(
    _environment: Environment, seed: int, numbers: Sequence[int], report: Report
) -> None:
    from tests.adversary.kubeconfigs import kubeconfig, problem, reader

    with reader() as read:
        for number in numbers:
            found = problem(kubeconfig(rng_of(seed, "kubeconfigs", number)), read)
            if found:
                report.complain("kubeconfig", f"--only {number}", found)
            report.counts["lived"] += 1


def _answer_wrongly(
    environment: Environment, seed: int, numbers: Sequence[int], folder: Path, report: Report
) -> Report:
    from tests.adversary.answers import attack_answers

    attack_answers(environment, seed, numbers, folder, report)
    return report


def _send_reviews(
    _environment: Environment, seed: int, numbers: Sequence[int], report: Report
) -> None:
    from tests.adversary.reviews import request, serving

    with serving() as target:
        for number in numbers:
            found = target.problem(request(rng_of(seed, "reviews", number)))
            if found:
                report.complain("review", f"--only {number}", found)
            report.counts["lived"] += 1
        if found := target.end():
            report.complain("review", "the end", found)


_ATTACKS: dict[str, Callable[[Environment, int, Sequence[int], Report], None]] = {
    "kubeconfigs": _read_kubeconfigs,
    "reviews": _send_reviews,
    "predicates": attack_selections,
    "tenants": attack_tenants,
    "webhooksecrets": attack_webhook_secrets,
}
"""Families that need no manager in a process of its own."""
