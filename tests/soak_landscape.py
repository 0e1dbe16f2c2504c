"""Many force deletions on one landscape, over the scenarios, with a manager killed in each.

    python -m tests.soak_landscape --deletions 20 --seed 7

Shoots are created in rounds, each with the next scenario of the rehearsals. In each round a manager
is killed for every Shoot, at a random moment between its deletion and its end. The rules of a drill
are judged for each round; at the end no process and no port of the landscape is left. Run it alone
on the machine.
"""

from __future__ import annotations

import argparse
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from generic.library.programs.processes import Processes
from generic.testing.drill.landscape.rules import judge
from generic.testing.drill.landscape.run import LandscapeRun, scenarios_of
from generic.testing.drill.landscape.world import LandscapeWorld
from generic.testing.drill.settings import DrillSettings, Watcher
from generic.testing.landscape.memory import descendants, gib, resident
from generic.tools.cli.landscape_extensions import DEFAULTS, landscape_world, rehearsal_of

AT_ONCE = 4
"""Maximum number of Shoots of a round."""
MANAGER = "extension-"
"""The prefix of the names of the managers' processes."""
PROC = Path("/proc")
LISTEN = "0A"
KILL_WITHIN = 45.0
"""Seconds after the deletion in which a manager is killed."""


class Printer(Watcher):
    """Prints each message with the seconds since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:7.1f} {text}", flush=True)


@contextmanager
def killing(run: LandscapeRun, processes: Processes, chance: random.Random) -> Iterator[None]:
    """Kill a manager for each Shoot of the run, at a random moment after its deletion began."""
    over = threading.Event()
    delays = [chance.uniform(0, KILL_WITHIN) for _ in run.evidence.shoots]

    def kill() -> None:
        for story, delay in zip(run.evidence.shoots, delays, strict=True):
            while story.deleted is None and not over.wait(0.2):
                pass
            if over.wait(delay / len(delays)):
                return
            alive = [name for name in processes.alive() if name.startswith(MANAGER)]
            if alive:
                victim = chance.choice(alive)
                print(f"        killed {victim}", flush=True)
                processes.kill(victim)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def ports_of(pids: set[int]) -> set[int]:
    """The TCP ports of the loopback address on which these processes listen."""
    inodes = {inode for pid in pids for inode in sockets_of(pid)}
    rows = [line.split() for line in (PROC / "net" / "tcp").read_text().splitlines()[1:]]
    listening = [row for row in rows if row[3] == LISTEN and row[9] in inodes]
    return {int(row[1].partition(":")[2], 16) for row in listening}


def sockets_of(pid: int) -> Iterator[str]:
    """The inodes of a process's sockets."""
    with suppress(OSError):  # it has ended
        for link in (PROC / str(pid) / "fd").iterdir():
            target = str(link.readlink())
            if target.startswith("socket:["):
                yield target.removeprefix("socket:[").removesuffix("]")


def is_open(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deletions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("extensions", nargs="*", default=[*DEFAULTS])
    return parser.parse_args()


def rounds(deletions: int, scenarios: int) -> list[int]:
    """The number of Shoots of each round: every scenario has one, and no round is too large."""
    count = max(min(scenarios, deletions), -(-deletions // AT_ONCE))
    return [deletions // count + (number < deletions % count) for number in range(count)]


def play(
    world: LandscapeWorld, printer: Printer, chance: random.Random, number: int, shoots: int
) -> list[str]:
    """Play one round, and return the problems."""
    rehearsal = world.rehearsal
    assert rehearsal is not None
    scenarios = [*scenarios_of(rehearsal)]
    scenario = scenarios[number % len(scenarios)]
    settings = attrs.evolve(DrillSettings(), scenario=scenario, shoots=shoots)
    run = LandscapeRun(settings, rehearsal, world, printer, f"r{number}x")
    with killing(run, world.landscape.processes, chance):
        run.rehearse()
    took = [shoot.took for shoot in run.evidence.shoots if shoot.took is not None]
    slowest = f"{max(took):.0f} s" if took else "none"
    memory = gib(resident(os.getpid()))
    printer.say(f"== {scenario}: {shoots} Shoots, slowest force deletion {slowest}, {memory} GiB")
    return [
        f"{scenario}: {finding.rule}: {problem}"
        for finding in judge(run.evidence)
        for problem in finding.problems
    ]


def main() -> int:
    given = arguments()
    print(f"seed {given.seed}", flush=True)
    chance = random.Random(given.seed)
    printer = Printer()
    problems = []
    rehearsal = rehearsal_of(given.extensions)
    assert rehearsal is not None, "name a rehearsal, which has an outside world to break"
    counts = rounds(given.deletions, len(scenarios_of(rehearsal)))
    with landscape_world(given.extensions, rehearsal, 1, printer.say) as world:
        for number, count in enumerate(counts):
            problems += play(world, printer, chance, number, count)
        left = descendants(os.getpid())
        ports = ports_of(left)
    problems += [f"process {pid} is left" for pid in left if (PROC / str(pid)).exists()]
    problems += [f"port {port} is left" for port in ports if is_open(port)]
    closed = f"{given.deletions} force deletions, {len(ports)} ports closed, no problem"
    print("\n".join(problems) or closed)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
