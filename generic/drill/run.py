"""The drill, told from start to end: set up, get stuck, force, take stock, judge."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import attrs

from actuator.errors import NotFound
from actuator.interface import Resource, resource_of
from actuator.meta import Kind, Raw, format_time
from generic.clock import SystemClock
from generic.drill.breaks import BREAKS, Break
from generic.drill.evidence import Bystander, Evidence, Life
from generic.drill.observe import Observer, OutcomeLog, read_records
from generic.drill.world import World, open_world
from generic.finalizers import take_off
from generic.garden import Garden, Shoot
from generic.rehearsal import Rehearsal, RehearsedShoot

__all__ = ["WITNESS", "Settings", "Watcher", "drill"]

WITNESS = "drill.actuator.extensions.gardener.cloud/witness"
_CONFIGMAPS = Resource("v1", "configmaps")
_BYSTANDER = "bystander"
T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Settings:
    """What is rehearsed, and where. `patience`: seconds that each phase may take."""

    shoots: int = 10
    scenario: str = "credentials-revoked"
    kubeconfig: Path | None = None
    context: str | None = None
    break_rule: str | None = None
    patience: float = 60.0

    @property
    def broken(self) -> Break:
        """What is broken on purpose, if anything."""
        return BREAKS[self.break_rule] if self.break_rule else Break(text="")


class Watcher:
    """Hears of a drill's progress; this one tells nobody."""

    def say(self, text: str) -> None:
        """Something happens."""

    def count(self, what: str, done: int, total: int) -> None:
        """So many of the objects have come so far."""

    def stuck(self, lives: Sequence[Life]) -> None:
        """These are stuck, for the reasons they show."""


def drill(settings: Settings, rehearsal: Rehearsal, watcher: Watcher) -> Evidence:
    """Rehearses a force deletion and returns what was seen. Cleans up whatever happens.

    Raises ActuatorError or ApiError where the drill could not be held at all.
    """
    began = time.monotonic()
    where = (settings.kubeconfig, settings.context)
    with open_world(rehearsal, settings.broken, *where, watcher.say) as world:
        run = _Run(settings, rehearsal, watcher, world)
        watcher.say("Starting the manager")
        world.manager.start()
        world.manager.wait_synced()
        run.evidence.started = format_time(SystemClock().now())
        with run.watching():
            run.set_up()
            run.get_stuck()
            run.force()
            run.take_stock()
        run.evidence.seconds = time.monotonic() - began
        return run.evidence


class _Run:
    """The steps of one drill, and what they share."""

    def __init__(
        self, settings: Settings, rehearsal: Rehearsal, watcher: Watcher, world: World
    ) -> None:
        self._settings = settings
        self._rehearsal = rehearsal
        self._watcher = watcher
        self._world = world
        self._garden = Garden(world.admin)
        self._observer = Observer(world.admin, world.kinds, world.selector)
        self._outcomes = OutcomeLog()
        names = [f"s{number + 1}" for number in range(settings.shoots)]
        self._shoots = [self._shoot(name) for name in names]
        self._bad = self._shoot("bad")
        self.evidence = Evidence(
            drill=world.id,
            title=rehearsal.title,
            scenario=settings.scenario,
            scenario_text=rehearsal.scenarios[settings.scenario],
            started="",
            finalizers={kind.name: kind.finalizer for kind in world.kinds},
        )

    def _shoot(self, name: str) -> Shoot:
        return Shoot(
            technical_id=f"shoot--drill-{self._world.id}--{name}",
            name=name,
            project=f"drill-{self._world.id}",
            region=self._rehearsal.region,
            labels=self._world.labels,
        )

    def watching(self) -> _Watching:
        """While it is open, everything that happens is noted."""
        return _Watching(self._observer, self._outcomes)

    def set_up(self) -> None:
        """Shoots that work, each with somebody else's things inside, and one that never will."""
        self._watcher.say(f"Creating {len(self._shoots)} shoots, and one that cannot work")
        plans = {shoot.technical_id: self._plan(shoot) for shoot in self._shoots}
        for_each([*self._shoots, self._bad], self._garden.create_namespace)
        self._deploy(_spoiled(self._plan(self._bad)), bad=True)
        for_each(self._shoots, self._place_bystander)
        for step in range(max(map(len, plans.values()))):

            def deploy(shoot: Shoot, step: int = step) -> None:
                self._deploy(plans[shoot.technical_id][step])

            for_each(self._shoots, deploy)
            self._wait("ready", lambda life: life.ready is not None)
        self.evidence.outside_before = list(self._rehearsal.left_outside())

    def get_stuck(self) -> None:
        """The outside breaks, users delete their shoots, and nothing moves any more."""
        self._watcher.say(self.evidence.scenario_text)
        self._rehearsal.break_outside(self._settings.scenario)
        for_each([*self._shoots, self._bad], self._garden.mark_deleted)
        last = self._world.kinds[-1]  # gardenlet deletes in the reverse order of creation
        self._watcher.say(f"Deleting the shoots: their {last.name} objects first")
        self._delete([life for life in self._lives() if life.kind == last.name])
        self._wait("stuck", lambda life: life.stuck is not None, kind=last)
        self.evidence.failed_while_stuck = self._counted("failed", "kind")
        self._watcher.stuck([life for life in self._lives() if life.stuck is not None])

    def force(self) -> None:
        """The users confirm force deletion; gardenlet deletes everything at once."""
        self._watcher.say("Force-deleting")
        lives = list(self._observer.lives.values())
        for life in lives:
            life.forced = self._observer.now()
        for_each([*self._shoots, self._bad], self._garden.force)
        self._delete([life for life in lives if life.deleted is None])
        self._wait("released", lambda life: life.released is not None, everyone=True)
        self._look_at_bystanders()
        self._wait("gone", lambda life: life.gone is not None, everyone=True)

    def take_stock(self) -> None:
        """What is on record, what is left in the seed, what is left outside."""
        evidence, world = self.evidence, self._world
        for shoot in [*self._shoots, self._bad]:
            records, strips = read_records(world.admin, shoot.technical_id)
            evidence.records += records
            evidence.strips += strips
        evidence.lives = list(self._observer.lives.values())
        for life in evidence.lives:
            life.outcomes = self._outcomes.claimed.get(life.uid, [])
        evidence.leftovers = list(self._leftovers())
        evidence.counted = self._counted(None, "outcome")
        evidence.requests = world.manager.metrics.total("rest_client_requests_total", "method")
        evidence.outside_after = list(self._rehearsal.left_outside())
        for_each([*self._shoots, self._bad], self._garden.finish)

    def _plan(self, shoot: Shoot) -> list[list[Raw]]:
        """What to create for a shoot, step by step; each step ends with an extension object."""
        rehearsed = RehearsedShoot(
            technical_id=shoot.technical_id, type=self._world.type, labels=self._world.labels
        )
        names = {kind.name for kind in self._world.kinds}
        steps: list[list[Raw]] = [[]]
        for manifest in self._rehearsal.manifests(rehearsed):
            if shoot is self._shoots[0] and manifest["kind"] in names:
                manifest["metadata"]["finalizers"] = [WITNESS]
            steps[-1].append(manifest)
            if manifest["kind"] in names:
                steps.append([])
        return steps if steps[-1] else steps[:-1]

    def _deploy(self, manifests: Iterable[Raw], *, bad: bool = False) -> None:
        kinds = {kind.name for kind in self._world.kinds}
        for manifest in manifests:
            created = self._garden.deploy(manifest)
            if manifest["kind"] in kinds:
                self._observer.follow({**created, "kind": manifest["kind"]}, bad=bad)

    def _delete(self, lives: Sequence[Life]) -> None:
        kinds = {kind.name: kind for kind in self._world.kinds}

        def delete(life: Life) -> None:
            life.deleted = life.forced or self._observer.now()
            self._garden.delete(kinds[life.kind], life.shoot, life.name)

        for_each(lives, delete)

    def _lives(self) -> list[Life]:
        return [life for life in self._observer.lives.values() if not life.bad]

    def _wait(
        self,
        what: str,
        reached: Callable[[Life], bool],
        *,
        kind: Kind | None = None,
        everyone: bool = False,
    ) -> None:
        """Waits until all objects have come that far, or patience is over: the judge will see."""
        lives = list(self._observer.lives.values()) if everyone else self._lives()
        lives = [life for life in lives if kind is None or life.kind == kind.name]
        deadline = time.monotonic() + self._settings.patience
        while time.monotonic() < deadline:
            done = sum(map(reached, lives))
            self._watcher.count(what, done, len(lives))
            if done == len(lives):
                return
            time.sleep(0.1)

    def _counted(self, outcome: str | None, by: str) -> dict[str, int]:
        return self._world.manager.metrics.total(
            "actuator_deletions_total", by, **({"outcome": outcome} if outcome else {})
        )

    def _place_bystander(self, shoot: Shoot) -> None:
        """Somebody else's object, with somebody else's finalizer, in the middle of it."""
        meta: Raw = {
            "name": _BYSTANDER,
            "namespace": shoot.technical_id,
            "labels": self._world.labels,
            "finalizers": [WITNESS],
        }
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        self._world.admin.create(_CONFIGMAPS, manifest)

    def _look_at_bystanders(self) -> None:
        """What became of them; then they go too, so that the namespaces can."""
        for shoot in self._shoots:
            self._look_at(_CONFIGMAPS, shoot.technical_id, _BYSTANDER, may_be_deleting=False)
        for life in self._lives():
            if life.shoot == self._shoots[0].technical_id:
                kind = next(k for k in self._world.kinds if k.name == life.kind)
                self._look_at(resource_of(kind), life.shoot, life.name, may_be_deleting=True)

    def _look_at(
        self, resource: Resource, namespace: str, name: str, *, may_be_deleting: bool
    ) -> None:
        problem = None
        try:
            meta = self._world.admin.get(resource, name, namespace)["metadata"]
            finalizers = meta.get("finalizers") or []
            if WITNESS not in finalizers:
                problem = f"finalizer {WITNESS} was taken off"
            elif meta.get("deletionTimestamp") and not may_be_deleting:
                problem = "it was deleted"
            else:
                self._take_witness_off(resource, namespace, name, meta)
        except NotFound:
            problem = "it is gone, although its finalizer was not ours to remove"
        label = f"{resource.plural} {namespace}/{name}"
        self.evidence.bystanders.append(Bystander(name=label, problem=problem))

    def _take_witness_off(self, resource: Resource, namespace: str, name: str, meta: Raw) -> None:
        patch = take_off([WITNESS], meta["uid"], meta["finalizers"])
        self._world.admin.patch(resource, name, namespace, patch)

    def _leftovers(self) -> Iterable[str]:
        """Seed objects of the extension that are still there."""
        for actuator in self._world.actuators:
            for group in actuator.seed_objects:
                for shoot in self._shoots:
                    where = shoot.technical_id if group.namespaced else ""
                    for obj in self._world.admin.list(
                        group.resource, where, label_selector=group.label_selector
                    ):
                        yield f"{group.resource} {where}/{obj['metadata']['name']} is still there"


class _Watching:
    """The observer and the outcome log, on while the drill runs."""

    def __init__(self, observer: Observer, outcomes: OutcomeLog) -> None:
        self._observer = observer
        self._outcomes = outcomes
        self._logger = logging.getLogger("generic.reporter")
        self._level = self._logger.level

    def __enter__(self) -> None:
        self._logger.addHandler(self._outcomes)
        self._logger.setLevel(logging.INFO)
        self._observer.start()

    def __exit__(self, *_error: object) -> None:
        self._observer.stop()
        self._logger.removeHandler(self._outcomes)
        self._logger.setLevel(self._level)


def for_each(items: Sequence[T], act: Callable[[T], object]) -> None:
    """Does it for all of them, ten at a time; raises the first error."""
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(act, items))


def _spoiled(steps: list[list[Raw]]) -> list[Raw]:
    """The first step, with a providerConfig that no extension can accept."""
    manifests = steps[0]
    manifests[-1]["spec"]["providerConfig"] = {"kind": "Nonsense", "nonsense": True}
    return manifests
