"""The migration drill from start to end: two seeds, one outside world, killed managers."""

import random
import secrets
import time
from collections.abc import Callable, Sequence

from actuator.errors import ActuatorError
from actuator.meta import Raw, format_time
from generic.kube.clock import SystemClock
from generic.testing.drill.kills.calls import read_calls
from generic.testing.drill.migration.rules import PHASES, MigrationEvidence, Move
from generic.testing.drill.migration.sides import Sides, arrivals, open_sides
from generic.testing.drill.names import Names
from generic.testing.drill.settings import Settings, Watcher
from generic.testing.garden import Shoot, ShootState
from generic.testing.garden.order import HANDED_ON, STAYS
from generic.testing.polling import parallel
from generic.testing.rehearsal import CombinedRehearsal

SCENARIO = "migration"
SCENARIO_TEXT = "Shoots move to another seed, and the managers of both are killed meanwhile."


def migrate(
    settings: Settings, rehearsal: CombinedRehearsal, watcher: Watcher
) -> MigrationEvidence:
    """Move shoots from one embedded seed to another and return the evidence.

    Raises ActuatorError or ApiError if the drill could not run, also if the outside world of a
    rehearsal cannot be shared with other processes.
    """
    names = Names()
    shoots = [names.shoot(f"s{n + 1}", rehearsal.region) for n in range(settings.shoots)]
    with open_sides(settings, rehearsal, names, shoots, watcher.say) as sides:
        run = _Run(settings, rehearsal, watcher, names, shoots, sides)
        run.create()
        run.move_away()
        run.move_in()
        run.delete()
        return run.finish()


class _Run:
    """The steps of one drill, and their common state."""

    def __init__(
        self,
        settings: Settings,
        rehearsal: CombinedRehearsal,
        watcher: Watcher,
        names: Names,
        shoots: Sequence[Shoot],
        sides: Sides,
    ) -> None:
        self._rehearsal = rehearsal
        self._watcher = watcher
        self._names = names
        self._shoots = shoots
        self._sides = sides
        self._states: dict[str, ShootState] = {}
        number = settings.dice or secrets.randbelow(10**6) + 1
        self._dice = random.Random(number)
        self._moves = {s.technical_id: Move(shoot=s.technical_id) for s in shoots}
        self._evidence = MigrationEvidence(
            drill=names.id,
            title=rehearsal.title,
            scenario=SCENARIO,
            scenario_text=SCENARIO_TEXT,
            started=format_time(SystemClock().now()),
            shoots_only=rehearsal.shoots_only,
            origin=settings.origin,
            dice=number,
            moves=list(self._moves.values()),
            staying=sorted(kind.name for kind in sides.kinds if not kind.migratable),
        )

    def create(self) -> None:
        """Create shoots with all kinds in the source; then delete the kinds that cannot migrate."""
        self._watcher.say(f"Creating {len(self._shoots)} shoots in the source")

        def create(shoot: Shoot, move: Move) -> None:
            flow = self._sides.source.flow(shoot)
            flow.create(self._manifests(shoot))
            move.ready = self._sides.now()
            flow.part()

        self._each("ready", create)
        self._evidence.outside_before = list(self._rehearsal.left_outside())

    def move_away(self) -> None:
        """Migrate the shoots away from the source, whose manager keeps running."""
        self._watcher.say(f"Migrating, and killing managers (random seed {self._evidence.dice})")

        def migrate(shoot: Shoot, move: Move) -> None:
            self._states[shoot.technical_id] = self._sides.source.flow(shoot).migrate()
            move.handed_over = self._sides.now()

        with self._sides.endangered(PHASES[0], self._dice):
            self._each("migrated", migrate)

    def move_in(self) -> None:
        """Restore the shoots in the destination."""
        self._watcher.say("Restoring, and killing managers")

        def restore(shoot: Shoot, move: Move) -> None:
            manifests = [self._with_what_stays(one) for one in self._manifests(shoot)]
            state = self._states[shoot.technical_id]
            self._sides.destination.flow(shoot).restore(manifests, state)
            move.restored = self._sides.now()

        with self._sides.endangered(PHASES[1], self._dice):
            self._each("restored", restore)
        self._evidence.outside_moved = list(self._rehearsal.left_outside())
        self._evidence.calls = read_calls(self._sides.calls, self._sides.began)
        for shoot in self._shoots:
            self._evidence.left_in_source += self._sides.source.left(shoot)
            state = self._states.get(shoot.technical_id, ShootState())
            client = self._sides.destination.garden.client
            self._evidence.arrivals += arrivals(client, shoot, state, self._evidence.calls)

    def delete(self) -> None:
        """Delete normally in the destination; delete the source's own objects there."""
        self._watcher.say("Deleting the shoots in the destination")

        def delete(shoot: Shoot, move: Move) -> None:
            self._sides.destination.flow(shoot).delete()
            self._sides.source.flow(shoot).delete_afterwards()
            move.gone = self._sides.now()

        self._each("gone", delete)

    def finish(self) -> MigrationEvidence:
        """Collect the remaining evidence."""
        evidence = self._evidence
        evidence.outside_after = list(self._rehearsal.left_outside())
        evidence.calls = read_calls(self._sides.calls, self._sides.began)
        evidence.kills = self._sides.deaths
        for shoot in self._shoots:
            evidence.left_in_destination += self._sides.destination.left(shoot)
        evidence.seconds = time.monotonic() - self._sides.began
        return evidence

    def _manifests(self, shoot: Shoot) -> Sequence[Raw]:
        return self._rehearsal.manifests(self._names.rehearsed(shoot))

    def _with_what_stays(self, manifest: Raw) -> Raw:
        """Complete a manifest with the providerStatus of objects that stay in the source."""
        giver, _ = HANDED_ON.get(manifest["kind"], ("", ""))
        return self._sides.source.garden.complete(manifest) if giver in STAYS else manifest

    def _each(self, what: str, act: Callable[[Shoot, Move], None]) -> None:
        """Call `act` for all shoots without a problem, in parallel; only record new problems."""
        going = [shoot for shoot in self._shoots if not self._moves[shoot.technical_id].problem]
        done: list[str] = []

        def try_it(shoot: Shoot) -> None:
            move = self._moves[shoot.technical_id]
            try:
                act(shoot, move)
            except ActuatorError as error:
                move.problem = str(error)
                return
            done.append(shoot.technical_id)
            self._watcher.count(what, len(done), len(self._shoots))

        self._watcher.count(what, 0, len(self._shoots))
        parallel(going, try_it)
