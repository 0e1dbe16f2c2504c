"""`--path NAME`: shoots run through several of gardenlet's flows, then the rules are checked.

A path is a sequence of steps for all shoots at once, while one more shoot stays unchanged.
"""

from collections.abc import Callable, Mapping, Sequence

from actuator.errors import ActuatorError
from actuator.meta import Raw
from generic.testing.drill.evidence import Bystander
from generic.testing.drill.run import Run
from generic.testing.drill.seeds import other_owners
from generic.testing.garden import Flow, Shoot, ShootState
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

_STUCK = 6.0
"""Seconds that gardenlet waits in a step that must get stuck."""
STEPS: Mapping[str, Callable[[Flow, Sequence[Raw], ShootState], ShootState | None]] = {
    "create": lambda flow, manifests, _: flow.create(manifests),
    "reconcile": lambda flow, manifests, _: flow.reconcile(manifests),
    "hibernate": lambda flow, manifests, _: flow.reconcile(manifests, hibernated=True),
    "delete": lambda flow, manifests, _: flow.delete(manifests),
    "force-delete": lambda flow, *_: flow.force_delete(),
    "backups": lambda flow, *_: flow.delete_afterwards(),
    "begin-migration": lambda flow, *_: flow.begin_migration(),
    "migrate": lambda flow, *_: flow.migrate(),
    "restore": lambda flow, manifests, state: flow.restore(manifests, state),
}


class PathRun(Run):
    """Shoots on one path, and one more shoot that must not be affected."""

    def play(self) -> None:
        """Run the steps in order; a shoot whose step failed continues with the next one."""
        self.start_manager()
        neighbour = self._world.names.shoot("neighbour", self._rehearsal.region)
        namespaces = [shoot.technical_id for shoot in (*self._shoots, neighbour)]
        states: dict[str, ShootState] = {}
        with other_owners(self._world.admin, self._world.actuators, namespaces):
            self._take("create", [neighbour], states)
            for step in self.evidence.path.partition(": ")[2].split():
                self._take(step, self._shoots, states)
            for life in (one for one in self._lives() if one.shoot == neighbour.technical_id):
                problem = "it was deleted" if life.stuck or life.released else None
                self.evidence.bystanders.append(Bystander(name=life.key, problem=problem))
            self._take("delete", [neighbour], states)

    def _take(self, step: str, shoots: Sequence[Shoot], states: dict[str, ShootState]) -> None:
        self._watcher.say(f"{step}: {', '.join(shoot.name for shoot in shoots)}")
        match step:
            case "break":
                self._rehearsal.break_outside(self._settings.scenario)
            case "repair":
                self._rehearsal.mend_outside()
            case "fail":
                parallel(shoots, lambda shoot: self._garden.sync(shoot, "", "Failed"))
            case _:
                parallel(shoots, lambda shoot: self._try(step, shoot, states))
        self._observer.look()  # objects of this step may be gone before the next poll
        if step == "create":
            self.evidence.outside_before = list(self._rehearsal.left_outside())

    def _try(self, step: str, shoot: Shoot, states: dict[str, ShootState]) -> None:
        name, stuck, _ = step.partition("!")
        patience = _STUCK if stuck else self._settings.patience
        flow = Flow(self._garden, shoot, self._world.kinds, patience=patience)
        manifests = self._rehearsal.manifests(self._world.names.rehearsed(shoot))
        problem = "did not get stuck" if stuck else ""
        try:
            state = STEPS[name](flow, manifests, states.get(shoot.name, ShootState()))
            states.update({} if state is None else {shoot.name: state})
        except ActuatorError as error:
            problem = "" if stuck else str(error)
        if problem:
            self.evidence.unfinished.append(f"{name} of {shoot.name}: {problem}")
