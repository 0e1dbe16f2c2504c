"""The exploration from start to end: count the calls, kill at each, finish, check the rules."""

import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

from actuator.errors import ActuatorError, ApiError, ConfigurationError
from actuator.interface import ExternalResource
from actuator.meta import Kind
from generic.reconciler.operation import Operation
from generic.testing.drill.bystanders import WITNESS
from generic.testing.drill.kills.calls import Kill, Side, points_of, read_lines
from generic.testing.drill.kills.child import Order, Task
from generic.testing.drill.kills.processes import End, Workers, workers
from generic.testing.drill.observe import read_records
from generic.testing.drill.settings import Watcher
from generic.testing.explorer.judge import (
    Case,
    Failure,
    Sight,
    Tally,
    judge_death,
    judge_end,
    without,
)
from generic.testing.explorer.stage import Ground, Stage, Trial, open_ground, operations_of
from generic.testing.rehearsal import CombinedRehearsal

_AT_ONCE = min(4, os.cpu_count() or 1)
"""Processes that run managers; each loads everything, so more than there are CPUs do not pay."""
_POLL = 0.3


@attrs.frozen(kw_only=True)
class Wanted:
    """The kinds and operations to explore; an empty set means all.

    `patience`: seconds that an operation may take, killed or not.
    """

    kinds: frozenset[str] = frozenset()
    operations: frozenset[Operation] = frozenset()
    patience: float = 45.0

    def of(self, kinds: Sequence[Kind]) -> list[tuple[Kind, Operation]]:
        """Select from these kinds. Raises ConfigurationError if nothing is selected."""
        found = [
            (kind, operation)
            for kind in kinds
            for operation in operations_of(kind)
            if not self.kinds or kind.name in self.kinds
            if not self.operations or operation in self.operations
        ]
        if not found:
            there = ", ".join(kind.name for kind in kinds)
            raise ConfigurationError(
                f"nothing to explore: this rehearsal has {there}, and of "
                f"{', '.join(self.kinds) or 'these'} nobody asks for "
                f"{', '.join(one.value for one in self.operations) or 'anything'}"
            )
        return found


def explore(wanted: Wanted, rehearsal: CombinedRehearsal, watcher: Watcher) -> Iterator[Tally]:
    """Explore each operation of each kind, and yield each result as soon as it exists.

    Raises ActuatorError or ApiError if the exploration is not possible.
    """
    with (
        tempfile.TemporaryDirectory(prefix="explore-") as directory,
        open_ground(rehearsal, Path(directory), wanted.patience, watcher.say) as ground,
    ):
        task = Task(kubeconfig=str(ground.kubeconfig), rehearsals=rehearsal.references)
        with workers(task, ground.folder, _AT_ONCE) as free:
            for kind, operation in wanted.of(ground.kinds):
                ground.renew()
                stage = Stage(ground, kind, operation)
                yield _Exploration(ground, stage, free, watcher).tally()


@attrs.define
class _Death:
    """A trial, its kill (None: the calls are only counted), and the problems found."""

    trial: Trial
    kill: Kill | None
    end: End = End.STOPPED
    problems: list[str] = attrs.field(factory=list)

    @property
    def failure(self) -> Failure:
        return Failure(at=str(self.kill or ""), problems=list(self.problems))


class _Exploration:
    """The exploration of one operation of one kind."""

    def __init__(self, ground: Ground, stage: Stage, free: Workers, watcher: Watcher) -> None:
        self._ground = ground
        self._stage = stage
        self._free = free
        self._watcher = watcher
        self._makes: Counter[str] = Counter()
        self._tally = Tally(kind=stage.kind.name, operation=stage.operation)

    def tally(self) -> Tally:
        """Count the calls in one shoot, then kill at each call in a shoot of its own."""
        try:
            return self._explored()
        except (ActuatorError, ApiError) as error:
            failure = Failure(at="", problems=[f"it could not be explored: {error}"])
            return attrs.evolve(self._tally, failures=[failure])

    def _explored(self) -> Tally:
        [counted] = self._tried([None])
        points = points_of(read_lines(self._calls(counted.trial)))
        tally = attrs.evolve(self._tally, points=points)
        if counted.problems:  # broken without any kill
            return attrs.evolve(tally, failures=[counted.failure])
        self._watcher.say(f"{self._tally}: {len(points)} calls, each is killed before and after")
        deaths = self._tried([Kill(point, side) for point in points for side in Side])
        missed = sum(death.end is End.STOPPED and not death.problems for death in deaths)
        return attrs.evolve(
            tally,
            tried=len(deaths) - missed,
            missed=missed,
            failures=[death.failure for death in deaths if death.problems],
        )

    def _tried(self, kills: Sequence[Kill | None]) -> list[_Death]:
        trials = self._stage.prepare(len(kills))
        deaths = [_Death(trial, kill) for trial, kill in zip(trials, kills, strict=True)]
        with self._stage.owners(trials):
            self._die_each(deaths)
            if kills == [None]:
                self._count_things(trials)
            self._judge(deaths, judge_death)
            with self._ground.serving([trial.names.type for trial in trials]):
                self._wait(deaths)
        self._judge(deaths, judge_end)
        for death in deaths:
            death.problems += self._stage.let_go(death.trial)
        return deaths

    def _die_each(self, deaths: Sequence[_Death]) -> None:
        with ThreadPoolExecutor(self._free.count) as pool:
            try:
                for done, _ in enumerate(pool.map(self._die, deaths), 1):
                    self._watcher.count(str(self._tally), done, len(deaths))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)  # an interrupt does not wait
                raise

    def _die(self, death: _Death) -> None:
        """Run a process for the trial until it is killed or the operation is finished."""
        trial, kind = death.trial, self._stage.kind.name
        order = Order(
            kinds=[kind, *self._ground.rehearsal.makes.get(kind, ())],
            type=trial.names.type,
            shared=self._ground.rehearsal.share(),
            calls=str(self._calls(trial)),
            seconds=round(self._ground.patience),
            kill=death.kill,
        )
        death.end = self._free.run(order, lambda: not self._stage.unfinished(trial))
        if death.end is End.LATE:
            why = "; ".join(self._stage.unfinished(trial)) or "the last moment"
            death.problems.append(f"not killed, and not through, within {order.seconds} s: {why}")

    def _wait(self, deaths: Sequence[_Death]) -> None:
        """Wait until all are finished, or none has finished for `patience` seconds."""
        deadline = time.monotonic() + self._ground.patience
        left = self._unfinished(deaths)
        while left and time.monotonic() < deadline:
            time.sleep(_POLL)
            still = self._unfinished(left)
            if len(still) < len(left):
                deadline = time.monotonic() + self._ground.patience
            left = still
        waited = f"{self._ground.patience:.0f} s"
        for death in left:
            for why in self._stage.unfinished(death.trial):
                death.problems.append(f"not through {waited} after the restart: {why}")

    def _unfinished(self, deaths: Sequence[_Death]) -> list[_Death]:
        return [death for death in deaths if self._stage.unfinished(death.trial)]

    def _judge(
        self, deaths: Sequence[_Death], judge: Callable[[Case, Sight], Iterator[str]]
    ) -> None:
        """Check each trial, and add each problem once."""
        outside = self._ground.outside([death.trial.shoot.technical_id for death in deaths])
        for death in deaths:
            trial = death.trial
            seen = Sight(
                objects=self._stage.objects(trial),
                outside=outside[trial.shoot.technical_id],
                records=self._records(trial),
            )
            found = judge(self._case(trial), seen)
            death.problems += [problem for problem in found if problem not in death.problems]

    def _case(self, trial: Trial) -> Case:
        return Case(
            operation=self._stage.operation,
            finalizer=self._stage.kind.finalizer,
            witness=WITNESS,
            others=trial.others,
            before=trial.before,
            makes=self._makes,
        )

    def _count_things(self, trials: Sequence[Trial]) -> None:
        """Count the resources of an undisturbed operation, the reference for the killed ones."""
        [trial] = trials
        shoot = trial.shoot.technical_id
        found = self._ground.outside([shoot])[shoot]
        self._makes = Counter(one.type for one in without(found, trial.others))

    def _records(self, trial: Trial) -> list[ExternalResource]:
        """Return the remaining external resources that are recorded as Orphans."""
        records = read_records(self._ground.garden.client, trial.shoot.technical_id)
        return [record.resource for record in records]

    def _calls(self, trial: Trial) -> Path:
        return self._ground.folder / f"{trial.names.id}.calls"
