"""Zygote: a process that has everything loaded and forks a manager for each order it reads.

    python -m generic.testing.explorer.child

The task is one line of JSON on standard input, each order another one. It answers each order with
how its child ended, in one line. A child ends at the kill it was sent to, by SIGALRM when its
time is over, or at the line STOP. There are no threads before a fork, so that is safe.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import BinaryIO, NoReturn

import attrs
import cattrs

from actuator.interface import object_class
from generic.manager.options import Options
from generic.testing.drill.world import manager_for
from generic.testing.explorer.counting import CountingActuator, CountingClient, Reaper
from generic.testing.explorer.points import Kill
from generic.testing.rehearsal import Together

__all__ = ["STOP", "Order", "Task"]

STOP = b"stop\n"


@attrs.frozen(kw_only=True)
class Task:
    """What all children have in common: `rehearsals` as MODULE:CLASS, paths as text."""

    kubeconfig: str
    rehearsals: list[str]


@attrs.frozen(kw_only=True)
class Order:
    """One child: a manager for some kinds and one extension type, noting its calls in a file.

    `shared` leads to the outside. It ends after `seconds` at the latest.
    """

    kinds: Sequence[str]
    type: str
    shared: list[Mapping[str, str]]
    calls: str
    seconds: int
    kill: Kill | None = None


def main() -> None:
    """Forks until standard input ends."""
    lines = open(0, "rb", buffering=0, closefd=False)  # noqa: SIM115 - as long as the process lives
    task = cattrs.structure(json.loads(lines.readline()), Task)
    parts = [resolve_name(reference) for reference in task.rehearsals]
    while line := lines.readline():
        if STOP.endswith(line):
            continue  # for a child that had ended by itself, or was killed while it read
        order = cattrs.structure(json.loads(line), Order)
        pid = os.fork()
        if pid == 0:
            _work(task, order, Together([part() for part in parts]), lines)
        _, status = os.waitpid(pid, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _work(task: Task, order: Order, rehearsal: Together, lines: BinaryIO) -> NoReturn:
    """A manager in a process of its own, until a line comes, or the end of all lines."""
    signal.alarm(order.seconds)
    reaper = Reaper(Path(order.calls), order.kill)
    rehearsal.attach(order.shared)
    rehearsal.observe(reaper.before, reaper.after)
    actuators = [
        CountingActuator(actuator, reaper)
        for actuator in rehearsal.actuators()
        if object_class(actuator).KIND.name in order.kinds
    ]
    manager = manager_for(
        actuators,
        [order.type],
        Options(kubeconfig=Path(task.kubeconfig)),
        lambda client: CountingClient(client, reaper),
    )
    manager.start()
    lines.readline()
    os._exit(0)


if __name__ == "__main__":
    main()
