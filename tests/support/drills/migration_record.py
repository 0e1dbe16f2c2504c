"""An independent record of the events of a migration drill, and its comparison with the report.

It watches both seeds with code of its own, and notes how the outside world was used, how each step
ended, which processes were killed, and, by `noted_calls`, which operations were called. `FIELDS`
has each field of the report.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import re
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from actuator.interface import CONFIG_MAPS, SECRETS, kind_of, resource_of
from actuator.meta import Raw
from generic.testing.drill import seeds
from generic.testing.drill.breaks import MIGRATION_BREAKS
from generic.testing.drill.kills.processes import CrashRunner
from generic.testing.drill.migration import run
from generic.testing.garden import GardenletFlows
from generic.testing.rehearsal import CombinedRehearsal
from generic.testing.watching import DELETED
from hack.gardenlet.watching import ObjectVersion, WatchLog, watched
from tests.support.drills import noted_calls
from tests.support.drills.record import DELAY, SHOOT, Real, differing, is_ready
from tests.support.drills.record import FIELDS as COMMON

SEEDS = ("source", "destination")
TEXT = "Shoots move to another seed, and the managers of both are killed meanwhile."
MOMENTS = {
    "ready": "create",
    "handedOver": "migrate",
    "restored": "restore",
    "gone": "delete_afterwards",
}
"""The moments of a shoot, and the step that ends there."""
STEPS = (*MOMENTS.values(), "part", "delete")
OWN = ("Secret", "ConfigMap")
"""The kinds that extensions refer to."""
UNFINISHED = 15.0
"""Seconds before a kill in which a call may be recorded and not made, on a busy machine."""
Key = tuple[str, str]
"""Kind and name."""


class MigrationRecord:
    """The events of one drill."""

    def __init__(self, noted: Path) -> None:
        self.noted = noted
        self.seeds = {seed: WatchLog() for seed in SEEDS}
        self.processes: dict[int, str] = {}
        """The seed of each process that starts managers."""
        self.kills: list[Raw] = []
        self.outside: list[list[Any]] = []
        """The answers of the outside world."""
        self.phases: dict[str, float] = {}
        """When each phase of the drill began, on the monotonic clock."""
        self.steps: list[tuple[str, str, float, str]] = []
        """The shoot and the name of each step, when it ended, and its error."""
        self.numbers: list[Any] = []
        """The numbers with which generators of random choices were made."""
        self.rehearsal: CombinedRehearsal
        self.settings: Any = None

    @property
    def began(self) -> float:
        return self.phases["__init__"]

    def differences(self, report: Raw) -> list[str]:
        """The fields of the report that tell something else."""
        told = report["evidence"]
        broken = any(finding["problems"] for finding in report["findings"])
        head = {**told, "version": report["version"], "passed": report["passed"]}
        expected = {name: real(self, told) for name, real in FIELDS.items()}
        return differing(head, expected | {"version": 3, "passed": not broken})

    def contradicts(self, report: Raw) -> bool:
        """Whether a report differs from the record, also in its shape."""
        try:
            return bool(self.differences(report))
        except (AttributeError, KeyError, TypeError):
            return True

    def shoots(self) -> list[str]:
        """The shoots, by their number."""
        found = {shoot for seed in SEEDS for shoot, _ in self.objects(seed)}
        return sorted(found, key=lambda item: int(item.rpartition("--s")[2]))

    def objects(self, seed: str) -> dict[tuple[str, Key], list[ObjectVersion]]:
        """The versions of each object of a shoot, except those that belong to the seed."""
        found: dict[tuple[str, Key], list[ObjectVersion]] = defaultdict(list)
        for version in self.seeds[seed].versions():
            meta = version.obj["metadata"]
            kind = version.obj["kind"]
            shoot = (meta.get("labels") or {}).get(SHOOT)
            if shoot and kind not in ("BackupBucket", *OWN):
                found[shoot, (kind, meta["name"])].append(version)
        return found

    def of(self, seed: str, shoot: str) -> dict[Key, list[ObjectVersion]]:
        """The versions of each object of one shoot."""
        return {key: found for (owner, key), found in self.objects(seed).items() if owner == shoot}

    def ended(self, shoot: str, step: str) -> float | None:
        """When the step ended, in seconds of the drill; None if it failed or was not reached."""
        ends = [
            at for item, name, at, error in self.steps if (item, name, error) == (shoot, step, "")
        ]
        return ends[-1] - self.began if ends else None

    def calls(self) -> list[Raw]:
        """The operations that were called, as the report has them, in order."""
        found = noted_calls.read(self.noted)
        for item in found:
            item["seed"] = self.processes[item.pop("process")]
            item["at"] -= self.began
            item["state"] = _digest(item["state"])
        return found

    def left(self, seed: str, until: float) -> list[str]:
        """The objects that were in a seed at a time of the monotonic clock."""
        found = []
        for (shoot, (kind, _)), versions in self.objects(seed).items():
            last = [version for version in versions if version.at <= until][-1:]
            for item in last:
                held = ", ".join(item.obj["metadata"].get("finalizers") or []) or "no finalizer"
                if item.event != DELETED:
                    found.append(f"{kind} {shoot} is still there, with {held}")
        return found

    def content(self, seed: str, shoot: str, key: Key, until: float) -> str:
        """The digest of an object that an extension refers to; "" if there is none."""
        found = [
            version
            for version in self.seeds[seed].versions()
            if (version.obj["kind"], version.obj["metadata"]["name"]) == key
            and version.obj["metadata"].get("namespace") == shoot
            and version.at <= until
            and version.event != DELETED
        ]
        apart = ("apiVersion", "kind", "metadata", "status")
        return _digest({k: v for k, v in found[-1].obj.items() if k not in apart}) if found else ""


def _digest(value: Any) -> str:
    if value is None:
        return ""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def _drill(record: MigrationRecord, _told: Raw) -> str:
    found = {re.sub(r"^shoot--drill-(\w+)--s\d+$", r"\1", shoot) for shoot in record.shoots()}
    return " and ".join(sorted(found))


def _broken(record: MigrationRecord, _told: Raw) -> str:
    rule = record.settings.break_rule
    return f"{rule}: {MIGRATION_BREAKS[rule].text}" if rule else ""


def _seconds(record: MigrationRecord, told: Raw) -> Any:
    least = record.phases["finish"] - record.began
    return told["seconds"] if least <= told["seconds"] <= least + DELAY else least


def _moves(record: MigrationRecord, told: Raw) -> list[Raw]:
    """The end of each step, which is not before the last of the shoot's objects was so."""
    found = []
    for shoot in record.shoots():
        errors = [error for step, _, _, error in record.steps if step == shoot and error]
        moments = {moment: record.ended(shoot, step) for moment, step in MOMENTS.items()}
        for moment, at in _last(record, shoot).items():
            ended = moments[moment]
            if ended is not None and (at is None or at > ended + DELAY):
                moments[moment] = at
        found.append({"shoot": shoot, "problem": errors[0] if errors else "", **moments})
    return found


def _last(record: MigrationRecord, shoot: str) -> dict[str, float | None]:
    """When the last object of a shoot first was as wanted; None if one never was."""
    here, there = (record.of(seed, shoot) for seed in SEEDS)
    wanted: dict[str, tuple[dict[Key, list[ObjectVersion]], Callable[[ObjectVersion], bool]]] = {
        "ready": (here, _is_ready),
        "handedOver": (here, _is_gone),
        "restored": (there, _is_ready),
        "gone": (there, _is_gone),
    }
    found = {}
    for moment, (objects, reached) in wanted.items():
        firsts = [next((v.at for v in all_ if reached(v)), None) for all_ in objects.values()]
        times = [at - record.began for at in firsts if at is not None]
        found[moment] = max(times) if times and len(times) == len(firsts) else None
    return found


def _is_ready(version: ObjectVersion) -> bool:
    return version.event != DELETED and is_ready(version.obj)


def _is_gone(version: ObjectVersion) -> bool:
    return version.event == DELETED


def _calls(record: MigrationRecord, told: Raw) -> list[Raw]:
    """The noted calls; also one that was recorded, and then its process was killed."""
    left = record.calls()
    found = []
    for call in told["calls"]:
        made = [item for item in left if _is_same(item, call)]
        if made:
            left.remove(made[0])
        if made or _is_cut(record, call):
            found.append(call)
    return found + left


def _is_cut(record: MigrationRecord, call: Raw) -> bool:
    """Whether its process was killed before the call can have been made."""
    kills = [kill["at"] for kill in record.kills if kill["seed"] == call["seed"]]
    return any(-DELAY <= at - call["at"] <= UNFINISHED for at in kills)


def _is_same(one: Raw, other: Raw) -> bool:
    is_near = abs(one["at"] - other["at"]) <= DELAY
    return is_near and {**one, "at": 0} == {**other, "at": 0}


def _arrivals(record: MigrationRecord, _told: Raw) -> list[Raw]:
    found = []
    for shoot in record.shoots():
        if record.ended(shoot, "migrate") is not None:
            found += [*_states(record, shoot), *_resources(record, shoot)]
    return found


def _states(record: MigrationRecord, shoot: str) -> Iterator[Raw]:
    """The last state in the source, and the one that the destination first called with."""
    restored = [
        call for call in record.calls() if (call["shoot"], call["seed"]) == (shoot, SEEDS[1])
    ]
    for (kind, name), versions in record.of(SEEDS[0], shoot).items():
        state = (versions[-1].obj.get("status") or {}).get("state")
        came = [
            obj["state"]
            for obj in restored
            if (obj["operation"], obj["kind"], obj["name"]) == ("restore", kind, name)
        ]
        if state is not None:
            what = f"state of {kind} {name}"
            yield {"shoot": shoot, "what": what, "sent": _digest(state), "came": [*came, ""][0]}


def _resources(record: MigrationRecord, shoot: str) -> Iterator[Raw]:
    """The objects that the extensions of a shoot refer to."""
    keys: set[Key] = set()
    for versions in record.of(SEEDS[0], shoot).values():
        for resource in (versions[-1].obj.get("status") or {}).get("resources") or ():
            keys.add((resource["resourceRef"]["kind"], resource["resourceRef"]["name"]))
    for kind, name in keys:
        yield {
            "shoot": shoot,
            "what": f"{kind} {name}",
            "sent": record.content(SEEDS[0], shoot, (kind, name), math.inf),
            "came": record.content(SEEDS[1], shoot, (kind, name), record.phases["delete"]),
        }


def _staying(record: MigrationRecord, _told: Raw) -> list[str]:
    """The kinds of which no object was asked to migrate."""
    moved = {
        version.obj["kind"]
        for version in record.seeds[SEEDS[0]].versions()
        if (version.obj["metadata"].get("annotations") or {}).get("gardener.cloud/operation")
        == "migrate"
    }
    return sorted({kind_of(actuator).name for actuator in record.rehearsal.actuators()} - moved)


def _outside(number: int) -> Real:
    return lambda record, _: [attrs.asdict(item) for item in record.outside[number]]


def _random_seed(record: MigrationRecord, _told: Raw) -> Any:
    """The first generator, from which all others come."""
    return next((number for number in record.numbers if isinstance(number, int)), 0)


FIELDS: Mapping[str, Callable[[Any, Raw], Any]] = {
    "drill": _drill,
    "title": COMMON["title"],
    "scenario": lambda *_: "migration",
    "scenarioText": lambda *_: TEXT,
    "broken": _broken,
    "started": COMMON["started"],
    "shootsOnly": COMMON["shootsOnly"],
    "resourcesBefore": _outside(-3),
    "resourcesMoved": _outside(-2),
    "resourcesAfter": _outside(-1),
    "seconds": _seconds,
    "origin": lambda record, told: (
        COMMON["origin"](record, told) if record.settings.origin.command else _NO_ORIGIN
    ),
    "randomSeed": _random_seed,
    "moves": _moves,
    "calls": _calls,
    "kills": lambda record, _: record.kills,
    "arrivals": _arrivals,
    "staying": _staying,
    "leftInSource": lambda record, _: record.left(SEEDS[0], record.phases["delete"]),
    "leftInDestination": lambda record, _: record.left(SEEDS[1], math.inf),
}
"""The real value of each field of the report; of the reported one if it is possible."""
_NO_ORIGIN: Raw = {"version": "", "commit": "", "command": "", "extensions": ""}


def _note_phases(patch: pytest.MonkeyPatch, record: MigrationRecord) -> None:
    """Note when each phase begins, how each step of a shoot ends, and the random numbers."""

    def phase(name: str, inner: Any) -> Any:
        def begin(self: Any, *given: Any) -> Any:
            record.phases[name] = time.monotonic()
            if given:
                record.settings, record.rehearsal = given[:2]
            return inner(self, *given)

        return begin

    def step(name: str, inner: Any) -> Any:
        def take(self: GardenletFlows, *given: Any) -> Any:
            error = ""
            try:
                return inner(self, *given)
            except Exception as failed:
                error = str(failed)
                raise
            finally:
                record.steps.append((self._shoot.technical_id, name, time.monotonic(), error))

        return take

    class Noting(random.Random):
        def __init__(self, number: Any = None) -> None:
            record.numbers.append(number)
            super().__init__(number)

    for name in ("__init__", "create", "move_away", "move_in", "delete", "finish"):
        patch.setattr(run._Steps, name, phase(name, getattr(run._Steps, name)))
    for name in STEPS:
        patch.setattr(GardenletFlows, name, step(name, getattr(GardenletFlows, name)))
    patch.setattr(random, "Random", Noting)


def _note_kills(patch: pytest.MonkeyPatch, record: MigrationRecord) -> None:
    start = CrashRunner.start
    kill = os.kill

    def starting(self: CrashRunner, *given: Any) -> None:
        process = self._process.pid
        record.processes.setdefault(process, SEEDS[min(len(record.processes), 1)])
        start(self, *given)

    def count(pid: int, number: int) -> None:
        if number == signal.SIGKILL:
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            seed = record.processes.get(parent)  # None: no manager, such as an API server
            phase = "restore" if "move_in" in record.phases else "migrate"
            at = time.monotonic() - record.began
            record.kills += [{"seed": seed, "phase": phase, "at": at}] if seed else []
        kill(pid, number)

    patch.setattr(CrashRunner, "start", starting)
    patch.setattr(os, "kill", count)


@contextmanager
def recording(monkeypatch: pytest.MonkeyPatch, noted: Path) -> Iterator[MigrationRecord]:
    """Record the migration drill that runs meanwhile; its actuators write into `noted`."""
    record = MigrationRecord(noted)
    logs = iter(SEEDS)
    opened = seeds.embedded_seed
    left = CombinedRehearsal.remaining_resources

    @contextmanager
    def open_recorded(rehearsal: CombinedRehearsal, say: Any) -> Iterator[Any]:
        resources = [resource_of(kind_of(actuator)) for actuator in rehearsal.actuators()]
        with (
            opened(rehearsal, say) as seed,
            watched(seed.admin, [*resources, SECRETS, CONFIG_MAPS], record.seeds[next(logs)]),
        ):
            yield seed

    def remaining_resources(self: CombinedRehearsal) -> Any:
        found = list(left(self))
        record.outside.append(found)
        return found

    monkeypatch.setenv(noted_calls.FILE, str(noted))
    monkeypatch.setattr(run, "embedded_seed", open_recorded)
    monkeypatch.setattr(CombinedRehearsal, "remaining_resources", remaining_resources)
    _note_phases(monkeypatch, record)
    _note_kills(monkeypatch, record)
    yield record
