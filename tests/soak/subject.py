"""The manager under test, in a separate process so that its memory can be measured.

    python -m tests.soak.subject KUBECONFIG TYPE FOLDER

Prints "working" once its caches are filled; then reads a script from standard input and plays its
faults in the actuator; runs until that input ends. Its actuator creates files in a folder, and a
ledger of all creations; a listener notes all final outcomes there.
"""

import sys
import threading
import uuid
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from actuator import Actuator, Cluster, Context, ExternalResource
from actuator.v1alpha1 import Infrastructure
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.reconciler.reporter import DeletionEnded, Listener
from generic.serving import logs
from generic.testing.drill.world import manager_for
from hack.faults import FaultStage, FaultyActuator, play
from tests.soak.script import from_json
from tests.support.driver import serving

TYPE = "Soak::Thing"
_BUDGET = 20.0
"""Budget of one force deletion in seconds."""


class Outside:
    """One file for each external resource, named after its object's uid; outlives managers."""

    def __init__(self, folder: Path) -> None:
        self._things = folder / "things"
        self._ledger = folder / "ledger"
        self._things.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()

    def make(self, uid: str) -> str:
        """Return the id of the resource of this uid; create it if missing."""
        with self._lock:
            found = self._of(uid)
            if found:
                return found[0].name
            thing = self._things / f"{uid}.{uuid.uuid4().hex[:8]}"
            with self._ledger.open("a") as ledger:
                ledger.write(f"{uid}\n")
            thing.touch()
            return thing.name

    def remove(self, uid: str) -> None:
        """Remove the resources of this uid."""
        with self._lock:
            for thing in self._of(uid):
                thing.unlink()

    def has(self, name: str) -> bool:
        """Return whether the resource of this id exists."""
        return (self._things / name).exists()

    def all(self) -> list[ExternalResource]:
        """Return all existing resources."""
        return [resource(thing.name) for thing in sorted(self._things.iterdir())]

    def made(self) -> Counter[str]:
        """Return how many resources were ever created for each uid."""
        return Counter(self._ledger.read_text().split() if self._ledger.exists() else ())

    def _of(self, uid: str) -> list[Path]:
        return sorted(self._things.glob(f"{uid}.*"))


class Outcomes:
    """The final outcomes of deletions that a manager reported, in a file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "outcomes"

    def note(self, ended: DeletionEnded) -> None:
        """Write an outcome if it is final; a listener of the manager."""
        if ended.outcome.final:
            with self._file.open("a") as outcomes:
                outcomes.write(f"{ended.uid} {ended.outcome.value}\n")

    def all(self) -> list[tuple[str, str]]:
        """Return uid and outcome of each, in the order of the reports."""
        lines = self._file.read_text().splitlines() if self._file.exists() else ()
        return [(uid, outcome) for uid, _, outcome in (line.partition(" ") for line in lines)]


def resource(name: str) -> ExternalResource:
    """Return the resource of this id."""
    uid, _, _ = name.partition(".")
    return ExternalResource(type=TYPE, id=name, tags={"uid": uid})


class Things(Actuator[Infrastructure]):
    """One external resource for each object, which remains after a force deletion."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def reconcile(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        ctx.check()
        obj.status.provider_status = {"thing": self._outside.make(obj.metadata.uid)}
        ctx.save(obj)

    def delete(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        ctx.check()
        self._outside.remove(obj.metadata.uid)

    def external_resources(self, obj: Infrastructure) -> Iterable[ExternalResource]:
        known = str((obj.status.provider_status or {}).get("thing", ""))
        yield ExternalResource(type=TYPE, id=known, tags={"uid": obj.metadata.uid})

    def still_exists(self, resource: ExternalResource) -> bool | None:
        return self._outside.has(resource.id) if resource.id else None


def manager_of(
    actuator: Actuator[Infrastructure], type_: str, kubeconfig: Path | None, *listeners: Listener
) -> Manager:
    """Return a manager without ports that serves objects of this type."""
    options = Options(kubeconfig=kubeconfig, force_delete_budget=_BUDGET)
    return manager_for([actuator], [type_], options, None, *listeners)


def main() -> None:
    """Run until standard input ends."""
    kubeconfig, type_, folder = sys.argv[1:]
    logs.configure("info", "json")
    faulty = FaultyActuator(Things(Outside(Path(folder))))
    manager = manager_of(faulty, type_, Path(kubeconfig), Outcomes(Path(folder)).note)
    with serving(manager) as lines:
        script = from_json(lines.readline())
        play(script, FaultStage(actuators=[faulty]), threading.Event())
    manager.stop()


if __name__ == "__main__":
    main()
