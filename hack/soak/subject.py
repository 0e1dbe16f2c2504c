"""The manager that is soaked, a process of its own so that its memory is nobody else's.

    python -m hack.soak.subject KUBECONFIG TYPE FOLDER

Says "working" once its caches are filled; plays the script on its standard input, which goes
wrong in the actuator, from the moment it has read it; runs until that input ends.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from pathlib import Path

from actuator import Actuator, Cluster, Context, ExternalResource
from actuator.v1alpha1 import Infrastructure
from generic.controller import logs
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.drill.world import manager_for
from generic.testing.faults import FaultyActuator, Script, Stage, play
from hack.soak.outside import TYPE, Outside

__all__ = ["Things", "manager_of"]

_BUDGET = 20.0
"""Seconds for one force deletion."""


class Things(Actuator[Infrastructure]):
    """One thing outside for each object; a force deletion leaves it where it is."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def reconcile(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        """See Actuator."""
        ctx.check()
        obj.status.provider_status = {"thing": self._outside.make(obj.metadata.uid)}
        ctx.save(obj)

    def delete(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        """See Actuator."""
        ctx.check()
        self._outside.remove(obj.metadata.uid)

    def external_resources(self, obj: Infrastructure) -> Iterable[ExternalResource]:
        """See Actuator."""
        known = str((obj.status.provider_status or {}).get("thing", ""))
        yield ExternalResource(type=TYPE, id=known, tags={"uid": obj.metadata.uid})

    def still_exists(self, resource: ExternalResource) -> bool | None:
        """See Actuator."""
        return self._outside.has(resource.id) if resource.id else None


def manager_of(actuator: Actuator[Infrastructure], type_: str, kubeconfig: Path | None) -> Manager:
    """A manager that listens nowhere and serves objects of this type."""
    options = Options(kubeconfig=kubeconfig, force_delete_budget=_BUDGET)
    return manager_for([actuator], [type_], options)


def main() -> None:
    """Runs until standard input ends."""
    kubeconfig, type_, folder = sys.argv[1:]
    logs.configure("info", "json")
    faulty = FaultyActuator(Things(Outside(Path(folder))))
    manager = manager_of(faulty, type_, Path(kubeconfig))
    manager.start()
    if not manager.wait_synced():
        raise SystemExit("the caches are not filled")
    print("working", flush=True)
    script = Script.from_json(sys.stdin.readline())
    play(script, Stage(actuator=faulty), threading.Event())
    sys.stdin.read()
    manager.stop()


if __name__ == "__main__":
    main()
