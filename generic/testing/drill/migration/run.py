"""The migration drill from start to end: two seeds, one outside world, killed managers."""

import random
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from actuator.errors import ActuatorError, ConfigurationError
from actuator.meta import Raw
from generic.manager.options import Options
from generic.testing.drill.inventory import check_types
from generic.testing.drill.kills.calls import read_calls
from generic.testing.drill.kills.child import Order
from generic.testing.drill.kills.processes import CrashRunner, Victim
from generic.testing.drill.migration.rules import (
    DESTINATION,
    PHASES,
    SOURCE,
    MigrationEvidence,
    Move,
)
from generic.testing.drill.migration.sides import Side, arrivals
from generic.testing.drill.names import Names
from generic.testing.drill.seeds import embedded_seed, other_owners
from generic.testing.drill.settings import DrillSettings, Watcher
from generic.testing.drill.world import kinds_of, manager_for, outside
from generic.testing.garden import Garden, SeedShoot, ShootState
from generic.testing.garden.order import HANDED_ON, STAYS
from generic.testing.polling import parallel
from generic.testing.rehearsal import CombinedRehearsal

SCENARIO = "migration"
SCENARIO_TEXT = "Shoots move to another seed, and the managers of both are killed meanwhile."


def migrate(
    settings: DrillSettings, rehearsal: CombinedRehearsal, watcher: Watcher
) -> MigrationEvidence:
    """Move shoots from one embedded seed to another and return the evidence.

    Raises ActuatorError or ApiError if the drill could not run, also if the outside world of a
    rehearsal cannot be shared with other processes.
    """
    with ExitStack() as stack:
        run = _Steps(settings, rehearsal, watcher, stack)
        run.create()
        run.move_away()
        run.move_in()
        run.delete()
        return run.finish()


class _Steps:
    """The steps of one drill, and their common state; `stack` ends its processes."""

    def __init__(
        self,
        settings: DrillSettings,
        rehearsal: CombinedRehearsal,
        watcher: Watcher,
        stack: ExitStack,
    ) -> None:
        """Start two seeds and one outside world. Raises ActuatorError or ApiError."""
        self._began = time.monotonic()
        self._rehearsal = rehearsal
        self._watcher = watcher
        self._names = Names()
        plain = self._names.shoots(settings.shoots, rehearsal.region)
        self._shoots = [self._names.documented(shoot, rehearsal.cluster) for shoot in plain]
        self._states: dict[str, ShootState] = {}
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="migration-")))
        self._calls = folder / "calls"
        stack.enter_context(outside(rehearsal, watcher.say))
        actuators = rehearsal.actuators()
        kinds = kinds_of(actuators)
        if not any(kind.migratable for kind in kinds):
            raise ConfigurationError(
                f"{rehearsal.title}: none of its kinds migrates; set never_migrates = True"
            )
        self._source = self._open_side(SOURCE, settings, stack)
        self._destination = self._open_side(DESTINATION, settings, stack)
        number = settings.random_seed or secrets.randbelow(10**6) + 1
        self._rng = random.Random(number)
        check_types(self._manifests(self._shoots[0]), actuators, self._names.type)
        self._evidence = MigrationEvidence(
            **settings.facts(self._names, rehearsal, SCENARIO_TEXT),
            random_seed=number,
            moves=[Move(shoot=shoot.technical_id) for shoot in self._shoots],
            staying=sorted(kind.name for kind in kinds if not kind.migratable),
        )

    def _open_side(self, seed: str, settings: DrillSettings, stack: ExitStack) -> Side:
        """Start a seed with a manager in a separate process, under its generated Role."""
        say = self._watcher.say
        type = self._names.type
        say(f"Starting the {seed}: an embedded cluster, and a manager in a process of its own")
        actuators = self._rehearsal.actuators()
        cluster = stack.enter_context(embedded_seed(self._rehearsal, say))
        namespaces = [shoot.technical_id for shoot in self._shoots]
        stack.enter_context(other_owners(cluster.admin, actuators, namespaces))
        order = Order(
            kubeconfig=str(cluster.admit(manager_for(actuators, [type], Options()), type)),
            type=type,
            shared=self._rehearsal.share(),
            calls=str(self._calls),
            seed=seed,
            break_rule=settings.break_rule or "",
        )
        log = self._calls.with_name(f"{seed}.log")
        runner = stack.enter_context(closing(CrashRunner(self._rehearsal.references, log)))
        return Side(
            garden=Garden(cluster.admin),
            victim=Victim(runner, order, self._now),
            kinds=kinds_of(actuators),
            patience=settings.patience,
        )

    def create(self) -> None:
        """Create shoots with all kinds in the source; then delete the kinds that cannot migrate."""
        self._watcher.say(f"Creating {len(self._shoots)} shoots in the source")

        def create(shoot: SeedShoot, move: Move) -> None:
            flow = self._source.flow(shoot)
            flow.create(self._manifests(shoot))
            move.ready = self._now()
            flow.part()

        self._each("ready", create)
        self._evidence.resources_before = list(self._rehearsal.remaining_resources())

    def move_away(self) -> None:
        """Migrate the shoots away from the source, whose manager keeps running."""
        self._watcher.say(
            f"Migrating, and killing managers (random seed {self._evidence.random_seed})"
        )

        def migrate(shoot: SeedShoot, move: Move) -> None:
            self._states[shoot.technical_id] = self._source.flow(shoot).migrate()
            move.handed_over = self._now()

        with self._endangered(PHASES[0]):
            self._each("migrated", migrate)

    def move_in(self) -> None:
        """Restore the shoots in the destination."""
        self._watcher.say("Restoring, and killing managers")

        def restore(shoot: SeedShoot, move: Move) -> None:
            manifests = [self._with_what_stays(manifest) for manifest in self._manifests(shoot)]
            state = self._states[shoot.technical_id]
            self._destination.flow(shoot).restore(manifests, state)
            move.restored = self._now()

        with self._endangered(PHASES[1]):
            self._each("restored", restore)
        self._evidence.resources_moved = list(self._rehearsal.remaining_resources())
        self._evidence.calls = read_calls(self._calls, self._began)
        for shoot in self._shoots:
            self._evidence.left_in_source += self._source.left(shoot)
            state = self._states.get(shoot.technical_id, ShootState())
            client = self._destination.garden.client
            self._evidence.arrivals += arrivals(client, shoot, state, self._evidence.calls)

    def delete(self) -> None:
        """Delete normally in the destination; delete the source's own objects there."""
        self._watcher.say("Deleting the shoots in the destination")

        def delete(shoot: SeedShoot, move: Move) -> None:
            self._destination.flow(shoot).delete()
            self._source.flow(shoot).delete_afterwards()
            move.gone = self._now()

        self._each("gone", delete)

    def finish(self) -> MigrationEvidence:
        """Collect the remaining evidence."""
        evidence = self._evidence
        evidence.resources_after = list(self._rehearsal.remaining_resources())
        evidence.calls = read_calls(self._calls, self._began)
        deaths = [*self._source.victim.deaths, *self._destination.victim.deaths]
        evidence.kills = sorted(deaths, key=lambda death: death.at)
        for shoot in self._shoots:
            evidence.left_in_destination += self._destination.left(shoot)
        evidence.seconds = self._now()
        return evidence

    def _now(self) -> float:
        """Return the seconds since the drill began."""
        return time.monotonic() - self._began

    @contextmanager
    def _endangered(self, phase: str) -> Iterator[None]:
        """Kill both managers repeatedly while the context is open."""
        with ExitStack() as stack:
            for side in (self._source, self._destination):
                own = random.Random(self._rng.random())
                stack.enter_context(side.victim.endangered(phase, own))
            yield

    def _manifests(self, shoot: SeedShoot) -> Sequence[Raw]:
        return self._rehearsal.manifests(self._names.rehearsed(shoot))

    def _with_what_stays(self, manifest: Raw) -> Raw:
        """Complete a manifest with the providerStatus of objects that stay in the source."""
        giver, _ = HANDED_ON.get(manifest["kind"], ("", ""))
        return self._source.garden.complete(manifest) if giver in STAYS else manifest

    def _each(self, what: str, act: Callable[[SeedShoot, Move], None]) -> None:
        """Call `act` for all shoots without a problem, in parallel; only record new problems."""
        pairs = zip(self._shoots, self._evidence.moves, strict=True)
        done: list[str] = []

        def try_it(pair: tuple[SeedShoot, Move]) -> None:
            shoot, move = pair
            try:
                act(shoot, move)
            except ActuatorError as error:
                move.problem = str(error)
                return
            done.append(shoot.technical_id)
            self._watcher.count(what, len(done), len(self._shoots))

        self._watcher.count(what, 0, len(self._shoots))
        parallel([(shoot, move) for shoot, move in pairs if not move.problem], try_it)
