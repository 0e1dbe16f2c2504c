"""The exploration from start to end: count the calls, kill at each, finish, check the rules."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

from actuator.errors import ActuatorError, ApiError, ConfigurationError
from actuator.meta import Kind
from generic.reconciler.operation import Operation
from generic.testing.drill.kills.calls import Kill, Side, points_of, read_lines
from generic.testing.drill.kills.child import Order
from generic.testing.drill.kills.processes import End, workers
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
    """The kinds, operations and calls to explore; nothing means all.

    `calls`: each call whose name has one of these parts. `patience`: seconds that an operation may
    take, killed or not.
    """

    kinds: frozenset[str] = frozenset()
    operations: frozenset[Operation] = frozenset()
    calls: Sequence[str] = ()
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
                f"nothing to explore: this rehearsal has {there}, and "
                f"{', '.join(one.value for one in self.operations) or 'no operation'} is not "
                f"requested for {', '.join(self.kinds) or 'these'}"
            )
        return found


def explore(wanted: Wanted, rehearsal: CombinedRehearsal, watcher: Watcher) -> Iterator[Tally]:
    """Explore each operation of each kind, and yield each result as soon as it exists.

    Raises ActuatorError or ApiError if the exploration is not possible.
    """
    with (
        tempfile.TemporaryDirectory(prefix="explore-") as directory,
        open_ground(rehearsal, Path(directory), wanted.patience, watcher.say) as ground,
        workers(rehearsal.references, ground.folder, _AT_ONCE) as run,
    ):
        for kind, operation in wanted.of(ground.kinds):
            ground.renew()
            stage = Stage(ground, kind, operation)
            tally = Tally(kind=kind.name, operation=operation)
            one = _Exploration(ground, stage, run, watcher, tally)
            yield one.tally(wanted.calls or ("",))


@attrs.frozen
class _Exploration:
    """The exploration of one operation of one kind."""

    _ground: Ground
    _stage: Stage
    _run: Callable[[Order, Callable[[], bool]], End]
    _watcher: Watcher
    _tally: Tally

    def tally(self, parts: Sequence[str]) -> Tally:
        """Count the calls in one shoot, then kill at those with a part, each in its own shoot."""
        try:
            return self._explored(parts)
        except (ActuatorError, ApiError) as error:
            failure = Failure(at="", problems=[f"it could not be explored: {error}"])
            return attrs.evolve(self._tally, failures=[failure])

    def _explored(self, parts: Sequence[str]) -> Tally:
        [counted] = self._tried([None])
        points = points_of(read_lines(self._calls(counted)))
        points = [point for point in points if any(part in str(point) for part in parts)]
        tally = attrs.evolve(self._tally, points=points)
        if counted.problems:  # broken without any kill
            return attrs.evolve(tally, failures=[counted.failure])
        self._watcher.say(f"{self._tally}: {len(points)} calls, each is killed before and after")
        trials = self._tried([Kill(point, side) for point in points for side in Side])
        missed = sum(trial.end is End.STOPPED and not trial.problems for trial in trials)
        return attrs.evolve(
            tally,
            tried=len(trials) - missed,
            missed=missed,
            failures=[trial.failure for trial in trials if trial.problems],
        )

    def _tried(self, kills: Sequence[Kill | None]) -> list[Trial]:
        trials = self._stage.prepare(kills)
        with self._stage.owners(trials):
            self._die_each(trials)
            if kills == [None]:  # undisturbed: the reference for the killed ones
                [(trial, found)] = self._stage.outside(trials)
                self._stage.makes.update(one.type for one in without(found, trial.case.others))
            self._judge(trials, judge_death)
            with self._ground.serving([trial.names.type for trial in trials]):
                self._wait(trials)
        self._judge(trials, judge_end)
        for trial in trials:
            trial.problems += self._stage.let_go(trial)
        return trials

    def _die_each(self, trials: Sequence[Trial]) -> None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            try:
                for done, _ in enumerate(pool.map(self._die, trials), 1):
                    self._watcher.count(str(self._tally), done, len(trials))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)  # an interrupt does not wait
                raise

    def _die(self, trial: Trial) -> None:
        """Run a process for the trial until it is killed or the operation is finished."""
        kind = self._stage.kind.name
        order = Order(
            kubeconfig=str(self._ground.kubeconfig),
            kinds=[kind, *self._ground.rehearsal.makes.get(kind, ())],
            type=trial.names.type,
            shared=self._ground.rehearsal.share(),
            calls=str(self._calls(trial)),
            seconds=round(self._ground.patience),
            kill=trial.kill,
        )
        trial.end = self._run(order, lambda: not self._stage.unfinished(trial))
        if trial.end is End.LATE:
            why = "; ".join(self._stage.unfinished(trial)) or "the last moment"
            trial.problems.append(f"not killed, and not through, within {order.seconds} s: {why}")

    def _wait(self, trials: Sequence[Trial]) -> None:
        """Wait until all are finished, or none has finished for `patience` seconds."""
        deadline = time.monotonic() + self._ground.patience
        left = self._unfinished(trials)
        while left and time.monotonic() < deadline:
            time.sleep(_POLL)
            still = self._unfinished(left)
            if len(still) < len(left):
                deadline = time.monotonic() + self._ground.patience
            left = still
        waited = f"{self._ground.patience:.0f} s"
        for trial in left:
            for why in self._stage.unfinished(trial):
                trial.problems.append(f"not through {waited} after the restart: {why}")

    def _unfinished(self, trials: Sequence[Trial]) -> list[Trial]:
        return [trial for trial in trials if self._stage.unfinished(trial)]

    def _judge(
        self, trials: Sequence[Trial], judge: Callable[[Case, Sight], Iterator[str]]
    ) -> None:
        """Check each trial, and add each problem once."""
        for trial, outside in self._stage.outside(trials):
            records = read_records(self._ground.garden.client, trial.shoot.technical_id)
            seen = Sight(
                objects=self._stage.objects(trial),
                outside=outside,
                records=[record.resource for record in records],
                reported=self._stage.reported(trial),
            )
            found = judge(trial.case, seen)
            trial.problems += [problem for problem in found if problem not in trial.problems]

    def _calls(self, trial: Trial) -> Path:
        return self._ground.folder / f"{trial.names.id}.calls"
