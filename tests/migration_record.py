"""An independent record of what happens in a migration drill, and its comparison with the report.

It watches both seeds with code of its own, and notes how the outside world was used and which
processes were killed.
"""

from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import pytest
from drill_record import DELAY, SHOOT, is_ready

from actuator.interface import kind_of, resource_of
from actuator.meta import Raw
from generic.testing.drill.migration import run
from generic.testing.rehearsal import CombinedRehearsal
from generic.testing.watching import DELETED
from hack.gardenlet.watching import Log, Version, watched

Key = tuple[str, str]
"""Kind and name."""


class MigrationRecord:
    """What happened in one drill."""

    def __init__(self) -> None:
        self.seeds = {"source": Log(), "destination": Log()}
        self.kills: list[float] = []
        self.outside: list[list[Any]] = []
        """The answers of the outside world."""

    def differences(self, report: Raw) -> list[str]:
        """The fields of the report that tell something else."""
        told = report["evidence"]
        start = self.kills[0] - told["kills"][0]["at"] if told["kills"] and self.kills else 0.0
        pairs: dict[str, tuple[Any, Any]] = {
            "outside": (
                [told[f"outside{when}"] for when in ("Before", "Moved", "After")],
                [[attrs.asdict(one) for one in found] for found in self.outside[-3:]],
            ),
            "kills": (
                [round(one["at"] - told["kills"][0]["at"]) for one in told["kills"]],
                [round(at - self.kills[0]) for at in self.kills],
            ),
        }
        for move in told["moves"]:
            for moment, real in self._moments(move["shoot"], start).items():
                if not _agree(move[moment], real):
                    pairs[f"{move['shoot']}: {moment}"] = (move[moment], real)
        arrived = {
            (one["shoot"], one["what"]): one["sent"] == one["came"] for one in self._of(told)
        }
        pairs["arrivals"] = (arrived, self._arrived(one["shoot"] for one in told["moves"]))
        return [
            f"{name}: {in_report!r}, but it was {real!r}"
            for name, (in_report, real) in pairs.items()
            if in_report != real and not _is_close(in_report, real)
        ]

    def _moments(self, shoot: str, start: float) -> dict[str, float | None]:
        """The earliest seconds at which each step of a shoot can have ended."""
        here, there = (self._versions(seed, shoot) for seed in ("source", "destination"))
        return {
            "ready": _last_of_all(here, _is_ready, start),
            "handedOver": _last_of_all(here, _is_gone, start),
            "restored": _last_of_all(there, _is_ready, start),
            "gone": _last_of_all(there, _is_gone, start),
        }

    def _versions(self, seed: str, shoot: str) -> dict[Key, list[Version]]:
        """The versions of a shoot's objects in a seed, except those that belong to the seed."""
        found: dict[Key, list[Version]] = defaultdict(list)
        for one in self.seeds[seed].versions():
            meta, kind = one.obj["metadata"], one.obj["kind"]
            if kind != "BackupBucket" and (meta.get("labels") or {}).get(SHOOT) == shoot:
                found[kind, meta["name"]].append(one)
        return found

    def _of(self, told: Raw) -> Iterator[Raw]:
        for one in told["arrivals"]:
            if one["what"].startswith("state of "):
                yield one

    def _arrived(self, shoots: Iterable[str]) -> dict[Key, bool]:
        """Whether the last state in the source was the first one in the destination."""
        found = {}
        for shoot in shoots:
            here, there = (self._states(seed, shoot) for seed in ("source", "destination"))
            for (kind, name), states in here.items():
                came = there.get((kind, name), [None])[0]
                found[shoot, f"state of {kind} {name}"] = states[-1] == came
        return found

    def _states(self, seed: str, shoot: str) -> dict[Key, list[Any]]:
        """The states of each object that has one, in order."""
        found = {
            key: [(one.obj.get("status") or {}).get("state") for one in versions]
            for key, versions in self._versions(seed, shoot).items()
        }
        kept = {key: [state for state in all_ if state] for key, all_ in found.items()}
        return {key: states for key, states in kept.items() if states}


def _is_ready(version: Version) -> bool:
    return version.event != DELETED and is_ready(version.obj)


def _is_gone(version: Version) -> bool:
    return version.event == DELETED


def _last_of_all(objects: dict[Key, list[Version]], reached: Any, start: float) -> float | None:
    """When the last of these objects first was as wanted; None if one never was."""
    firsts = [next((v.at for v in found if reached(v)), None) for found in objects.values()]
    times = [at for at in firsts if at is not None]
    return max(times) - start if times and len(times) == len(firsts) else None


def _agree(told: float | None, real: float | None) -> bool:
    """The step ends after its last object; a later object may also be made by a retry."""
    if told is None or real is None:
        return told is None and real is None
    return real <= told + DELAY


def _is_close(told: Any, real: Any) -> bool:
    """Whether both are lists of seconds that differ by the rounding alone."""
    if not (isinstance(told, list) and isinstance(real, list) and len(told) == len(real)):
        return False
    numbers: Iterable[Any] = zip(told, real, strict=True)
    return all(isinstance(a, int) and isinstance(b, int) and abs(a - b) <= 1 for a, b in numbers)


@contextmanager
def recording(monkeypatch: pytest.MonkeyPatch) -> Iterator[MigrationRecord]:
    """Record the migration drill that runs meanwhile."""
    record, logs = MigrationRecord(), iter(["source", "destination"])
    opened, left, kill = run.embedded_seed, CombinedRehearsal.left_outside, os.kill

    @contextmanager
    def open_recorded(rehearsal: CombinedRehearsal, say: Any) -> Iterator[Any]:
        resources = [resource_of(kind_of(one)) for one in rehearsal.actuators()]
        with (
            opened(rehearsal, say) as seed,
            watched(seed.admin, resources, record.seeds[next(logs)]),
        ):
            yield seed

    def left_outside(self: CombinedRehearsal) -> Any:
        found = list(left(self))
        record.outside.append(found)
        return found

    def count(pid: int, number: int) -> None:
        if number == signal.SIGKILL:
            record.kills.append(time.monotonic())
        kill(pid, number)

    monkeypatch.setattr(run, "embedded_seed", open_recorded)
    monkeypatch.setattr(CombinedRehearsal, "left_outside", left_outside)
    monkeypatch.setattr(os, "kill", count)
    yield record
