"""Zygote: a process that has loaded all modules and forks a manager for each order it reads.

    python -m generic.testing.drill.kills.child MODULE:CLASS...

The arguments are the rehearsals; each order is a line of JSON on standard input. Each child prints
its process ID, and WORKING once its caches are filled; then the zygote prints its exit code, a line
each. A child ends when it is killed, by SIGALRM when its time is over, or at the line STOP. Forking
is safe because the zygote has no threads.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import BinaryIO, NoReturn

import attrs
import cattrs

from generic.manager.options import Options
from generic.testing.drill.breaks import MIGRATION_BREAKS, Break
from generic.testing.drill.kills.calls import (
    CountingActuator,
    CountingClient,
    Kill,
    Reaper,
    RecordingActuator,
)
from generic.testing.drill.world import manager_for
from generic.testing.rehearsal import CombinedRehearsal, name_of

STOP = b"stop\n"
WORKING = "working"
_SYNC_SECONDS = 60.0


@attrs.frozen(kw_only=True)
class Order:
    """One child: a manager for one extension type that records its calls in the file `calls`.

    `shared` gives access to the outside world. With a `seed`, only the actuators' operations are
    recorded, as those of that seed; without one all calls are, also API and outside requests.
    """

    kubeconfig: str
    type: str
    shared: list[Mapping[str, str]]
    calls: str
    seed: str = ""
    break_rule: str = ""
    actuators: Sequence[str] = ()
    """The names of the actuators that run (`name_of`); empty: all."""
    seconds: int = 0
    """Time limit in seconds; 0: none."""
    kill: Kill | None = None


def main() -> None:
    """Fork a child for each order until standard input ends."""
    answer = partial(_answer, os.dup(1))
    os.dup2(2, 1)  # the texts that an author prints, or a program of the author, are no answers
    lines = open(0, "rb", buffering=0, closefd=False)  # noqa: SIM115 - as long as the process lives
    parts = [resolve_name(reference) for reference in sys.argv[1:]]
    while line := lines.readline():
        if STOP.endswith(line):
            continue  # for a child that had already ended, or was killed while it read
        order = cattrs.structure(json.loads(line), Order)
        pid = os.fork()
        if pid == 0:
            _work(order, CombinedRehearsal([part() for part in parts]), lines, answer)
        _, status = os.waitpid(pid, 0)
        answer(os.waitstatus_to_exitcode(status))


def _work(
    order: Order,
    rehearsal: CombinedRehearsal,
    lines: BinaryIO,
    answer: Callable[[object], None],
) -> NoReturn:
    """Run a manager in this process until a line or the end of input arrives."""
    answer(os.getpid())
    signal.alarm(order.seconds)
    reaper = Reaper(Path(order.calls), order.kill)
    calls = Path(order.calls)
    broken = MIGRATION_BREAKS[order.break_rule] if order.break_rule else Break()
    rehearsal.attach(order.shared)
    if not order.seed:
        rehearsal.observe(reaper.around)
    actuators = [
        broken.actuator(RecordingActuator(actuator, order.seed, calls))
        if order.seed
        else CountingActuator(actuator, reaper)
        for actuator in rehearsal.actuators()
        if not order.actuators or name_of(actuator) in order.actuators
    ]
    manager = manager_for(
        actuators,
        [order.type],
        Options(
            kubeconfig=Path(order.kubeconfig), outcome_events="all" if order.seed else "unusual"
        ),
        broken.client if order.seed else lambda client: CountingClient(client, reaper),
    )
    manager.start()
    if not manager.wait_synced(_SYNC_SECONDS):
        sys.exit(f"not synced within {_SYNC_SECONDS:.0f} s")
    answer(WORKING)
    lines.readline()
    os._exit(0)


def _answer(pipe: int, what: object) -> None:
    os.write(pipe, f"{what}\n".encode())


if __name__ == "__main__":
    main()
