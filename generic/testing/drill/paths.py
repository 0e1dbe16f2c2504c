"""`--path NAME`: shoots run through several of gardenlet's flows, then the rules are checked.

A path is a sequence of steps for all shoots at once, while one more shoot stays unchanged.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from actuator.errors import ActuatorError
from actuator.meta import Raw
from generic.testing.drill.evidence import Bystander
from generic.testing.drill.run import DrillRun
from generic.testing.drill.seeds import other_owners
from generic.testing.garden import GardenletFlows, SeedShoot, ShootState, order
from generic.testing.polling import parallel

PATHS: Mapping[str, str] = {
    "delete": "create delete",
    "hibernate": "create hibernate reconcile delete",
    "delete-hibernated": "create hibernate delete",
    "delete-unfinished": "break create! repair delete",
    "migrate": "create migrate restore delete",
    "delete-migrating": "create begin-migration delete",
    "delete-restoring": "create migrate break restore! repair delete",
    "retry": "create break reconcile! fail repair reconcile delete",
    "retry-delete": "create break delete! fail repair delete",
    "delete-failed": "create break reconcile! fail repair delete",
    "force-delete": "create break delete! fail force-delete repair backups",
    "force-delete-failed": "create break reconcile! fail force-delete repair backups",
    "force-delete-hibernated": "create hibernate break delete! fail force-delete repair backups",
}
"""The steps of each path. `break` and `repair` act outside; a step with `!` must get stuck."""


class PathStep(NamedTuple):
    """A step that gardenlet does."""

    text: str
    """For people; {} stands for the shoots."""
    act: Callable[[GardenletFlows, Sequence[Raw], ShootState], ShootState | None]


STEPS: Mapping[str, PathStep] = {
    "create": PathStep("Creating {}", lambda flow, manifests, _: flow.create(manifests)),
    "reconcile": PathStep("Reconciling {}", lambda flow, manifests, _: flow.reconcile(manifests)),
    "hibernate": PathStep(
        "Hibernating {}", lambda flow, manifests, _: flow.reconcile(manifests, hibernated=True)
    ),
    "delete": PathStep("Deleting {}", lambda flow, manifests, _: flow.delete(manifests)),
    "force-delete": PathStep("Force-deleting {}", lambda flow, *_: flow.force_delete()),
    "backups": PathStep("Deleting the backups of {}", lambda flow, *_: flow.delete_afterwards()),
    "begin-migration": PathStep(
        "Beginning the migration of {}", lambda flow, *_: flow.begin_migration()
    ),
    "migrate": PathStep("Migrating {}", lambda flow, *_: flow.migrate()),
    "restore": PathStep("Restoring {}", lambda flow, *given: flow.restore(*given)),
}


class PathRun(DrillRun):
    """Shoots on one path, and one more shoot that must not be affected."""

    def play(self) -> None:
        """Run the steps in order; a shoot whose step failed continues with the next one."""
        self.start_manager()
        neighbour = self._world.names.shoot("neighbour", self._rehearsal.region)
        self._cleared = [*self._shoots, neighbour]
        namespaces = [shoot.technical_id for shoot in (*self._shoots, neighbour)]
        states: dict[str, ShootState] = {}
        steps = self.evidence.path.partition(": ")[2].split()
        self.evidence.scale = order.SCALE if any("!" in step for step in steps) else None
        if "break" not in steps:
            self.evidence.scenario = ""
            self.evidence.scenario_text = "Nothing outside fails."
        with other_owners(self._world.admin, self._world.actuators, namespaces):
            self._take("create", [neighbour], states)
            for step in steps:
                self._take(step, self._shoots, states)
            until = self._observer.now()
            self._take("delete", [neighbour], states)
        for life in (live for live in self._lives() if live.shoot == neighbour.technical_id):
            problem = None if life.deleted is None or life.deleted >= until else "it was deleted"
            self.evidence.bystanders.append(Bystander(name=life.key, problem=problem))

    def _take(self, step: str, shoots: Sequence[SeedShoot], states: dict[str, ShootState]) -> None:
        names = ", ".join(shoot.name for shoot in shoots)
        match step:
            case "break":
                self.inject_failure()
            case "repair":
                self.act("Repairing the outside world")
                self._rehearsal.repair_failure()
            case "fail":
                self.act(f"Marking {names} as failed")
                parallel(shoots, lambda shoot: self._garden.sync(shoot, "", "Failed"))
            case _:
                text = STEPS[step.rstrip("!")].text.format(names)
                self.act(f"{text}, which must get stuck" if "!" in step else text)
                parallel(shoots, lambda shoot: self._try(step, shoot, shoots, states))
        if step == "create":
            self.evidence.resources_before = list(self._rehearsal.remaining_resources())
        if step == "delete!":
            self.count_failed()

    def _see(self, shoots: Sequence[SeedShoot], _problem: str) -> None:
        self.check_readiness(shoots)

    def _try(
        self,
        step: str,
        shoot: SeedShoot,
        shoots: Sequence[SeedShoot],
        states: dict[str, ShootState],
    ) -> None:
        name, stuck, _ = step.partition("!")
        patience = self._settings.patience
        scale = order.SCALE if stuck else None
        kinds = self._world.kinds
        progress = partial(self._see, shoots) if step == "create" else lambda _: None
        flow = GardenletFlows(
            self._garden, shoot, kinds, patience=patience, progress=progress, scale=scale
        )
        manifests = self._rehearsal.manifests(self._world.names.rehearsed(shoot))
        problem = "did not get stuck" if stuck else ""
        try:
            state = STEPS[name].act(flow, manifests, states.get(shoot.name, ShootState()))
            states.update({} if state is None else {shoot.name: state})
        except ActuatorError as error:
            problem = "" if stuck else str(error)
        if problem:
            self.evidence.unfinished.append(f"{name} of {shoot.name}: {problem}")
