"""The drill from start to end: set up, get stuck, force, collect evidence."""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from actuator.errors import ActuatorError, ApiError, ConfigurationError
from actuator.interface import CONFIG_MAPS, kind_of, resource_of
from actuator.meta import Kind, Raw
from generic.testing.drill import bystanders
from generic.testing.drill.evidence import Act, Evidence, Life
from generic.testing.drill.foreign import foreign_world
from generic.testing.drill.inventory import check_types, clear, plan, remaining_objects, spoiled
from generic.testing.drill.judge import check_tags
from generic.testing.drill.observe import Observer, read_records
from generic.testing.drill.readiness import Readiness, Stopped, hopeless_after
from generic.testing.drill.settings import DrillSettings, Watcher
from generic.testing.drill.world import DrillWorld, beside, embedded_world
from generic.testing.garden import Garden, SeedShoot
from generic.testing.garden.order import AFTERWARDS, DELETION, FORCED, in_stages
from generic.testing.polling import parallel, wait_while
from generic.testing.rehearsal import CombinedRehearsal

_DELETIONS = "actuator_deletions_total"
_LAST_WORD = 5.0
"""Seconds that a manager has to report the outcome, once the object is released."""
_GARBAGE_SECONDS = 8.0
"""The simulated garbage collector has deleted what is unused by then."""


def drill(
    settings: DrillSettings,
    rehearsal: CombinedRehearsal,
    watcher: Watcher,
    course: "Callable[..., DrillRun]",
) -> Evidence:
    """Run the procedure that `course` makes, and return the evidence. Always cleans up.

    Raises ActuatorError or ApiError if the drill could not run.
    """
    began = time.monotonic()
    if settings.kubeconfig is None:
        opening = embedded_world(rehearsal, settings, watcher.say)
    else:
        seed = (settings.kubeconfig, settings.context)
        opening = foreign_world(rehearsal, *seed, watcher.say)
    with opening as world:
        run = course(settings, rehearsal, watcher, world)
        run.rehearse()
        run.evidence.seconds = time.monotonic() - began
        return run.evidence


class DrillRun:
    """The steps of one drill, and their common state."""

    def __init__(
        self,
        settings: DrillSettings,
        rehearsal: CombinedRehearsal,
        watcher: Watcher,
        world: DrillWorld,
    ) -> None:
        self._settings = settings
        self._rehearsal = rehearsal
        self._watcher = watcher
        self._world = world
        self._kinds = {kind.name: kind for kind in world.kinds}
        self._garden = Garden(world.admin)
        bad = world.names.shoot("bad", rehearsal.region)
        plain = [*world.names.shoots(settings.shoots, rehearsal.region), bad]
        *self._shoots, self._bad = [world.names.documented(s, rehearsal.cluster) for s in plain]
        kinds = list(map(kind_of, world.actuators))
        selector = world.names.selector
        self._observer = Observer(world.direct, kinds, selector, [bad.technical_id])
        self._cleared = [*self._shoots, self._bad]
        self._readiness = Readiness(watcher.failing, hopeless_after(rehearsal.with_shoot_api))
        self.evidence = Evidence(
            **settings.facts(world.names, rehearsal),
            target=world.target,
            manager=beside(world.names) if world.target.context else "",
            path=settings.path,
        )

    def rehearse(self) -> None:
        """Run the whole procedure, and collect the evidence."""
        names = self._world.names
        manifests = self._rehearsal.manifests(names.rehearsed(self._shoots[0]))
        check_types(manifests, self._world.actuators, names.type)
        with self._observer.watching():
            try:
                self.play()
            except ConfigurationError:
                raise
            except (Stopped, ActuatorError, ApiError) as error:
                self.evidence.stopped = str(error)
                self.act(f"The drill ends: {error}")
            self._world.trouble.end()
            # An object may be deleted before the manager reports its outcome.
            released = {life.uid for life in self._lives() if life.released is not None}
            wait_while(lambda: list(released - self._claimed().keys()), _LAST_WORD, every=0.1)
        self._observer.tell(self.evidence)
        self.take_stock()

    @property
    def cause(self) -> str:
        """The rehearsal's scenario that breaks the outside world: the given or the first one."""
        given = self._settings.scenario
        known = self._rehearsal.scenarios
        return given if given in known else next(iter(known))

    def act(self, text: str) -> None:
        """Tell the watcher and the evidence about a step that begins."""
        self._watcher.say(text)
        self.evidence.acts.append(Act(at=self._observer.now(), text=text))

    def inject_failure(self, before: str = "") -> None:
        """Cause the failure of the scenario; the evidence names it, after the text `before`."""
        self.evidence.scenario_text = before + self._rehearsal.scenarios[self.cause]
        self.act(self.evidence.scenario_text)
        self._rehearsal.inject_failure(self.cause)

    def start_manager(self) -> None:
        """Start the manager under test, and wait until its caches are filled."""
        self.act("Starting the manager")
        self._world.manager.start()
        self._world.manager.wait_synced()

    def play(self) -> None:
        """Let shoots get stuck in deletion, then force-delete them."""
        self.start_manager()
        self.set_up()
        self.get_stuck()
        self.force()

    def set_up(self) -> None:
        """Create working shoots, each with external objects, and one that cannot work."""
        self.act(f"Creating {len(self._shoots)} shoots, and an invalid one")
        plans = {shoot.technical_id: self._plan(shoot) for shoot in self._shoots}
        parallel([*self._shoots, self._bad], self._garden.create_namespace)
        spoil = self._rehearsal.spoil
        self._deploy(spoiled(self._plan(self._bad), self._world.kinds, spoil))
        parallel(
            self._shoots, lambda s: bystanders.place(self._world.admin, s.technical_id, s.labels)
        )
        for step in range(max(map(len, plans.values()))):

            def deploy(shoot: SeedShoot, step: int = step) -> None:
                self._deploy(plans[shoot.technical_id][step])

            parallel(self._shoots, deploy)
            try:
                self._wait("ready", self._lives(), self._is_ready)
            except Stopped:
                parallel(self._shoots, self._look_at_bystanders)  # it releases them
                raise
        self.evidence.resources_before = list(self._rehearsal.remaining_resources())
        check_tags(self._rehearsal.title, self.evidence.resources_before)

    def _is_ready(self, life: Life) -> bool:
        self.check_readiness(self._shoots)
        return life.ready is not None

    def check_readiness(self, shoots: Sequence[SeedShoot]) -> None:
        """Show the errors of these shoots; raise Stopped if none of them can become ready."""
        names = [shoot.technical_id for shoot in shoots]
        self._readiness.check(self._observer.lives, names, self._observer.now())

    def get_stuck(self, before: str = "") -> None:
        """Break the outside world and delete the shoots, so that they get stuck.

        gardenlet deletes stage by stage: the first stage that is stuck blocks the later ones.
        `before` is a text about what the drill did before.
        """
        self.inject_failure(before)
        self._world.trouble.begin()
        parallel([*self._shoots, self._bad], self._garden.mark_deleted)
        for stage in in_stages(DELETION, self._world.kinds):
            names = ", ".join(kind.name for kind in stage)
            self.act(f"Deleting the {names} objects of the shoots")
            lives = self._of(stage, self._lives())
            self._delete(lives)
            self._wait("stuck", lives, lambda life: bool(life.stuck or life.released))
            if any(life.released is None for life in lives if life.kind not in DELETION[0]):
                break  # stuck Bastions block gardenlet's flow and would hide later stages
        self._disturb()
        # Later attempts have ended by now, so the first is counted: its status comes before that.
        self.count_failed()
        self._watcher.stuck([life for life in self._lives() if life.stuck is not None])

    def count_failed(self) -> None:
        """Write the failed deletions, as counted so far, into the evidence."""
        total = self._world.manager.metrics.total
        self.evidence.failed_while_stuck = total(_DELETIONS, "kind", outcome="failed")

    def _disturb(self) -> None:
        """Report a health condition as another controller; wait for updated blocked messages."""
        blocked = [life for life in self._lives() if life.stuck and life.released is None]
        one_of_each = list({life.kind: life for life in blocked}.values())
        for life in one_of_each:
            bystanders.report_health(
                self._world.admin, resource_of(self._kinds[life.kind]), life.namespace, life.name
            )
        self._wait("reporting on", one_of_each, lambda life: bool(life.moved_on or life.released))

    def force(self) -> None:
        """Confirm force deletion as users do; gardenlet then deletes nearly all kinds at once."""
        self.act("Force-deleting the shoots")
        self._world.trouble.begin()
        everything = self._observer.lives
        before, *at_once = [self._of_stage(stage, everything) for stage in FORCED]
        self._force(before)
        parallel([*self._shoots, self._bad], self._garden.force)
        forced = [life for stage in at_once for life in stage]
        self._force(forced)
        for shoot in self._shoots:
            self._look_at_bystanders(shoot)
        self._wait("gone", [*before, *forced], lambda life: life.gone is not None)
        late = [life for stage in AFTERWARDS for life in self._of_stage(stage, everything)]
        if late:
            self._delete_afterwards(late)

    def take_stock(self) -> None:
        """Collect Orphans, remaining objects in the seed and remaining external resources."""
        evidence = self.evidence
        world = self._world
        for shoot in [*self._shoots, self._bad]:
            evidence.records += read_records(world.admin, shoot.technical_id)
        claimed = self._claimed()
        for life in evidence.lives:
            life.outcomes = claimed.get(life.uid, [])
        patience = 0.0 if evidence.stopped else _GARBAGE_SECONDS
        left = wait_while(lambda: list(remaining_objects(world, self._shoots)), patience, every=0.2)
        evidence.remaining_objects = list(left)
        total = world.manager.metrics.total
        evidence.counted = total(_DELETIONS, "outcome")
        evidence.stripped = sum(
            total("actuator_seed_finalizers_stripped_total", "resource").values()
        )
        evidence.removed_externally = sum(
            total("actuator_finalizers_removed_externally_total", "kind").values()
        )
        evidence.requests = total("rest_client_requests_total", "method")
        evidence.resources_after = list(self._rehearsal.remaining_resources())
        if evidence.stopped:
            self._rehearsal.repair_failure()
        evidence.remaining_objects += clear(
            world,
            self._cleared,
            patience=self._settings.patience,
            force=bool(evidence.stopped),
        )

    def _claimed(self) -> dict[str, list[str]]:
        """Return the final outcomes that the manager reported, by uid."""
        claimed: dict[str, list[str]] = {}
        for ended in list(self._world.ended):
            if ended.outcome.final:
                claimed.setdefault(ended.uid, []).append(ended.outcome.value)
        return claimed

    def _plan(self, shoot: SeedShoot) -> list[list[Raw]]:
        """Return a shoot's manifests in stages; the first shoot's have an external finalizer."""
        stages = plan(
            self._rehearsal.manifests(self._world.names.rehearsed(shoot)), self._world.kinds
        )
        if shoot is self._shoots[0]:
            for manifest in (item for stage in stages for item in stage):
                if manifest["kind"] in self._kinds:
                    manifest["metadata"]["finalizers"] = [bystanders.WITNESS]
        return stages

    def _deploy(self, manifests: Iterable[Raw]) -> None:
        for manifest in manifests:
            created = self._garden.deploy(manifest)
            if manifest["kind"] in self._kinds:  # known before the watch reports it
                self._observer.follow(manifest["kind"], created)

    def _delete(self, lives: Sequence[Life], *, force: bool = False) -> None:
        parallel(lives, partial(self._delete_one, force=force))

    def _delete_one(self, life: Life, *, force: bool) -> None:
        if life.made:
            return  # the actuator that created it deletes it
        self._garden.delete(self._kinds[life.kind], life.namespace, life.name, force=force)

    def _force(self, lives: Sequence[Life]) -> None:
        """Force-delete the remaining objects; this must work without the outside world."""
        self._delete([life for life in lives if life.released is None], force=True)
        self._wait("released", lives, lambda life: life.released is not None)

    def _delete_afterwards(self, late: Sequence[Life]) -> None:
        """Delete the kinds without force deletion, which need a working outside world."""
        self.act("Repairing the outside world, and deleting the kinds without force deletion")
        self._rehearsal.repair_failure()
        for stage in in_stages(AFTERWARDS, self._world.kinds):
            lives = self._of(stage, late)
            self._delete(lives)
            self._wait("gone", lives, lambda life: life.gone is not None)

    def _lives(self) -> list[Life]:
        return [life for life in self._observer.lives if not life.bad]

    def _of_stage(self, stage: frozenset[str], lives: Iterable[Life]) -> list[Life]:
        kinds = [kind for found in in_stages([stage], self._world.kinds) for kind in found]
        return self._of(kinds, lives)

    def _of(self, kinds: Iterable[Kind], lives: Iterable[Life]) -> list[Life]:
        names = {kind.name for kind in kinds}
        return [life for life in lives if life.kind in names]

    def _wait(self, what: str, lives: Sequence[Life], reached: Callable[[Life], bool]) -> None:
        """Wait until all have reached the state, or the time is over; the judge checks later."""

        def waiting() -> list[Life]:
            left = [life for life in lives if not reached(life)]
            self._watcher.count(what, len(lives) - len(left), len(lives))
            return left

        if lives:
            wait_while(waiting, self._settings.patience, every=0.1)

    def _look_at_bystanders(self, shoot: SeedShoot) -> None:
        """Check the external objects; then release them, so that namespaces can be deleted."""
        ours = self._lives() if shoot is self._shoots[0] else []
        found = [
            (CONFIG_MAPS, shoot.technical_id, bystanders.NAME),
            *(
                (resource_of(self._kinds[life.kind]), life.namespace, life.name)
                for life in ours
                if life.shoot == shoot.technical_id and not life.made
            ),
        ]
        self.evidence.bystanders += [bystanders.look_at(self._world.admin, *item) for item in found]
