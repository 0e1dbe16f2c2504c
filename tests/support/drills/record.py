"""An independent record of the events in a drill's seed, and its comparison with the report.

It watches the seed with code of its own, and notes how the outside world was used. `FIELDS` has
each field of the report.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache, partial
from importlib import metadata
from itertools import pairwise
from typing import Any

import attrs
import pytest

from actuator.errors import ActuatorError, ApiError, NotFound
from actuator.interface import Resource, kind_of, resource_of
from actuator.meta import Raw
from generic.kube.client import HttpClient
from generic.kube.clusters import CLUSTERS
from generic.kube.transport import HttpTransport
from generic.kube.writer import ObjectGone, Writer
from generic.library.lookup import find_all
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.manager.manager import Manager
from generic.reconciler.attempt import Attempt
from generic.reconciler.orphans import ORPHANS
from generic.reconciler.status import Failure
from generic.serving.metrics import Metrics
from generic.testing.drill import bystanders, inventory, paths, run, takeover
from generic.testing.drill.breaks import BREAKS
from generic.testing.drill.bystanders import DISTURBANCE, WITNESS
from generic.testing.drill.evidence import Evidence
from generic.testing.drill.observe import Observer
from generic.testing.drill.paths import PATHS
from generic.testing.drill.world import DrillWorld
from generic.testing.rehearsal import CombinedRehearsal
from generic.testing.watching import DELETED
from generic.tools.cli.terminal import Terminal
from hack.gardenlet.watching import ObjectVersion, WatchLog, watched

EVENTS = Resource("v1", "events")
FINAL = {"Deleted": "deleted", "ForceDeleted": "force_deleted", "Orphaned": "orphaned"}
SHOOT = "shoot.gardener.cloud/technical-id"
FORCE = "confirmation.gardener.cloud/force-deletion"
OPERATION = "gardener.cloud/operation"
MIGRATED = ("Migrate", "Succeeded")
DELAY = 5.0
"""Seconds by which one watch may be later than another, on a busy machine."""
NOTHING = ("Nothing outside fails.", "The drill ended before it caused the failure.")
BEFORE = {
    "webhooks-down": "Webhooks fail, too. ",
    "take-over": "After a take-over from a Go extension: ",
}
"""The beginning of the text of a scenario."""
UNORDERED = {
    *("records", "strips", "bystanders", "unfinished"),
    *("arrivals", "leftInSource", "leftInDestination"),
}
"""Fields whose parts have no order."""
ABSENT = object()
COUNT = re.compile(r": \d+ of \d+$")
"""The progress of a wait, which is no step."""


class DrillRecord:
    """The events of one drill."""

    def __init__(self, rehearsal: CombinedRehearsal, seed: DrillWorld, began: float) -> None:
        self.rehearsal, self.seed, self.began = rehearsal, seed, began
        self.kubernetes = json.loads(seed.direct.send("GET", "/version"))["gitVersion"]
        self.log = WatchLog()
        self.start, self.until = 0.0, math.inf
        """When the drill began, and when it began to clean up, on the monotonic clock."""
        self.finalizers: dict[str, set[str]] = {}
        self.plurals: dict[str, str] = {}
        self.failures: list[float] = []
        """When a scenario was caused."""
        self.cause = ""
        self.outside: list[list[Any]] = []
        """The answers of the outside world."""
        self.says: list[tuple[float, str]] = []
        self.requests: dict[str, tuple[int, int]] = {}
        """The least and the most that the manager had sent for the report, by method."""
        self.failed: dict[str, tuple[Counter[str], Counter[str]]] = {}
        """The least and the most failed deletions, by plural, when counted by outcome or kind."""
        self.writes: list[Write] = []
        self.announced: Counter[str] = Counter()
        """The outcomes that the manager had announced when the drill counted them."""
        self.refused: list[str] = []
        """The requests of gardenlet that a webhook refused."""
        self.steps: list[tuple[str, str]] = []
        """The shoot and the error of each step of a path."""
        self.neighbour_leaves = math.inf
        self.taken_over: tuple[float, float] | None = None
        self.has_looked = False
        self.left: list[str] = []
        """The names of seed objects when the drill began to clean up."""
        self.arguments: tuple[Any, ...] = ()
        self.drill = ""

    def differences(self, report: Raw) -> list[str]:
        """The fields of the report that tell something else."""
        told = report["evidence"]
        self.drill = next((item for item in [told["drill"]] if self.of("Cluster", item)), "")
        broken = any(finding["problems"] for finding in report["findings"])
        head = {**told, "version": report["version"], "passed": report["passed"]}
        expected = {name: real(self, told) for name, real in self.fields.items()}
        expected |= {"version": 3, "passed": not broken}
        return differing(head, expected)

    def contradicts(self, report: Raw) -> bool:
        """Whether a report differs from the record, also in its shape."""
        try:
            return bool(self.differences(report))
        except (AttributeError, KeyError, TypeError):
            return True

    def flag(self, name: str, default: str = "") -> str:
        """The value of a flag of the command."""
        given = [str(argument) for argument in self.arguments]
        return given[given.index(name) + 1] if name in given else default

    @property
    def fields(self) -> Mapping[str, Real]:
        """The real value of each field of the report."""
        return FIELDS

    @property
    def path(self) -> list[str]:
        """The steps of the path; empty for a force deletion."""
        return PATHS.get(self.flag("--path"), "").split()

    def answer(self, number: int) -> list[Raw]:
        """An answer of the outside world; empty if it was not asked so often."""
        found = self.outside[number] if len(self.outside) >= -number else []
        return [attrs.asdict(item) for item in found]

    @property
    def managed(self) -> list[ObjectVersion]:
        """The versions of the ManagedResources of the drill's shoots."""
        return self.of("ManagedResource")

    def has_lost_finalizer(self, kind: str, uid: str) -> bool:
        """Whether the finalizer of another controller was removed together with ours."""
        versions = [item for item in self.of(kind) if item.obj["metadata"]["uid"] == uid]
        held = [
            {*_finalizers(version.obj)} if version.event != DELETED else set()
            for version in versions
        ]
        ours = self.finalizers[kind]
        return any(
            WITNESS in before and ours & before and not (WITNESS in after or ours & after)
            for before, after in pairwise(held)
        )

    def events(self, by: str = "uid") -> list[tuple[str, str, str]]:
        """Each event once: uid or namespace of its object, reason and text."""
        found: dict[str, Raw] = {}
        for version in self.of("Event"):
            obj = version.obj
            found.setdefault(obj["metadata"]["uid"], obj)
        about = [
            (item["involvedObject"], item["reason"], item["message"]) for item in found.values()
        ]
        if by == "namespace":
            return [(o.get("namespace") or o["name"], why, text) for o, why, text in about]
        return [(item.get(by, ""), why, text) for item, why, text in about]

    def shoot_of(self, meta: Raw) -> str:
        """The technical ID of an object's shoot; "": the object is no part of the drill."""
        return str(meta["labels"][SHOOT])

    def lives(self) -> list[Raw]:
        """The facts about each object."""
        objects: dict[str, list[ObjectVersion]] = defaultdict(list)
        for kind in self.finalizers:
            for version in self.of(kind):
                if self.shoot_of(version.obj["metadata"]):
                    objects[version.obj["metadata"]["uid"]].append(version)
        return [self._facts(versions, objects) for versions in objects.values()]

    def _facts(self, versions: list[ObjectVersion], known: Mapping[str, object]) -> Raw:
        meta = versions[-1].obj["metadata"]
        kind = versions[-1].obj["kind"]
        before = [version for version in versions if not _is_deleting(version)]
        after = [version for version in versions if _is_deleting(version)]
        held = [item for item in after if self.finalizers[kind] & {*_finalizers(item.obj)}]
        gone = [version for version in versions if version.event == DELETED]
        errors = [error for item in [*before, *held] if (error := _error(item.obj))]
        last = errors[-1] if errors else {}
        about = f"{kind} {meta.get('namespace', '')}/{meta['name']}: "
        said = sorted(
            FINAL[why]
            for uid, why, text in self.events()
            if why in FINAL and (uid == meta["uid"] or text.startswith(about))
        )
        first = self._first
        return {
            "kind": kind,
            "name": meta["name"],
            "namespace": meta.get("namespace", ""),
            "uid": meta["uid"],
            "shoot": self.shoot_of(meta),
            "bad": self.shoot_of(meta).endswith("--bad"),
            "made": any(owner["uid"] in known for owner in meta.get("ownerReferences") or ()),
            "created": first(versions),
            "failed": first(item for item in before if _error(item.obj)),
            "ready": first(item for item in before if is_ready(item.obj)),
            "migrated": first(item for item in before if _operation(item.obj) == MIGRATED),
            "deleted": first(after),
            "stuck": first(item for item in held if _error(item.obj)),
            "forced": self._forced(kind, self.shoot_of(meta), after, gone),
            "released": first(item for item in after if item not in held or item in gone),
            "gone": first(gone),
            "error": last.get("description", ""),
            "codes": last.get("codes") or [],
            "said": said,
            "outcomes": said,
            **self._disturbance(after),
        }

    def _disturbance(self, after: list[ObjectVersion]) -> Raw:
        """The conditions of a terminating object while it had the one of the disturbance."""
        found = [(item, _conditions(item.obj)) for item in after]
        seen = [(item, said) for item, said in found if DISTURBANCE in said]
        texts = [
            (item, said["DeletionBlocked"]) for item, said in seen if "DeletionBlocked" in said
        ]
        blocked = texts[0][1] if texts else ""
        return {
            "disturbed": self._first(item for item, _ in seen),
            "blocked": blocked,
            "movedOn": self._first(item for item, text in texts if text != blocked),
        }

    def _first(self, versions: Iterable[ObjectVersion]) -> float | None:
        """The seconds from the start of the drill to the first of these versions."""
        return next((version.at - self.start for version in versions), None)

    def _forced(
        self, kind: str, shoot: str, after: list[ObjectVersion], gone: list[ObjectVersion]
    ) -> float | None:
        """When an object under deletion had a confirmed force deletion first."""
        if kind.startswith("Backup") or not after:
            return None
        if kind == "Bastion":
            return self._first(item for item in after if _confirms(item.obj))
        confirmed = [
            version
            for version in self.of("Cluster")
            if version.obj["metadata"]["name"] == shoot and _confirms(version.obj["spec"]["shoot"])
        ]
        if not confirmed or (gone and gone[0].number < confirmed[0].number):
            return None
        return self._first([max(confirmed[0], after[0], key=lambda one: one.number)])

    def of(self, kind: str, drill: str = "") -> list[ObjectVersion]:
        """The versions of this drill's objects of a kind, in order."""
        drill = drill or self.drill
        return [
            version
            for version in self.log.versions()
            if version.obj["kind"] == kind
            and version.at <= self.until
            and drill in str([version.obj["metadata"], version.obj.get("message")])
        ]

    def newest(self, kind: str) -> dict[str, Raw]:
        return {item.obj["metadata"]["uid"]: item.obj for item in self.of(kind)}


def _ordered(name: str, value: Any) -> Any:
    """The value with its parts in an order that does not depend on the drill's threads."""
    if name == "lives":
        value = [{**item, **{n: sorted(item[n]) for n in ("said", "outcomes")}} for item in value]
        return sorted(value, key=lambda one: str(one["uid"]))
    if name == "bystanders":
        value = [{**item, "problem": bool(item["problem"])} for item in value]
    if name == "kills" and isinstance(value, list):  # of two processes
        value = sorted(value, key=lambda one: (str(one["seed"]), float(one["at"])))
    is_list = name in UNORDERED and isinstance(value, list)
    return sorted(value, key=partial(json.dumps, sort_keys=True)) if is_list else value


def differing(told: Raw, real: Raw) -> list[str]:
    """The fields with different values, and the parts that differ."""
    names = sorted(told.keys() | real.keys())
    pairs = [(n, _ordered(n, told.get(n)), _ordered(n, real.get(n, ABSENT))) for n in names]
    return [f"{name}: {_shortened(*pair)}" for name, *pair in pairs if not _agree(*pair)]


def _agree(told: Any, real: Any) -> bool:
    """Whether two facts are equal; times may differ by the delays of two watches."""
    if isinstance(told, dict) and isinstance(real, dict):
        return told.keys() == real.keys() and all(_agree(told[key], real[key]) for key in real)
    if isinstance(told, list) and isinstance(real, list):
        return len(told) == len(real) and all(map(_agree, told, real))
    if isinstance(told, float) and isinstance(real, float):
        return abs(told - real) <= DELAY
    return bool(told == real)


def _shortened(told: Any, real: Any) -> str:
    """The parts in which both differ."""
    if isinstance(told, list) and isinstance(real, list) and len(told) == len(real):
        pairs = [pair for pair in zip(told, real, strict=True) if not _agree(*pair)]
        return "; ".join(_shortened(*pair) for pair in pairs)
    if isinstance(told, list) and isinstance(real, list):
        both = [item for item in told if item in real]
        told, real = ([item for item in all_ if item not in both] for all_ in (told, real))
    if isinstance(told, dict) and isinstance(real, dict):
        names = [n for n in {**told, **real} if not _agree(told.get(n, ABSENT), real.get(n))]
        told, real = ({name: item.get(name) for name in names} for item in (told, real))
    return f"{told!r}, but it was {real!r}"


def another(told: Any) -> Any:
    """A false value in place of a field of the report."""
    if isinstance(told, bool):
        return not told
    if isinstance(told, int | float):
        return told + 10_000
    if isinstance(told, str):
        return "2001-01-01T00:00:00Z" if told.startswith("20") else f"{told} and more"
    if isinstance(told, dict):
        return {name: another(value) for name, value in told.items()} or {"more": 1}
    if isinstance(told, list):
        return [another(item) for item in told[:1]] + told[1:] if told else [{"uid": "1"}]
    return 7


def _identity(client: HttpClient) -> str:
    """The identity of a seed: of its ConfigMap, or else the uid of its namespace kube-system."""
    namespace = "/api/v1/namespaces/kube-system"
    try:
        found = json.loads(client.send("GET", f"{namespace}/configmaps/cluster-identity"))
        return str(found["data"]["cluster-identity"])
    except NotFound:
        return str(json.loads(client.send("GET", namespace))["metadata"]["uid"])


def _within(told: float, least: float, most: float) -> Any:
    """The reported number if it is possible, else the possible range."""
    return told if least <= told <= most else (least, most)


def _scenario(record: DrillRecord, _told: Raw) -> str:
    fails = not record.path or "break" in record.path
    return record.flag("--scenario", next(iter(record.rehearsal.scenarios))) if fails else ""


def _scenario_text(record: DrillRecord, told: Raw) -> str:
    if not record.failures:
        return NOTHING["break" in record.path or not record.path]
    begin = BEFORE.get(record.flag("--scenario"), "")
    return begin + record.rehearsal.scenarios[record.cause]


def _target(record: DrillRecord, _told: Raw) -> Raw:
    context, host = record.flag("--context"), record.seed.direct.host
    known = {"host": host, "user": "admin", "context": context}
    identity = _identity(record.seed.direct) if context else ""
    return known | {"serverVersion": record.kubernetes, "identity": identity}


def _manager(record: DrillRecord, _told: Raw) -> str:
    own = f"the drill runs a manager of its own, for the extension type drill-{record.drill}"
    return f"{own}, beside the extensions that are deployed" if record.flag("--context") else ""


def _broken(record: DrillRecord, _told: Raw) -> str:
    rule = record.flag("--break")
    return f"{rule}: {BREAKS[rule].text}" if rule else ""


def _origin(_record: DrillRecord, told: Raw) -> Raw:
    told = told["origin"]
    known = metadata.version("gardener-actuator") in told["version"]
    return {
        "version": told["version"] if known else metadata.version("gardener-actuator"),
        "commit": told["commit"] if _commit() == told["commit"].partition("-dirty-")[0] else "",
        "command": shlex.join(["actuator", *sys.argv[1:]]),
        "extensions": f"gardener-actuator {metadata.version('gardener-actuator')}",
    }


@cache
def _commit() -> str:
    git = ["git", "describe", "--always"]
    return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()


def _records(record: DrillRecord, _told: Raw) -> list[Raw]:
    specs = [obj["spec"] for obj in record.newest("Orphan").values() if not _in_seed(obj)]
    found = [
        {
            "shoot": spec["shoot"],
            "owner": f"{spec['object']['kind']} {spec['object']['name']}",
            "resource": {
                "type": spec["resourceType"],
                **{name: spec.get(name, "") for name in ("id", "region")},
                "tags": spec.get("tags") or {},
            },
        }
        for spec in specs
    ]
    return sorted(found, key=str)


def _strips(record: DrillRecord, _told: Raw) -> list[Raw]:
    found = [
        {"shoot": where, "text": f"Stripped {text.rpartition('Stripped ')[2]}"}
        for where, why, text in record.events("namespace")
        if why == "FinalizerStripped"
    ]
    return sorted(found, key=str)


def _counted(record: DrillRecord, told: Raw) -> Raw:
    """The final outcomes by events, the failures by statuses sent, others as announced."""
    ended = Counter(FINAL[why] for _, why, _ in record.events() if why in FINAL)
    least, most = record.announced, Counter(str(item.outcome) for item in record.seed.ended)
    found = {
        name: ended[name] if name in FINAL.values() else _within(number, least[name], most[name])
        for name, number in told["counted"].items()
    }
    if "outcome" in record.failed:
        bounds = [sum(item.values()) for item in record.failed["outcome"]]
        found["failed"] = _within(told["counted"].get("failed", 0), *bounds)
    return found | {name: n for name, n in ended.items() if n}


def _removed_externally(record: DrillRecord, _told: Raw) -> int:
    """The objects without an outcome: another party removed our finalizer."""
    released = [live for live in record.lives() if live["released"] is not None]
    return sum(not item["said"] and item["migrated"] is None for item in released)


def _failed_while_stuck(record: DrillRecord, told: Raw) -> Any:
    """By kind, as the manager wrote into statuses until the drill counted them."""
    if "kind" not in record.failed:
        return {}
    least, most = record.failed["kind"]
    return {
        kind: _within(told["failedWhileStuck"].get(kind, 0), least[plural], most[plural])
        for kind, plural in record.plurals.items()
    }


def _requests(record: DrillRecord, told: Raw) -> Raw:
    return {
        method: _within(told["requests"].get(method, 0), *bounds)
        for method, bounds in record.requests.items()
        if bounds[1]
    }


def _acts(record: DrillRecord, _told: Raw) -> list[Raw]:
    said = [say for say in record.says if say[0] <= record.until and not COUNT.search(say[1])]
    return [{"at": at - record.start, "text": text} for at, text in said]


def _stopped(record: DrillRecord, _told: Raw) -> str:
    ends = [text for _, text in record.says if text.startswith("The drill ends: ")]
    return ends[0].removeprefix("The drill ends: ") if ends else ""


def _unfinished(record: DrillRecord, _told: Raw) -> list[str]:
    """The steps of a path that failed, or did not get stuck as they had to."""
    calls: dict[str, list[str]] = defaultdict(list)
    for shoot, error in record.steps:
        calls[shoot].append(error)
    steps = [item for item in record.path if item.rstrip("!") in paths.STEPS]
    found = []
    for shoot, errors in calls.items():
        for step, error in zip(
            ["create", "delete"] if shoot == "neighbour" else steps, errors, strict=False
        ):
            problem = "" if error and "!" in step else error
            if not error and "!" in step:
                problem = "did not get stuck"
            if problem:
                found.append(f"{step.rstrip('!')} of {shoot}: {problem}")
    return sorted(found)


def _webhooks(record: DrillRecord, told: Raw) -> Any:
    errors = sorted(item.partition(": ")[2] for item in record.refused)
    took = {
        live["shoot"]: live["gone"] - live["forced"]
        for live in record.lives()
        if live["forced"] and live["gone"]
    }
    fits = all(
        webhook["seconds"] is None
        or abs(webhook["seconds"] - took.get(webhook["shoot"], math.inf)) <= DELAY
        for webhook in told["webhooks"]
    )
    return (
        told["webhooks"]
        if fits and errors == sorted(webhook["error"] for webhook in told["webhooks"])
        else errors
    )


def _remaining_objects(record: DrillRecord, told: Raw) -> Any:
    """Seed objects when the drill began to clean up; and waits that ended late."""
    found = (
        re.search(r"/(\S+) is still there$", remaining) for remaining in told["remainingObjects"]
    )
    named = {item[1] for item in found if item}
    return told["remainingObjects"] if named == {*record.left} else record.left


def _bystanders(record: DrillRecord, told: Raw) -> Any:
    return sorted(_of_path(record) if record.path else _of_drill(record, told), key=str)


def _of_path(record: DrillRecord) -> Iterator[Raw]:
    """The neighbour's objects: its deletion is the last step."""
    if [shoot for shoot, _ in record.steps].count("neighbour") < 2:
        return
    for live in record.lives():
        if live["shoot"].endswith("--neighbour"):
            moment = record.neighbour_leaves - record.start
            early = live["deleted"] is not None and live["deleted"] < moment - DELAY
            yield {"name": f"{live['kind']} {live['shoot']}/{live['name']}", "problem": early}


def _of_drill(record: DrillRecord, _told: Raw) -> Iterator[Raw]:
    """An object beside the extension in each shoot, and all objects of the first."""
    lives = [live for live in record.lives() if record.has_looked and not live["bad"]]
    for shoot in {live["shoot"] for live in lives}:
        yield {"name": f"configmaps {shoot}/bystander", "problem": False}
    for obj in (live for live in lives if live["shoot"].endswith("--s1") and not live["made"]):
        where = f"{obj['namespace']}/{obj['name']}" if obj["namespace"] else obj["name"]
        lost = record.has_lost_finalizer(obj["kind"], obj["uid"])
        yield {"name": f"{record.plurals[obj['kind']]} {where}", "problem": lost}
    if record.taken_over:
        yield from _taken_over(record, *record.taken_over)


def _taken_over(record: DrillRecord, begin: float, end: float) -> Iterator[Raw]:
    """The ManagedResources of the shoots when they were taken over."""
    found = {item.obj["metadata"]["uid"]: item.obj for item in record.managed if item.at <= begin}
    lost = {
        item.obj["metadata"]["uid"]: item.at for item in record.managed if item.event == DELETED
    }
    names = [obj["metadata"]["name"] for uid, obj in found.items() if lost.get(uid, end) > begin]
    if not any(name.startswith("extension-controlplane-") for name in names):
        yield {"name": "ManagedResources of the Go library", "problem": True}
    for uid, obj in found.items():
        if lost.get(uid, math.inf) > begin:
            problem = lost.get(uid, math.inf) <= end
            yield {"name": f"ManagedResource {obj['metadata']['name']}", "problem": problem}


def _started(record: DrillRecord, told: Raw) -> Any:
    began = time.time() - (time.monotonic() - record.began)
    at = datetime.fromisoformat(told["started"]).timestamp()
    return told["started"] if began - 1 <= at <= time.time() else began


def _confirms(obj: Raw) -> bool:
    return bool((obj["metadata"].get("annotations") or {}).get(FORCE))


def _is_strip(reason: str) -> bool:
    return reason == "FinalizerStripped"


def _in_seed(orphan: Raw) -> bool:
    return str(orphan["spec"]["resourceType"]).startswith("seed/")


def _is_deleting(version: ObjectVersion) -> bool:
    return version.event == DELETED or "deletionTimestamp" in version.obj["metadata"]


def _finalizers(obj: Raw) -> list[str]:
    return obj["metadata"].get("finalizers") or []


def _error(obj: Raw) -> Raw:
    return (obj.get("status") or {}).get("lastError") or {}


def _conditions(obj: Raw) -> dict[str, str]:
    listed = (obj.get("status") or {}).get("conditions") or ()
    return {item["type"]: f"{item.get('lastUpdateTime')}: {item.get('message')}" for item in listed}


def _operation(obj: Raw) -> tuple[str, str]:
    operation = (obj.get("status") or {}).get("lastOperation") or {}
    return operation.get("type", ""), operation.get("state", "")


def is_ready(obj: Raw) -> bool:
    meta = obj["metadata"]
    seen = (obj.get("status") or {}).get("observedGeneration") == meta["generation"]
    asked = OPERATION in (meta.get("annotations") or {})
    return seen and not asked and not _error(obj) and _operation(obj)[1] == "Succeeded"


Real = Callable[[DrillRecord, Raw], Any]
FIELDS: Mapping[str, Real] = {
    "drill": lambda record, _: record.drill,
    "title": lambda record, _: record.rehearsal.title,
    "scenario": _scenario,
    "scenarioText": _scenario_text,
    "broken": _broken,
    "started": _started,
    "shootsOnly": lambda record, _: record.rehearsal.shoots_only,
    "resourcesBefore": lambda record, _: record.answer(-2),
    "resourcesAfter": lambda record, _: record.answer(-1),
    "seconds": lambda record, told: _within(
        told["seconds"], record.until - record.began, time.monotonic() - record.began
    ),
    "origin": _origin,
    "target": _target,
    "manager": _manager,
    "path": lambda record, _: f"{record.flag('--path')}: {' '.join(record.path)}".strip(": "),
    "acts": _acts,
    "stopped": _stopped,
    "scale": lambda record, _: 1 / 30 if any("!" in step for step in record.path) else None,
    "unfinished": _unfinished,
    "gaps": lambda record, _: list(record.log.failed),
    "finalizers": lambda record, _: {k: sorted(own) for k, own in record.finalizers.items()},
    "lives": lambda record, _: sorted(record.lives(), key=lambda one: str(one["uid"])),
    "records": _records,
    "strips": _strips,
    "stripped": lambda record, told: len(_strips(record, told)),
    "bystanders": _bystanders,
    "remainingObjects": _remaining_objects,
    "counted": _counted,
    "removedExternally": _removed_externally,
    "failedWhileStuck": _failed_while_stuck,
    "requests": _requests,
    "webhooks": _webhooks,
}
"""The real value of each field of the report; of the reported one if it is possible."""


@attrs.define
class Write:
    """A patch of an object by the manager, or the report of an error into its status."""

    plural: str
    object: Any
    fails: bool
    """Whether it reports a failed deletion, which is retried."""
    at: float
    done: float = math.inf
    """When the error was reported."""


def _failures(writes: list[Write], before: float) -> tuple[Counter[str], Counter[str]]:
    """The least and the most failed deletions, by plural, in a count that began `before`.

    A failure is counted once its status is written, and before the object is handled again.
    """
    least, last = Counter[str](), dict[Any, float]()
    for write in reversed(writes):
        key = write.plural, write.object
        if write.fails and (write.done < last.get(key, 0.0) or write.done < before - DELAY):
            least[write.plural] += 1
        if write.at < before:
            last.setdefault(key, write.at)
    return least, Counter(write.plural for write in writes if write.fails)


class _Requests:
    """The requests of managers to the API server, counted where they are written and answered."""

    def __init__(self) -> None:
        self.managers: dict[int, int] = {}
        """The metrics of a manager, by the transport of its client."""
        self.begun: dict[int, Counter[str]] = defaultdict(Counter)
        self.ended: dict[int, Counter[str]] = defaultdict(Counter)


def _count_requests(patch: pytest.MonkeyPatch, records: list[DrillRecord]) -> None:
    counts = _Requests()
    connected, sent, asked = Manager._connect, HttpTransport.request, HttpClient._request

    def connect(self: Manager) -> HttpClient:
        client = connected(self)
        counts.managers[id(client._access.transport)] = id(self.metrics)
        return client

    def send(self: HttpTransport, method: str, *given: Any) -> Any:
        counts.begun[counts.managers.get(id(self), 0)][method] += 1
        return sent(self, method, *given)

    def ask(self: HttpClient, method: str, *given: Any, **named: Any) -> Any:
        manager = counts.managers.get(id(self._access.transport), 0)
        try:
            return asked(self, method, *given, **named)
        except ApiError as error:
            if 'webhook "' in error.message and not manager:
                for record in records[-1:]:
                    record.refused.append(error.message)
            raise
        finally:
            counts.ended[manager][method] += 1

    patch.setattr(Manager, "_connect", connect)
    patch.setattr(HttpTransport, "request", send)
    patch.setattr(HttpClient, "_request", ask)
    _note_counts(patch, records, counts)
    _note_failures(patch, records)


def _note_counts(patch: pytest.MonkeyPatch, records: list[DrillRecord], counts: _Requests) -> None:
    """Note the bounds of each number that the drill reads from the manager's metrics."""
    total = Metrics.total

    def read(self: Metrics, name: str, by: str, **labels: str) -> dict[str, int]:
        key, record, before = id(self), records[-1], time.monotonic()
        least = Counter(counts.ended[key])
        announced = Counter(str(item.outcome) for item in record.seed.ended)
        found = total(self, name, by, **labels)
        if name == "rest_client_requests_total":
            most = Counter(counts.begun[key])
            record.requests = {method: (least[method], most[method]) for method in most}
        if name == "actuator_deletions_total":
            record.failed[by] = _failures(list(record.writes), before)
            record.announced = announced
        return found

    patch.setattr(Metrics, "total", read)


def _note_failures(patch: pytest.MonkeyPatch, records: list[DrillRecord]) -> None:
    """Note each write of the manager to an object, and each error that it reports there."""
    written, failed = Writer.patch, Attempt.fail

    def note(plural: str, key: Any, fails: bool) -> Write:
        found = Write(plural, key, fails, time.monotonic())
        for record in records[-1:]:
            record.writes.append(found)
        return found

    def write(self: Writer, request: Any, *given: Any, **named: Any) -> Any:
        note(self.store.resource.plural, request, False)
        return written(self, request, *given, **named)

    def fail(self: Attempt, failure: Failure) -> None:
        deletes = self.operation.deletes and not failure.gives_up
        found = note(self._kind.plural, self.request, deletes)
        try:
            failed(self, failure)
        except ObjectGone:
            raise
        except Exception:  # a status that cannot be written is a failure, too
            found.done = time.monotonic()
            raise
        found.done = time.monotonic()

    patch.setattr(Writer, "patch", write)
    patch.setattr(Attempt, "fail", fail)


def _note_steps(patch: pytest.MonkeyPatch, records: list[DrillRecord]) -> None:
    """Note how each step of a path ends, when a take-over begins and ends."""
    take_over = takeover.TakeOver._take_over

    def noted(step: Any, flow: Any, *given: Any) -> Any:
        error, record = "", records[-1]
        name = flow._shoot.name
        if name == "neighbour":
            record.neighbour_leaves = time.monotonic()
        try:
            return step(flow, *given)
        except ActuatorError as failed:
            error = str(failed)
            raise
        finally:
            record.steps.append((name, error))

    def take(self: takeover.TakeOver) -> None:
        begin = time.monotonic()
        take_over(self)
        records[-1].taken_over = begin, time.monotonic()

    steps = {
        name: step._replace(act=partial(noted, step.act)) for name, step in paths.STEPS.items()
    }
    patch.setattr(paths, "STEPS", steps)
    patch.setattr(takeover.TakeOver, "_take_over", take)


def _note_cleaning(patch: pytest.MonkeyPatch, records: list[DrillRecord]) -> None:
    """Note the seed objects that are left before the clean-up."""
    clear = inventory.clear

    def clean(seed: DrillWorld, shoots: Any, **named: Any) -> Any:
        groups = [group for actuator in seed.actuators for group in actuator.seed_objects]
        records[-1].left = sorted(
            obj["metadata"]["name"]
            for group in groups
            for shoot in shoots
            if shoot.name not in ("bad", "neighbour")
            for obj in find_all(
                seed.direct,
                group.resource,
                shoot.technical_id if group.resource.namespaced else "",
                group.label_selector,
            )
        )
        return clear(seed, shoots, **named)

    patch.setattr(run, "clear", clean)


def _note_worlds(patch: pytest.MonkeyPatch, records: list[DrillRecord]) -> None:
    """Record each seed on which a drill is held, its own or an existing one."""

    def recorded(opening: Any, rehearsal: CombinedRehearsal, *given: Any) -> Any:
        @contextmanager
        def opened() -> Iterator[DrillWorld]:
            began = time.monotonic()
            with opening(rehearsal, *given) as seed:
                record = DrillRecord(rehearsal, seed, began)
                kinds = [kind_of(actuator) for actuator in rehearsal.actuators()]
                for kind in kinds:
                    record.finalizers.setdefault(kind.name, set()).add(kind.finalizer)
                    record.plurals[kind.name] = kind.plural
                found = [*dict.fromkeys(map(resource_of, kinds)), CLUSTERS, EVENTS, ORPHANS]
                if any(
                    crd["spec"]["names"]["kind"] == "ManagedResource" for crd in rehearsal.crds()
                ):
                    found.append(MANAGED_RESOURCES)
                records.append(record)
                with watched(seed.direct, found, record.log):
                    yield seed

        return opened()

    for name in ("embedded_world", "foreign_world"):
        patch.setattr(run, name, partial(recorded, getattr(run, name)))


def _note_outside(patch: pytest.MonkeyPatch, records: list[DrillRecord]) -> None:
    """Note when the outside world is broken, and its answers."""
    left, caused = CombinedRehearsal.remaining_resources, CombinedRehearsal.inject_failure

    def inject_failure(self: CombinedRehearsal, scenario: str) -> None:
        for record in records[-1:]:
            record.failures.append(time.monotonic())
            record.cause = scenario
        caused(self, scenario)

    def remaining_resources(self: CombinedRehearsal) -> Any:
        found = list(left(self))
        for record in records[-1:]:
            record.outside.append(found)
        return found

    patch.setattr(CombinedRehearsal, "inject_failure", inject_failure)
    patch.setattr(CombinedRehearsal, "remaining_resources", remaining_resources)


@contextmanager
def recording(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[DrillRecord]]:
    """Record each drill."""
    records: list[DrillRecord] = []
    say, told, look_at = Terminal.say, Observer.tell, bystanders.look_at

    def tell(self: Observer, evidence: Evidence) -> None:
        for record in records[-1:]:
            record.until = time.monotonic()
            record.start = record.until - self.now()
        told(self, evidence)

    def speak(self: Terminal, text: str) -> None:
        for record in records[-1:]:
            record.says.append((time.monotonic(), text))
        say(self, text)

    def look(*given: Any) -> Any:
        records[-1].has_looked = True
        return look_at(*given)

    _note_worlds(monkeypatch, records)
    _note_outside(monkeypatch, records)
    _note_steps(monkeypatch, records)
    _note_cleaning(monkeypatch, records)
    _count_requests(monkeypatch, records)
    monkeypatch.setattr(bystanders, "look_at", look)
    monkeypatch.setattr(Observer, "tell", tell)
    monkeypatch.setattr(Terminal, "say", speak)
    yield records
