"""A seed's manager as a process of its own, for `victim` to start and kill.

    python -m generic.testing.drill.migration.child

The task is one line of JSON on standard input. When it works it says so in one line, and goes on
until its input is closed: by its starter, or because that is gone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name

import attrs
import cattrs

from generic.manager.options import Options
from generic.testing.drill.breaks import Break
from generic.testing.drill.migration.breaks import MIGRATION_BREAKS
from generic.testing.drill.migration.recorder import Recorder
from generic.testing.drill.names import Names
from generic.testing.drill.world import manager_for
from generic.testing.rehearsal import Together

__all__ = ["WORKING", "Task"]

WORKING = "working"
_SYNC_SECONDS = 30.0


@attrs.frozen(kw_only=True)
class Task:
    """What a manager has to know: `rehearsals` as MODULE:CLASS, paths as text."""

    drill: str
    seed: str
    kubeconfig: str
    calls: str
    rehearsals: list[str]
    shared: list[Mapping[str, str]]
    break_rule: str = ""


def main() -> None:
    """Works until standard input ends."""
    task = cattrs.structure(json.loads(sys.stdin.readline()), Task)
    rehearsal = Together([resolve_name(reference)() for reference in task.rehearsals])
    rehearsal.attach(task.shared)
    broken = MIGRATION_BREAKS[task.break_rule] if task.break_rule else Break(text="")
    actuators = [
        broken.actuator(Recorder(actuator, task.seed, Path(task.calls)))
        for actuator in rehearsal.actuators()
    ]
    options = Options(kubeconfig=Path(task.kubeconfig), outcome_events="all")
    manager = manager_for(actuators, [Names(task.drill).type], options, broken.client)
    manager.start()
    if not manager.wait_synced(_SYNC_SECONDS):
        sys.exit(f"not synced within {_SYNC_SECONDS:.0f} s")
    sys.stdout.write(f"{WORKING}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
