"""Prepares operations for the explorer: one embedded seed, one outside world, many shoots.

Each trial has a shoot and an extension type of its own, so that a manager serves exactly the
trials of its types. All objects that gardenlet creates before the tested kind exist. Only the
tested object carries an external finalizer. Nothing is removed from the seed. The outside world
is new for each operation, since requests to it get slow with many resources.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from actuator.codec import decode
from actuator.interface import Actuator, ExternalResource, kind_of, object_class, resource_of
from actuator.meta import ForceSource, Kind, Raw
from generic.manager.options import Options
from generic.reconciler.operation import Operation
from generic.testing.drill.bystanders import WITNESS
from generic.testing.drill.inventory import check_types
from generic.testing.drill.kills.calls import Kill
from generic.testing.drill.kills.processes import ProcessEnd
from generic.testing.drill.names import Names
from generic.testing.drill.seeds import embedded_seed, other_owners
from generic.testing.drill.world import manager_for, outside, serving
from generic.testing.explorer.judge import Case, ExplorerFailure, unfinished_because
from generic.testing.garden import SHOOT, Garden, GardenletFlows, SeedShoot
from generic.testing.garden.cleanup import OWN, Own
from generic.testing.garden.flows import still_there
from generic.testing.garden.order import CREATION, in_stages
from generic.testing.garden.state import collect, put_back
from generic.testing.polling import parallel
from generic.testing.rehearsal import CombinedRehearsal, name_of, types_of

_PREPARED = 180.0
"""Time limit in seconds for the steps that prepare a trial, before any kill."""


@attrs.define(kw_only=True)
class Ground:
    """The seed and outside world of all trials. `patience`: seconds allowed for an operation."""

    rehearsal: CombinedRehearsal
    garden: Garden
    actuators: Sequence[Actuator[Any]]
    kubeconfig: Path
    folder: Path
    patience: float
    _numbers: Iterator[int] = attrs.field(factory=itertools.count)
    _base: Names = attrs.field(factory=Names)

    @property
    def kinds(self) -> list[Kind]:
        """The kind of each actuator."""
        return [kind_of(actuator) for actuator in self.actuators]

    def names(self) -> Names:
        """Return unused names."""
        return Names(f"{self._base.id}-{next(self._numbers)}")

    def renew(self) -> None:
        """Replace the outside world by an empty one."""
        self.rehearsal.stop()
        directory = self.folder / f"outside-{next(self._numbers)}"
        directory.mkdir()
        self.rehearsal.start(directory)
        self.actuators = self.rehearsal.actuators()

    def serving(self, types: Sequence[str]) -> AbstractContextManager[None]:
        """Run a manager for these extension types, without kills, until the context is left."""
        options = Options(kubeconfig=self.kubeconfig)
        return serving(manager_for(self.actuators, types, options))

    def outside(self, shoots: Sequence[str]) -> Mapping[str, list[ExternalResource]]:
        """Return the external resources by the technical ID of the shoot that their tags name."""
        found: dict[str, list[ExternalResource]] = {shoot: [] for shoot in shoots}
        for thing in self.rehearsal.remaining_resources():
            texts = (text for pair in thing.tags.items() for text in pair)
            for word in {word for text in texts for word in text.split("/")}:
                if word in found:
                    found[word].append(thing)
        return found


@contextmanager
def open_ground(
    rehearsal: CombinedRehearsal, folder: Path, patience: float, say: Callable[[str], None]
) -> Iterator[Ground]:
    """Start a seed and an outside world; managers run under the generated Role, not as admin.

    Raises ActuatorError or ApiError.
    """
    names = Names()
    with outside(rehearsal, say):
        actuators = rehearsal.actuators()
        shoot = names.rehearsed(names.shoot("x", rehearsal.region))
        check_types(rehearsal.manifests(shoot), actuators, names.type)
        say("Starting the embedded cluster: etcd, kube-apiserver, kube-controller-manager")
        with embedded_seed(rehearsal, say) as seed:
            user = seed.admit(manager_for(actuators, [names.type], Options()), names.type)
            yield Ground(
                rehearsal=rehearsal,
                garden=Garden(seed.admin),
                actuators=actuators,
                kubeconfig=user,
                folder=folder,
                patience=patience,
            )


@attrs.define
class Trial:
    """One shoot, and its kill (None: the calls are only counted)."""

    kill: Kill | None
    names: Names
    shoot: SeedShoot
    manifests: Sequence[Raw]
    case: Case
    end: ProcessEnd = ProcessEnd.STOPPED
    problems: list[str] = attrs.field(factory=list)

    @property
    def failure(self) -> ExplorerFailure:
        """The problems found."""
        return ExplorerFailure(at=str(self.kill or ""), problems=list(self.problems))


def operations_of(kind: Kind) -> list[Operation]:
    """Return the operations that can be requested for an object of the kind."""
    found = [Operation.RECONCILE, Operation.DELETE]
    if kind.force_from is not ForceSource.NONE:
        found.append(Operation.FORCE_DELETE)
    return [*found, Operation.MIGRATE, Operation.RESTORE] if kind.migratable else found


class ExplorerStage:
    """Prepares the trials of one operation of one actuator, given by its name."""

    def __init__(self, ground: Ground, name: str, operation: Operation) -> None:
        self.operation = operation
        self.makes: Counter[str] = Counter()
        """The external resources that an undisturbed operation creates, by type."""
        self._ground = ground
        self._garden = ground.garden
        self._actuator = next(
            actuator for actuator in ground.actuators if name_of(actuator) == name
        )
        self.kind = kind_of(self._actuator)
        part = ground.rehearsal.part_of(name)
        self._is_exact = self.kind.name in part.reports_exactly
        made = part.makes.get(self.kind.name, ())
        makers = [actuator for actuator in ground.actuators if kind_of(actuator).name in made]
        self.actuators = [name, *map(name_of, makers)]
        """The names of the actuators that run."""
        stages = list(in_stages(CREATION, ground.kinds))
        own = next(number for number, stage in enumerate(stages) if self.kind in stage)
        self._needed = [kind for stage in stages[:own] for kind in stage]

    def prepare(self, kills: Sequence[Kill | None]) -> list[Trial]:
        """Create a shoot for each and request the operation. Raises ActuatorError or ApiError."""
        trials = [self._new_trial(kill) for kill in kills]
        types = [trial.names.type for trial in trials]
        with self.owners(trials), self._ground.serving(types):
            parallel(trials, self._create_needed)
            for trial, found in self.outside(trials):
                trial.case.others = found
            if self.operation is not Operation.RECONCILE:
                parallel(trials, self._create)
            for trial, found in self.outside(trials):
                trial.case.before = found
            if self.operation is Operation.RESTORE:
                parallel(trials, self._move)
        parallel(trials, self._ask)
        return trials

    def owners(self, trials: Sequence[Trial]) -> AbstractContextManager[object]:
        """Simulate the external owners of seed objects' finalizers, except in force deletions."""
        if self.operation is Operation.FORCE_DELETE:
            return nullcontext()
        namespaces = [trial.shoot.technical_id for trial in trials]
        return other_owners(self._garden.client, self._ground.actuators, namespaces)

    def outside(self, trials: Sequence[Trial]) -> Iterator[tuple[Trial, list[ExternalResource]]]:
        """Return each trial with the external resources of its shoot, read once for all."""
        found = self._ground.outside([trial.shoot.technical_id for trial in trials])
        return ((trial, found[trial.shoot.technical_id]) for trial in trials)

    def objects(self, trial: Trial) -> list[Raw]:
        """Return the current objects under test of the trial."""
        return self._garden.objects(self.kind, trial.shoot)

    def reported(self, trial: Trial) -> list[ExternalResource] | None:
        """Return the external resources that the objects report; None if more may be reported."""
        if not self._is_exact:
            return None
        objects = (decode(object_class(self._actuator), obj) for obj in self.objects(trial))
        return [thing for obj in objects for thing in self._actuator.external_resources(obj)]

    def unfinished(self, trial: Trial) -> list[str]:
        """Return why the operation is not finished, for each object."""
        missing = partial(unfinished_because, self.operation, self.kind.finalizer)
        found = ((obj["metadata"]["name"], missing(obj)) for obj in self.objects(trial))
        return [f"{name}: {why}" for name, why in found if why is not None]

    def release(self, trial: Trial) -> list[str]:
        """Remove the external finalizer; return what a deletion still waits for."""
        self._release(trial)
        if not self.operation.deletes:
            return []
        return [
            f"{obj['metadata']['name']} is still there, with {obj['metadata'].get('finalizers')}"
            for obj in self.objects(trial)
        ]

    def _new_trial(self, kill: Kill | None) -> Trial:
        names = self._ground.names()
        rehearsal = self._ground.rehearsal
        shoot = names.documented(names.shoot("x", rehearsal.region), rehearsal.cluster)
        manifests = self._ground.rehearsal.manifests(names.rehearsed(shoot))
        tested = [manifest for manifest in manifests if manifest["kind"] == self.kind.name]
        if self.kind.has_operation_annotation:  # else it has no type, and one actuator
            types = types_of(self._actuator, [names.type])
            tested = [obj for obj in tested if obj["spec"]["type"] in types]
        for manifest in tested:
            manifest["metadata"]["finalizers"] = [WITNESS]
        others = [manifest for manifest in manifests if manifest["kind"] != self.kind.name]
        case = Case(operation=self.operation, finalizer=self.kind.finalizer, makes=self.makes)
        return Trial(kill, names, shoot, [*others, *tested], case)

    def _flow(self, trial: Trial) -> GardenletFlows:
        return GardenletFlows(self._garden, trial.shoot, self._needed, patience=_PREPARED)

    def _create_needed(self, trial: Trial) -> None:
        """Create namespace, Cluster, Secrets etc., and extension objects of earlier stages."""
        later = {kind.name for kind in self._ground.kinds if kind not in self._needed}
        self._flow(trial).create(
            [manifest for manifest in trial.manifests if manifest["kind"] not in later]
        )

    def _create(self, trial: Trial) -> None:
        self._flow(trial).deploy([self.kind], trial.manifests, "reconcile")
        self._wait(trial, Operation.RECONCILE)

    def _move(self, trial: Trial) -> None:
        """Migrate the object away and put its state back, so that only the restore is missing."""
        flow = self._flow(trial)
        flow.ask([self.kind], "migrate")
        self._wait(trial, Operation.MIGRATE)
        state = collect(self._garden, trial.shoot, [self.kind])
        flow.remove([self.kind])
        self._release(trial)
        flow.wait([self.kind], still_there)
        for item in OWN["kept-machines"]:
            item.act(self._garden.client, trial.shoot.technical_id)
        flow.deploy([self.kind], trial.manifests, "wait-for-state")
        for obj in self.objects(trial):
            known = state.of(self.kind.name, obj["metadata"]["name"])
            put_back(self._garden.client, self.kind, obj, known)

    def _ask(self, trial: Trial) -> None:
        """Request the operation as gardenlet does."""
        flow = self._flow(trial)
        forced = self.operation is Operation.FORCE_DELETE
        if self.operation is Operation.RECONCILE:
            flow.deploy([self.kind], trial.manifests, "reconcile")
        elif self.operation.deletes:
            (self._garden.force if forced else self._garden.mark_deleted)(trial.shoot)
            flow.remove([self.kind], force=forced)
        else:
            flow.ask([self.kind], self.operation.value)

    def _release(self, trial: Trial) -> None:
        """Remove the external finalizer."""
        of = [resource_of(self.kind)]
        selector = f"{SHOOT}={trial.shoot.technical_id}"
        witness = Own(of=of, selector=selector, deletes=False, strips=frozenset([WITNESS]))
        witness.act(self._garden.client, "")

    def _wait(self, trial: Trial, operation: Operation) -> None:
        missing = partial(unfinished_because, operation, self.kind.finalizer)
        self._flow(trial).wait([self.kind], missing)
