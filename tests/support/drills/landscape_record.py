"""An independent record of a drill in a landscape, and its comparison with the report.

It watches the garden and the seed with code of its own, and notes the answers to the owners of
the Shoots. `FIELDS` has each field of the report.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from actuator.errors import NotFound
from actuator.interface import Resource, kind_of, resource_of
from actuator.meta import Raw, wire_name
from actuator.v1alpha1 import KINDS
from generic.kube.client import HttpClient, connect
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.reconciler.orphans import ORPHANS
from generic.testing.drill import course
from generic.testing.drill.evidence import Act
from generic.testing.drill.landscape import extensionsdown
from generic.testing.drill.landscape import run as landscape_run
from generic.testing.drill.landscape.rules import ForceAnswer, ShootStory
from generic.testing.drill.landscape.run import LandscapeRun
from generic.testing.landscape import users
from generic.testing.landscape.users import ShootOwner
from generic.testing.rehearsal import CombinedRehearsal
from generic.testing.watching import DELETED
from hack.gardenlet.watching import ObjectVersion, WatchLog, watched
from tests.support.drills import record as drill_record
from tests.support.drills.record import DELAY, EVENTS, DrillRecord, Real, another, recording

SHOOTS = Resource("core.gardener.cloud/v1beta1", "shoots")
NOT_REACHED = "The drill ended before it caused the failure."
DOWN = "The programs of all extensions are stopped: no operation begins."
LASTS = 2 * DELAY
"""Seconds after which the drill has looked at a state of a Shoot, on a busy machine."""


class LandscapeRecord(DrillRecord):
    """The events of one drill in a landscape."""

    def __init__(self, run: LandscapeRun, began: float, output: Path) -> None:
        seed = run._world.landscape.seeds[0]
        self.client = connect(seed.cluster.kubeconfig, connections=40)
        super().__init__(run._rehearsal, SimpleNamespace(direct=self.client, ended=()), began)  # type: ignore[arg-type]
        self.run, self.output = run, output
        self.garden = WatchLog()
        for kind in map(kind_of, self.rehearsal.actuators()):
            self.finalizers.setdefault(kind.name, set()).add(kind.finalizer)
        for cls in KINDS:
            self.finalizers.setdefault(cls.KIND.name, {cls.KIND.finalizer})
        self.asked: list[tuple[str, float, str]] = []
        """The name of a Shoot, when its force deletion was asked for, and the refusal."""
        self.views: list[tuple[str, bool]] = []
        """The name of a Shoot that exists, and whether it had an error, for each look."""
        self.repairs: list[float] = []
        self.looked: list[float] = []
        """When the drill listed the resources outside."""
        self.causes: list[str] = []
        """The scenarios that were caused."""
        self.alive: list[str] = []
        """The processes at the end."""

    @property
    def fields(self) -> Mapping[str, Real]:
        return FIELDS  # type: ignore[return-value]

    @property
    def names(self) -> list[str]:
        """The names of the Shoots of this drill."""
        return list(self.run._owners)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record everything until the context is left."""
        kinds = [*map(kind_of, self.rehearsal.actuators()), *(cls.KIND for cls in KINDS)]
        found = [*dict.fromkeys(map(resource_of, kinds)), CLUSTERS, EVENTS, ORPHANS, NAMESPACES]
        served = [resource for resource in found if is_served(self.client, resource)]
        garden = next(iter(self.run._owners.values())).client
        with (
            watched(self.client, served, self.log),
            watched(garden, [SHOOTS], self.garden),  # type: ignore[arg-type]
        ):
            yield

    def shoot_of(self, meta: Raw) -> str:
        ids = [self.technical_id(name) for name in self.names]
        where = [id for id in ids if id and id == meta.get("namespace")]
        named = [id for id in ids if id and str(meta["name"]).startswith(f"{id}--")]
        return next(iter(where or (named if not meta.get("namespace") else [])), "")

    def lives(self) -> list[Raw]:
        """The facts about each object; only events tell outcomes of managers in pods."""
        return [{**live, "outcomes": []} for live in super().lives()]

    def versions(self, name: str) -> list[ObjectVersion]:
        """The versions of a Shoot, until the drill had looked at everything."""
        return [
            item
            for item in self.garden.versions()
            if item.obj["metadata"]["name"] == name and item.at <= self.until
        ]

    def technical_id(self, name: str) -> str:
        found = [status_of(item.obj).get("technicalID", "") for item in self.versions(name)]
        return str(next(filter(None, reversed(found)), ""))

    def at(self, name: str, holds: Callable[[Raw], bool], *, gone: bool = False) -> float | None:
        """When a version of a Shoot was first like that, in seconds since the drill began."""
        versions = [item for item in self.versions(name) if (item.event == DELETED) is gone]
        return self._first(item for item in versions if holds(item.obj))

    def states(self, name: str) -> list[tuple[float, float, Raw]]:
        """Each version of a Shoot, with the time when it began and ended."""
        versions = self.versions(name)
        ends = [*(after.at for _, after in pairwise(versions)), self.until]
        return [
            (item.at - self.start, end - self.start, item.obj)
            for item, end in zip(versions, ends, strict=True)
            if item.event != DELETED
        ]

    def acts(self) -> list[Raw]:
        """The steps that the drill reported."""
        own = tuple(f"{name}: " for name in self.names)
        said = [say for say in self.says if self.start <= say[0] <= self.until]
        return [
            {"at": at - self.start, "text": text}
            for at, text in said
            if not text.startswith(own) and not drill_record.COUNT.search(text)
        ]

    def forced(self, name: str) -> float | None:
        """When gardener-apiserver accepted the force deletion."""
        found = [at for shoot, at, refusal in self.asked if shoot == name and not refusal]
        return found[0] - self.start if found else None


def is_served(client: HttpClient, resource: Resource) -> bool:
    try:
        client.list(resource)
    except NotFound:
        return False
    return True


def status_of(shoot: Raw) -> Raw:
    return shoot.get("status") or {}


def codes_of(shoot: Raw) -> list[str]:
    errors = status_of(shoot).get("lastErrors") or []
    return list(dict.fromkeys(code for error in errors for code in error.get("codes") or []))


def is_deleting(shoot: Raw) -> bool:
    return "deletionTimestamp" in shoot["metadata"]


def is_ready(shoot: Raw) -> bool:
    status = status_of(shoot)
    seen = status.get("observedGeneration") == shoot["metadata"]["generation"]
    operation = status.get("lastOperation") or {}
    return seen and operation.get("state") == "Succeeded" and not is_deleting(shoot)


def view(shoot: Raw) -> str:
    """Return the view of the owner of a Shoot."""
    operation = status_of(shoot).get("lastOperation") or {}
    if not operation.get("type"):
        return "waiting for gardenlet"
    tasks = str(operation.get("description", "")).split(", ")
    more = f" and {len(tasks) - 1} more" if tasks[1:] else ""
    percent = f"{operation.get('progress', 0)} %"
    lines = [f"{operation['type']} {operation.get('state', '')} {percent}: {tasks[0]}{more}"]
    lines += [", ".join(codes_of(shoot))] if codes_of(shoot) else []
    lines += [error["description"] for error in status_of(shoot).get("lastErrors") or []]
    return "\n  ".join(lines)


def doing(shoot: Raw) -> str:
    operation = status_of(shoot).get("lastOperation") or {}
    codes = ", ".join(codes_of(shoot)) or "no code"
    return f"{operation.get('type', '')} {operation.get('state', '')}, {codes}"


def _around(at: float, begin: float, end: float) -> bool:
    return begin - DELAY <= at <= end + DELAY


def _answers(record: LandscapeRecord, name: str, told: list[Raw]) -> list[Raw]:
    """The answers that differ from the one before, with a state of the Shoot at that time."""
    asked = [(at - record.start, refusal) for shoot, at, refusal in record.asked if shoot == name]
    found: list[Raw] = []
    for at, refusal in asked:
        if found and found[-1]["refusal"] == refusal:
            continue
        states = [doing(obj) for begin, end, obj in record.states(name) if _around(at, begin, end)]
        states += ["gone"] if record.at(name, lambda _: True, gone=True) else []
        said = told[len(found)]["while"] if len(told) > len(found) else ""
        real = said if said in states else states
        found.append({"at": at, "while": real, "refusal": refusal})
    return found


def _moments(record: LandscapeRecord, name: str, told: list[Raw]) -> list[Raw]:
    """The reported moments if each happened and none is missing; else the contradictions."""
    gone = record.at(name, lambda _: True, gone=True)
    seen = [(begin, end, view(obj)) for begin, end, obj in record.states(name)]
    seen += [] if gone is None else [(gone, gone + LASTS, "gone")]
    noted = [(item["at"], item["at"], item["text"]) for item in record.acts()]
    noted += _asked(record, name, {moment["text"] for moment in told})
    needed = {text for begin, end, text in seen if end - begin >= LASTS}
    needed |= {text for _, _, text in noted}
    wrong = [
        moment
        for moment in told
        if not any(
            text == moment["text"] and _around(moment["at"], *when) for *when, text in seen + noted
        )
    ]
    late = [before for before, after in pairwise(told) if before["at"] > after["at"] + LASTS]
    missing = sorted(needed - {moment["text"] for moment in told})
    return (
        [{"wrong": wrong, "missing": missing, "late": late}] if wrong or late or missing else told
    )


def _asked(record: LandscapeRecord, name: str, told: set[str]) -> list[tuple[float, float, str]]:
    """The answers to requests for a force deletion; codes are those of any state of the Shoot."""
    codes = [doing(obj).partition(", ")[2] for _, _, obj in record.states(name)]
    found = []
    for item in _answers(record, name, []):
        refused = item["refusal"]
        possible = [f"refused: {refused}"] if refused else [f"accepted ({code})" for code in codes]
        texts = [f"force deletion {text}" for text in possible]
        text = next((text for text in texts if text in told), texts[-1])
        found.append((item["at"], item["at"], text))
    return found


def _codes(record: LandscapeRecord, name: str, told: list[str]) -> list[str]:
    states = record.states(name)
    shown = list(dict.fromkeys(code for _, _, obj in states for code in codes_of(obj)))
    lasting = {code for a, b, obj in states if b - a > LASTS for code in codes_of(obj)}
    return told if lasting <= {*told} <= {*shown} and len({*told}) == len(told) else shown


def _shows_error(record: LandscapeRecord, name: str, *, told: bool) -> bool:
    """Whether the last looks showed an error; two threads look."""
    last = [errors for shoot, errors in record.views if shoot == name][-2:]
    return told if told in last else any(last)


def _shoots(record: LandscapeRecord, told: Raw) -> list[Raw]:
    stories = {story["name"]: story for story in told["shoots"]}
    return [_story(record, name, stories.get(name, {})) for name in record.names]


def _story(record: LandscapeRecord, name: str, told: Raw) -> Raw:
    return {
        "name": name,
        "technicalId": record.technical_id(name),
        "moments": _moments(record, name, told.get("moments", [])),
        "answers": _answers(record, name, told.get("answers", [])),
        "codes": _codes(record, name, told.get("codes", [])),
        "showsError": _shows_error(record, name, told=told.get("showsError", False)),
        "created": record.at(name, lambda _: True) or 0.0,
        "ready": record.at(name, is_ready),
        "deleted": record.at(name, is_deleting),
        "forced": record.forced(name),
        "gone": record.at(name, lambda _: True, gone=True),
    }


def _scenario_text(record: LandscapeRecord, _told: Raw) -> str:
    texts = {**record.rehearsal.all_scenarios, "extensions-down": DOWN}
    return "".join(texts[cause] for cause in record.causes) or NOT_REACHED


def _repairs(record: LandscapeRecord, _told: Raw) -> list[str]:
    """All but the last one, with which each drill ends."""
    down = record.run._settings.scenario == "extensions-down"
    what = "The extensions" if down else "The outside world"
    found = []
    for repaired in record.repairs[:-1]:
        at = repaired - record.start
        ends = {
            name: [record.forced(name), record.at(name, lambda _: True, gone=True)]
            for name in record.names
        }
        left = [n for n, end in ends.items() if all(e is None or e > at for e in end)]
        found.append(
            f"{what} had to be repaired: {', '.join(left)} had no code that allows a force"
        )
    return found


def _remaining(record: LandscapeRecord, _told: Raw) -> list[str]:
    """The namespaces of Shoots when the drill looked."""
    ids = [record.technical_id(name) for name in record.names]
    before = [item for item in record.of("Namespace") if item.at <= record.looked[-1]]
    newest = {item.obj["metadata"]["name"]: item.event for item in before}
    return [f"namespace {id}" for id in ids if newest.get(id, DELETED) != DELETED]


def _drill(record: LandscapeRecord, told: Raw) -> str:
    """The id in the name of the report's own file."""
    found = [path.stem.removeprefix("report-") for path in record.output.glob("report-*.json")]
    return told["drill"] if told["drill"] in found else str(found)


def _new(record: LandscapeRecord, number: int) -> list[Raw]:
    before = record.outside[0] if record.outside else []
    found = record.outside[number] if len(record.outside) > 1 else []
    return [attrs.asdict(item) for item in found if item not in before]


def _gardener(record: LandscapeRecord, _told: Raw) -> str:
    """The version that gardenlet writes into the status of Shoots."""
    found = [
        status_of(obj).get("gardener", {}).get("version")
        for name in record.names
        for _, _, obj in record.states(name)
    ]
    return str(next(filter(None, found), ""))


def _processes(record: LandscapeRecord, _told: Raw) -> list[str]:
    ids = [record.technical_id(name) for name in record.names]
    return [item for item in record.alive if any(id and id in item for id in ids)]


def _nothing(value: Any) -> Callable[[LandscapeRecord, Raw], Any]:
    return lambda _record, _told: value


FIELDS: Mapping[str, Callable[[LandscapeRecord, Raw], Any]] = {
    **drill_record.FIELDS,
    "drill": _drill,
    "scenario": lambda record, _: record.run._settings.scenario,
    "scenarioText": _scenario_text,
    "broken": _nothing(""),
    "resourcesBefore": lambda record, _: _new(record, 1),
    "resourcesAfter": lambda record, _: _new(record, -1),
    "target": _nothing(None),
    "manager": _nothing(""),
    "path": _nothing(""),
    "acts": lambda record, _: record.acts(),
    "stopped": _nothing(""),
    "scale": _nothing(None),
    "unfinished": _nothing([]),
    "stripped": _nothing(None),
    "bystanders": _nothing([]),
    "remainingObjects": _remaining,
    "counted": _nothing({}),
    "removedExternally": _nothing(0),
    "failedWhileStuck": _nothing({}),
    "requests": _nothing({}),
    "webhooks": _nothing([]),
    "gardener": _gardener,
    "shoots": _shoots,
    "repairs": _repairs,
    "processes": _processes,
}
"""The real value of each field of the report; the reported one if it is possible."""


def lies(report: Raw) -> Iterator[tuple[str, Raw]]:
    """A report with a false value, for each field, also of Shoots, their moments and answers."""
    paths: list[tuple[Any, ...]] = [(name,) for name in FIELDS]
    paths += [("shoots", 0, wire_name(field)) for field in attrs.fields(ShootStory)]
    for part, cls in (("moments", Act), ("answers", ForceAnswer)):
        paths += [("shoots", 0, part, n, wire_name(f)) for n in range(2) for f in attrs.fields(cls)]
    for *way, last in paths:
        lie = deepcopy(report)
        place = lie["evidence"]
        for step in way:
            place = place[step]
        place[last] = another(place[last])
        yield ".".join(map(str, [*way, last])), lie


Note = Callable[[Callable[[LandscapeRecord], object]], None]


def _note_owners(patch: pytest.MonkeyPatch, note: Note) -> None:
    """Note the answers to the owners of Shoots."""
    force, view_of = ShootOwner.force_delete, users.view_of

    def asked(self: ShootOwner) -> str:
        refusal = force(self)
        note(lambda record: record.asked.append((self.name, time.monotonic(), refusal)))
        return refusal

    def viewed(shoot: Raw) -> Any:
        found = shoot["metadata"]["name"], bool(status_of(shoot).get("lastErrors"))
        note(lambda record: record.views.append(found))
        return view_of(shoot)

    patch.setattr(ShootOwner, "force_delete", asked)
    patch.setattr(users, "view_of", viewed)


def _note_failures(patch: pytest.MonkeyPatch, note: Note) -> None:
    """Note when the outside world or the extensions break, are repaired, and are listed."""
    repair, cause = CombinedRehearsal.repair_failure, CombinedRehearsal.break_where_known
    look, stop = CombinedRehearsal.remaining_resources, extensionsdown.stop_extensions

    def repaired(self: CombinedRehearsal) -> None:
        note(lambda record: record.repairs.append(time.monotonic()))
        repair(self)

    def broken(self: CombinedRehearsal, scenario: str) -> None:
        note(lambda record: record.causes.append(scenario))
        cause(self, scenario)

    def stopped(seed: Any) -> None:
        note(lambda record: record.causes.append("extensions-down"))
        stop(seed)

    def looked(self: CombinedRehearsal) -> Any:
        note(lambda record: record.looked.append(time.monotonic()))
        return look(self)

    patch.setattr(CombinedRehearsal, "repair_failure", repaired)
    patch.setattr(CombinedRehearsal, "break_where_known", broken)
    patch.setattr(CombinedRehearsal, "remaining_resources", looked)
    patch.setattr(landscape_run, "stop_extensions", stopped)


@contextmanager
def recording_landscapes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[DrillRecord]]:
    """Record each drill in a landscape."""
    rehearse, hold = LandscapeRun.rehearse, course.run_landscape
    drills: list[tuple[float, Path]] = []

    def rehearsed(self: LandscapeRun) -> None:
        record = LandscapeRecord(self, *drills[-1])
        records.append(record)
        with record.watching():
            rehearse(self)
            record.alive = self._world.landscape.processes.alive()

    def note(into: Callable[[LandscapeRecord], object]) -> None:
        for record in records[-1:]:
            into(record)  # type: ignore[arg-type]

    def held(*given: Any) -> Any:
        drills.append((time.monotonic(), given[-1]))
        return hold(*given)

    with recording(monkeypatch) as records:
        _note_owners(monkeypatch, note)
        _note_failures(monkeypatch, note)
        monkeypatch.setattr(LandscapeRun, "rehearse", rehearsed)
        monkeypatch.setattr(course, "run_landscape", held)
        yield records
