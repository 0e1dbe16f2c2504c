"""The exploration from start to end: count the calls, kill at each, finish, check the rules."""

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import attrs

from actuator.errors import ActuatorError, ApiError, ConfigurationError
from actuator.interface import Actuator, kind_of
from generic.reconciler.operation import Operation
from generic.testing.drill.kills.calls import CallMoment, Kill, Point, points_of, read_lines
from generic.testing.drill.kills.child import Order
from generic.testing.drill.kills.processes import ProcessEnd, runners
from generic.testing.drill.observe import read_records
from generic.testing.drill.settings import Watcher
from generic.testing.explorer.judge import (
    Case,
    ExplorerFailure,
    Sight,
    Tally,
    judge_death,
    judge_end,
    without,
)
from generic.testing.explorer.stage import ExplorerStage, Ground, Trial, open_ground, operations_of
from generic.testing.rehearsal import CombinedRehearsal, name_of
from generic.testing.shootapi import most_servers

_AT_ONCE = min(4, os.cpu_count() or 1)
"""Processes that run managers; each loads everything, so more than there are CPUs do not pay."""
_MAX_SHOOT_APIS = 6
"""Maximum API servers of shoots at a time."""
_POLL = 0.3


@attrs.frozen(kw_only=True)
class Wanted:
    """The kinds, operations and calls to explore; nothing means all.

    `kinds` may have names of single actuators (`name_of`). `calls`: each call whose name has one of
    these parts. `every`: one of so many kills is tried, chosen by `random_seed`. `patience`:
    seconds that an operation may take, killed or not.
    """

    kinds: frozenset[str] = frozenset()
    operations: frozenset[Operation] = frozenset()
    calls: Sequence[str] = ()
    every: int = 1
    random_seed: int = 1
    patience: float = 45.0

    def of(self, actuators: Sequence[Actuator[Any]]) -> list[tuple[str, Operation]]:
        """Select from the operations of these actuators, which the result has by their names.

        Raises ConfigurationError if nothing is selected.
        """
        found = [
            (name_of(actuator), operation)
            for actuator in actuators
            for operation in operations_of(kind_of(actuator))
            if not self.kinds or self.kinds & {name_of(actuator), kind_of(actuator).name}
            if not self.operations or operation in self.operations
        ]
        if not found:
            there = ", ".join(map(name_of, actuators))
            raise ConfigurationError(
                f"nothing to explore: this rehearsal has {there}, and "
                f"{', '.join(known.value for known in self.operations) or 'no operation'} is not "
                f"requested for {', '.join(self.kinds) or 'these'}"
            )
        return found

    def kills(self, found: Sequence[Point]) -> tuple[list[Point], list[Kill]]:
        """Return the wanted ones of the calls, and the kills at them that are tried."""
        parts = self.calls or ("",)
        points = [point for point in found if any(part in str(point) for part in parts)]
        kills = [Kill(point, side) for point in points for side in CallMoment]
        count = math.ceil(len(kills) / self.every)
        return points, Random(self.random_seed).sample(kills, count)


def explore(wanted: Wanted, rehearsal: CombinedRehearsal, watcher: Watcher) -> Iterator[Tally]:
    """Explore each operation of each actuator, and yield each result as soon as it exists.

    Raises ActuatorError or ApiError if the exploration is not possible.
    """
    rehearsal.require_shared()
    with (
        tempfile.TemporaryDirectory(prefix="explore-") as directory,
        open_ground(rehearsal, Path(directory), wanted.patience, watcher.say) as ground,
        runners(rehearsal.references, ground.folder, _AT_ONCE) as run,
    ):
        for name, operation in wanted.of(ground.actuators):
            ground.renew()
            stage = ExplorerStage(ground, name, operation)
            tally = Tally(kind=name, operation=operation)
            one = _Exploration(ground, stage, run, watcher, tally)
            yield one.tally(wanted)


@attrs.frozen
class _Exploration:
    """The exploration of one operation of one actuator."""

    _ground: Ground
    _stage: ExplorerStage
    _run: Callable[[Order, Callable[[], bool]], ProcessEnd]
    _watcher: Watcher
    _tally: Tally

    def tally(self, wanted: Wanted) -> Tally:
        """Count the calls in one shoot, then kill at the wanted ones, each in its own shoot."""
        try:
            return self._explored(wanted)
        except (ActuatorError, ApiError) as error:
            failure = ExplorerFailure(at="", problems=[f"it could not be explored: {error}"])
            return attrs.evolve(self._tally, failures=[failure])

    def _explored(self, wanted: Wanted) -> Tally:
        [counted] = self._tried([None])
        points, kills = wanted.kills(points_of(read_lines(self._calls(counted))))
        tally = attrs.evolve(self._tally, points=points)
        if counted.problems:  # broken without any kill
            return attrs.evolve(tally, failures=[counted.failure])
        self._watcher.say(f"{self._tally}: {len(points)} calls, {len(kills)} kills")
        size = len(kills) or 1
        if self._ground.rehearsal.with_shoot_api:
            size = most_servers(_MAX_SHOOT_APIS)
        groups = [kills[start : start + size] for start in range(0, len(kills), size)]
        trials = [trial for group in groups for trial in self._tried(group)]
        missed = sum(trial.end is ProcessEnd.STOPPED and not trial.problems for trial in trials)
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
                self._stage.makes.update(item.type for item in without(found, trial.case.others))
            self._judge(trials, judge_death)
            with self._ground.serving([trial.names.type for trial in trials]):
                self._wait(trials)
        self._judge(trials, judge_end)
        for trial in trials:
            trial.problems += self._stage.release(trial)
            self._ground.rehearsal.servers.end(trial.shoot.technical_id)
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
        order = Order(
            kubeconfig=str(self._ground.kubeconfig),
            actuators=self._stage.actuators,
            type=trial.names.type,
            shared=self._ground.rehearsal.share(),
            calls=str(self._calls(trial)),
            seconds=round(self._ground.patience),
            kill=trial.kill,
        )
        trial.end = self._run(order, lambda: not self._stage.unfinished(trial))
        if trial.end is ProcessEnd.LATE:
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
