"""The drill in a landscape from start to end: create Shoots, let them get stuck, force, look.

The drill acts as the owner of the Shoots, through the garden only. It asks for the force deletion
again and again: gardener-apiserver accepts it once the Shoot shows an error code for which its user
is responsible. If it refuses although the Shoot shows an error, or no error shows in time, the
drill repairs the outside world, as an operator would, and goes on.
"""

import re
from collections.abc import Callable
from functools import partial

from actuator.errors import ApiError
from actuator.interface import ExternalResource, kind_of
from actuator.meta import ForceSource, Raw
from actuator.v1alpha1 import KINDS
from generic.kube.clusters import NAMESPACES
from generic.testing.drill.evidence import Act
from generic.testing.drill.judge import check_tags
from generic.testing.drill.landscape.extensionsdown import (
    SCENARIO,
    TEXT,
    start_extensions,
    stop_extensions,
)
from generic.testing.drill.landscape.rules import ForceAnswer, LandscapeEvidence, ShootStory
from generic.testing.drill.landscape.world import LandscapeWorld
from generic.testing.drill.names import Names
from generic.testing.drill.observe import Observer, read_records
from generic.testing.drill.settings import DrillSettings, Watcher
from generic.testing.landscape.programs import gardener_version
from generic.testing.landscape.users import ShootView, is_ready
from generic.testing.polling import parallel, polling, wait_while
from generic.testing.rehearsal import CombinedRehearsal

CREATE_SECONDS = 900.0
STUCK_SECONDS = 780.0
GONE_SECONDS = 300.0
"""Maximum times of the phases, on a busy machine: gardenlet waits ten minutes for the deletion of
an Infrastructure before it shows an error."""
_FOLLOW = 0.5
_ASK = 2.0
"""Seconds between two looks at a Shoot, and between two requests to force."""
_END_SECONDS = 10.0
"""Maximum time between the end of a Shoot and that of its etcd, on a busy machine."""
_PREFIX = "shoot--"

Reached = Callable[[ShootStory], bool]


def shoot_of(obj: Raw) -> str:
    """Return the technical ID of an object's shoot; "" for an object of the seed itself.

    The name of an object without a namespace, a BackupEntry, has the shoot's uid behind its ID.
    """
    meta = obj["metadata"]
    found = str(meta.get("namespace") or meta["name"].rpartition("--")[0])
    return found if found.startswith(_PREFIX) else ""


def scenarios_of(rehearsal: CombinedRehearsal) -> dict[str, str]:
    """Return the scenarios of a drill in a landscape, with their descriptions."""
    return {**rehearsal.all_scenarios, SCENARIO: TEXT}


class LandscapeRun:
    """The steps of one drill, and their common state."""

    def __init__(
        self,
        settings: DrillSettings,
        rehearsal: CombinedRehearsal,
        world: LandscapeWorld,
        watcher: Watcher,
        prefix: str = "s",
    ) -> None:
        """The Shoots have the names `prefix` and a number."""
        self._settings = settings
        self._rehearsal = rehearsal
        self._watcher = watcher
        self._world = world
        self._seed = world.landscape.seeds[0].client
        self._broken = "The outside world"
        self._break: Callable[[], None] = partial(rehearsal.break_where_known, settings.scenario)
        self._repair: Callable[[], None] = rehearsal.repair_failure
        if settings.scenario == SCENARIO:
            self._broken = "The extensions"
            self._break = partial(stop_extensions, self._seed)
            self._repair = partial(start_extensions, self._seed)
        kinds = [*map(kind_of, rehearsal.actuators())]
        served = {kind.name for kind in kinds}
        kinds += [cls.KIND for cls in KINDS if cls.KIND.name not in served]
        never = [kind.name for kind in kinds if kind.force_from is ForceSource.NONE]
        self._never_forced = frozenset(never)
        self._observer = Observer(self._seed, kinds, "", shoot_of=shoot_of)
        names = [f"{prefix}{number}" for number in range(1, settings.shoots + 1)]
        self._stories = {name: ShootStory(name=name) for name in names}
        self._owners = {name: world.owner(name) for name in names}
        self._baseline: list[ExternalResource] = []
        self.evidence = LandscapeEvidence(
            **settings.facts(Names(), rehearsal),
            gardener=gardener_version(),
            shoots=list(self._stories.values()),
        )

    def rehearse(self) -> None:
        """Run the whole procedure, and collect the evidence."""
        self._baseline = list(self._rehearsal.remaining_resources())
        follow = polling(self._look, "shoots", every=_FOLLOW)
        with self._observer.watching(), follow:
            if self._create():
                self._get_stuck()
                self._force()
            self._take_stock()
            self._repair()  # the next drill in this landscape begins with a working world
            self._await_never_forced()
        self._observer.tell(self.evidence)

    def _create(self) -> bool:
        """Create the Shoots; return whether all became ready."""
        self._act(f"Creating {len(self._stories)} Shoots in the garden")
        for name, owner in self._owners.items():
            self._stories[name].created = self._observer.now()
            owner.create(self._world.installed.offer.shoot(name))
        self._wait("ready", CREATE_SECONDS, lambda story: story.ready is not None)
        self.evidence.resources_before = self._new_outside()
        check_tags(self._rehearsal.title, self.evidence.resources_before)
        return all(story.ready is not None for story in self._stories.values())

    def _get_stuck(self) -> None:
        """Break the outside world and delete the Shoots, as their owner."""
        parallel(list(self._owners), self._ask)  # refused: they are not being deleted
        self._break()
        self.evidence.scenario_text = scenarios_of(self._rehearsal)[self._settings.scenario]
        self._act(self.evidence.scenario_text)
        for name, owner in self._owners.items():
            self._stories[name].deleted = self._observer.now()
            owner.delete()

    def _force(self) -> None:
        """Ask for the force deletion until it is accepted; then wait until all Shoots are gone."""
        self._wait("forced or refused", STUCK_SECONDS, self._is_answered)
        left = [story.name for story in self._stories.values() if not _is_over(story)]
        if left:
            self._repair()
            why = f"{', '.join(left)} had no code that allows a force"
            text = f"{self._broken} had to be repaired: {why}"
            self.evidence.repairs.append(text)
            self._act(text)
            self._wait("forced", STUCK_SECONDS, self._is_forced)
        self._wait("gone", GONE_SECONDS, lambda story: story.gone is not None)

    def _await_never_forced(self) -> None:
        """Wait for objects without a force deletion: gardenlet deletes them after their Shoot."""
        gone = {story.technical_id for story in self._stories.values() if story.gone is not None}

        def left() -> list[str]:
            lives = [live for live in self._observer.lives if live.kind in self._never_forced]
            return [live.key for live in lives if live.shoot in gone and live.gone is None]

        if waiting := left():
            self._act(f"Never force-deleted, they end in a working world: {', '.join(waiting)}")
            wait_while(left, GONE_SECONDS, every=_ASK)

    def _is_forced(self, story: ShootStory) -> bool:
        """Ask for the force deletion of a Shoot, unless it is accepted already."""
        if not _is_over(story):
            self._ask(story.name)
        return _is_over(story)

    def _is_answered(self, story: ShootStory) -> bool:
        """Like `_is_forced`; also if it is refused although the Shoot showed its error before."""
        shows_error = story.shows_error
        return self._is_forced(story) or shows_error

    def _ask(self, name: str) -> None:
        """Ask gardener-apiserver for the force deletion, and note a new answer."""
        story = self._stories[name]
        owner = self._owners[name]
        refusal = owner.force_delete()
        view = owner.view()  # afterwards: gardenlet may have written the code in between
        codes = ", ".join(view.codes if view else story.codes) or "no code"
        doing = f"{view.operation} {view.state}, {codes}" if view else "gone"
        now = self._observer.now()
        if not story.answers or story.answers[-1].refusal != refusal:
            story.answers.append(ForceAnswer(at=now, while_=doing, refusal=refusal))
            said = f"refused: {refusal}" if refusal else f"accepted ({codes})"
            self._note(story, f"force deletion {said}")
        if not refusal:
            story.forced = now

    def _look(self) -> None:
        """Look at each Shoot once, in the thread that follows them. Raises ApiError."""
        for name, story in self._stories.items():
            if story.created and story.gone is None:
                self._see(story, self._owners[name].view())

    def _see(self, story: ShootStory, view: ShootView | None) -> None:
        now = self._observer.now()
        if view is None:
            if story.deleted is not None:
                story.gone = now
                self._note(story, "gone")
            return
        story.technical_id = view.technical_id or story.technical_id
        story.shows_error = bool(view.errors)
        story.codes += [code for code in view.codes if code not in story.codes]
        if is_ready(view) and not view.deleting:
            story.ready = story.ready or now
        said = [
            moment.text for moment in story.moments if not moment.text.startswith("force deletion")
        ]
        if not said or said[-1] != str(view):
            self._note(story, str(view))

    def _note(self, story: ShootStory, text: str) -> None:
        story.moments.append(Act(at=self._observer.now(), text=text))
        self._watcher.say(f"{story.name}: {text}")

    def _act(self, text: str) -> None:
        act = Act(at=self._observer.now(), text=text)
        self.evidence.acts.append(act)
        for story in self._stories.values():
            story.moments.append(act)
        self._watcher.say(text)

    def _wait(self, what: str, seconds: float, reached: Reached) -> bool:
        """Wait until all Shoots are as wanted, or the time is over; the judge checks later."""

        def waiting() -> list[ShootStory]:
            left = []
            for story in self._stories.values():
                try:
                    left += [] if reached(story) else [story]
                except ApiError:
                    left.append(story)
            self._watcher.count(what, len(self._stories) - len(left), len(self._stories))
            return left

        return not wait_while(waiting, seconds, every=_ASK)

    def _new_outside(self) -> list[ExternalResource]:
        """Return the external resources that did not exist before the Shoots."""
        return [
            item for item in self._rehearsal.remaining_resources() if item not in self._baseline
        ]

    def _take_stock(self) -> None:
        evidence = self.evidence
        ids = [story.technical_id for story in self._stories.values() if story.technical_id]
        namespaces = {obj["metadata"]["name"] for obj in self._seed.list(NAMESPACES)}
        for id in ids:
            evidence.records += read_records(self._seed, id)
            if id in namespaces:
                evidence.remaining_objects.append(f"namespace {id}")
        evidence.resources_after = self._new_outside()
        owned = re.compile(rf"\b({'|'.join(ids) or '-'})(?![a-z0-9])")

        def processes() -> list[str]:
            alive = self._world.landscape.processes.alive()
            return [name for name in alive if owned.search(name)]

        evidence.processes = list(wait_while(processes, _END_SECONDS, every=_FOLLOW))


def _is_over(story: ShootStory) -> bool:
    """Whether the force deletion was accepted, or is not needed any more."""
    return story.forced is not None or story.gone is not None
