"""Simulated users and gardenlet: they create objects, request operations, and delete objects.

Each life runs from creation to deletion regardless of faults; a step that times out is recorded as
its problem. Some objects are never deleted, and operations are requested until the end.
"""

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum

import attrs

from actuator.errors import ActuatorError, ApiError, Invalid, NotFound
from actuator.interface import Client, resource_of
from actuator.meta import Raw
from actuator.v1alpha1 import Infrastructure
from generic.kube.finalizers import patch_removing
from generic.library.lookup import find
from generic.testing.drill.names import Names
from generic.testing.garden import Garden, SeedShoot, not_migrated_because, not_ready_because
from hack.objects import infrastructure

_KIND = Infrastructure.KIND
_RESOURCE = resource_of(_KIND)
_NAME = "infra"
_LOOK_SECONDS = 0.25


class Ending(StrEnum):
    """The way in which an object is deleted, if at all."""

    DELETED = "deleted"
    FORCED = "force-deleted"
    STRIPPED = "deleted, and its finalizer taken off by hand"
    STAYS = "stays"


@attrs.define(kw_only=True)
class Life:
    """One object."""

    shoot: str
    ending: Ending
    uid: str = ""
    asked: int = 0
    """The number of requested operations."""
    over: bool = False
    """Whether it ended as expected: deleted, or (STAYS) ready."""
    problem: str = ""


class Crowd:
    """Users in threads, each with one life after another until `finish`."""

    def __init__(self, client: Client, names: Names, seed: int, patience: float) -> None:
        """`patience`: seconds that a step may take after `finish`."""
        self.lives: list[Life] = []
        self._client = client
        self._garden = Garden(client)
        self._names = names
        self._seed = seed
        self._patience = patience
        self._deadline = float("inf")
        self._finishing = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, users: int, staying: int) -> None:
        """Start `users`, and `staying` more users with one object each that is never deleted."""
        for number in range(users + staying):
            act = self._stay if number < staying else self._come_and_go
            rng = random.Random(f"{self._seed}-{number}")
            thread = threading.Thread(target=act, args=(f"u{number + 1}", rng), daemon=True)
            self._threads.append(thread)
            thread.start()

    def finish(self) -> None:
        """Start no new life; return when all have ended, with success or a problem."""
        self._deadline = time.monotonic() + self._patience
        self._finishing.set()
        for thread in self._threads:
            thread.join()

    def _come_and_go(self, user: str, rng: random.Random) -> None:
        number = 0
        while not self._finishing.wait(rng.uniform(0, 2)):
            number += 1
            ending = rng.choice([Ending.DELETED, Ending.DELETED, Ending.FORCED, Ending.STRIPPED])
            self._live(f"{user}-{number}", ending, rng, self._to_its_end)

    def _stay(self, user: str, rng: random.Random) -> None:
        self._live(user, Ending.STAYS, rng, self._until_end)

    def _live(
        self,
        name: str,
        ending: Ending,
        rng: random.Random,
        tell: Callable[[Life, SeedShoot, random.Random], None],
    ) -> None:
        shoot = self._names.shoot(name, "eu-1")
        life = Life(shoot=shoot.technical_id, ending=ending)
        self.lives.append(life)
        try:
            self._create(life, shoot)
            tell(life, shoot, rng)
            life.over = True
        except (ActuatorError, ApiError) as error:
            life.problem = str(error)

    def _create(self, life: Life, shoot: SeedShoot) -> None:
        self._garden.create_namespace(shoot)
        manifest = infrastructure(life.shoot, _NAME, self._names.type)
        life.uid = self._garden.deploy(manifest)["metadata"]["uid"]
        life.asked += 1

    def _to_its_end(self, life: Life, shoot: SeedShoot, rng: random.Random) -> None:
        self._wait("has our finalizer", life, _is_ours)
        if rng.random() < 0.8:
            self._wait("ready", life, _is_ready)
            for _ in range(rng.randint(0, 2)):
                self._ask(life, "reconcile")
            if rng.random() < 0.25:
                self._move(life)
        self._go(life, shoot, rng)
        self._wait("gone", life, lambda obj: obj is None)
        self._garden.finish(shoot)

    def _until_end(self, life: Life, _shoot: SeedShoot, rng: random.Random) -> None:
        self._wait("ready", life, _is_ready)
        while not self._finishing.wait(rng.uniform(1, 5)):
            self._ask(life, "reconcile")
        self._ask(life, "reconcile")

    def _ask(self, life: Life, operation: str) -> None:
        self._garden.ask(_KIND, life.shoot, _NAME, operation)
        life.asked += 1
        self._wait(f"ready after {operation}", life, _is_ready)

    def _move(self, life: Life) -> None:
        """Migrate, and restore in the same seed, as another seed would."""
        self._garden.ask(_KIND, life.shoot, _NAME, "migrate")
        life.asked += 1
        self._wait("migrated", life, _is_migrated)
        self._ask(life, "restore")

    def _go(self, life: Life, shoot: SeedShoot, rng: random.Random) -> None:
        self._garden.mark_deleted(shoot)
        if life.ending is Ending.FORCED and rng.random() < 0.7:
            self._garden.force(shoot)
        self._garden.delete(_KIND, life.shoot, _NAME)
        if life.ending is Ending.FORCED:
            self._garden.force(shoot)
        elif life.ending is Ending.STRIPPED:
            self._strip(life)

    def _strip(self, life: Life) -> None:
        """Remove our finalizer by hand, as users do."""
        with suppress(NotFound, Invalid):  # the manager was faster
            meta = self._client.get(_RESOURCE, _NAME, life.shoot)["metadata"]
            patch = patch_removing([_KIND.finalizer], meta["uid"], meta.get("finalizers") or [])
            self._client.patch(_RESOURCE, _NAME, life.shoot, patch)

    def _wait(self, what: str, life: Life, reached: Callable[[Raw | None], bool]) -> None:
        while True:
            obj = find(self._client, _RESOURCE, _NAME, life.shoot)
            if reached(obj):
                return
            if time.monotonic() > self._deadline:
                raise ActuatorError(f"is not {what}: {_state_of(obj)}")
            time.sleep(_LOOK_SECONDS)


def _is_ours(obj: Raw | None) -> bool:
    return obj is not None and _KIND.finalizer in (obj["metadata"].get("finalizers") or [])


def _is_ready(obj: Raw | None) -> bool:
    return obj is not None and not_ready_because(obj) is None


def _is_migrated(obj: Raw | None) -> bool:
    return obj is not None and not _is_ours(obj) and not_migrated_because(obj) is None


def _state_of(obj: Raw | None) -> str:
    if obj is None:
        return "it is gone"
    meta = obj["metadata"]
    status = obj.get("status") or {}
    return (
        f"deleted at {meta.get('deletionTimestamp')}, finalizers {meta.get('finalizers')}, "
        f"annotations {meta.get('annotations')}, {status.get('lastOperation')}, "
        f"{status.get('lastError')}"
    )
