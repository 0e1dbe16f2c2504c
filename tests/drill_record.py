"""An independent record of what happens in a drill's seed, and its comparison with the report.

It watches the seed with code of its own, and notes how the outside world was used.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import pytest

from actuator.interface import Resource, kind_of, resource_of
from actuator.meta import Raw
from generic.kube.clusters import CLUSTERS
from generic.reconciler.orphans import ORPHANS
from generic.testing.drill import world
from generic.testing.drill.evidence import Evidence
from generic.testing.drill.observe import Observer
from generic.testing.rehearsal import CombinedRehearsal
from generic.testing.watching import DELETED
from hack.gardenlet.watching import Log, Version, watched

EVENTS = Resource("v1", "events")
FINAL = {"Deleted": "deleted", "ForceDeleted": "force_deleted", "Orphaned": "orphaned"}
SHOOT = "shoot.gardener.cloud/technical-id"
FORCE = "confirmation.gardener.cloud/force-deletion"
OPERATION = "gardener.cloud/operation"
MIGRATED = ("Migrate", "Succeeded")
DELAY = 5.0
"""Seconds by which one watch may be later than another, on a busy machine."""
NOTHING = ("Nothing outside fails.", "The drill ended before it caused the failure.")


class DrillRecord:
    """What happened in one drill on an embedded seed."""

    def __init__(self) -> None:
        self.log = Log()
        self.start, self.until = 0.0, math.inf
        """When the drill began, and when it began to clean up, on the monotonic clock."""
        self.finalizers: dict[str, set[str]] = {}
        self.failures: list[str] = []
        """The scenarios that were caused."""
        self.outside: list[Any] = []
        """The last answer of the outside world."""
        self.drill = ""

    def differences(self, report: Raw) -> list[str]:
        """The fields of the report that tell something else."""
        told = report["evidence"]
        self.drill = told["drill"]
        expected = self._expected()
        found = {uid: _told(life) for life in told["lives"] if (uid := life["uid"])}
        problems = [
            f"{uid}: {name}: {found.get(uid, {}).get(name)!r}, but it was {value!r}"
            for uid, facts in expected.items()
            for name, value in facts.items()
            if not _agree(found.get(uid, {}).get(name), value)
        ]
        problems += [f"{uid}: it never existed" for uid in found.keys() - expected.keys()]
        return problems + [
            f"{name}: {in_report!r}, but it was {real!r}"
            for name, (in_report, real) in self._other_fields(told).items()
            if in_report != real
        ]

    def _other_fields(self, told: Raw) -> dict[str, tuple[Any, Any]]:
        events = self._events()
        strips = sorted(
            text.rpartition("Stripped ")[2] for _, why, text in events if _is_strip(why)
        )
        told_strips = sorted(one["text"].removeprefix("Stripped ") for one in told["strips"])
        orphans = self._newest("Orphan").values()
        ids = sorted(one["spec"].get("id", "") for one in orphans if not _in_seed(one))
        caused = bool(self.failures)
        ended = Counter(FINAL[why] for _, why, _ in events if why in FINAL)
        counted = {name: told["counted"].get(name, 0) for name in FINAL.values()}
        return {
            "counted": (counted, {name: ended[name] for name in FINAL.values()}),
            "strips": (told_strips, strips),
            "records": (sorted(one["resource"]["id"] for one in told["records"]), ids),
            "scenario_text": (told["scenarioText"].endswith(NOTHING), not caused),
            "outside_after": (told["outsideAfter"], [attrs.asdict(one) for one in self.outside]),
        }

    def _events(self) -> list[tuple[str, str, str]]:
        """Each event once: the uid of its object or its text, reason and text."""
        found = {}
        for version in self._of("Event"):
            obj = version.obj
            found.setdefault(obj["metadata"]["uid"], obj)
        return [
            (one["involvedObject"].get("uid", ""), one["reason"], one["message"])
            for one in found.values()
        ]

    def _expected(self) -> dict[str, Raw]:
        objects: dict[str, list[Version]] = defaultdict(list)
        for kind in self.finalizers:
            for version in self._of(kind):
                objects[version.obj["metadata"]["uid"]].append(version)
        return {uid: self._facts(versions) for uid, versions in objects.items()}

    def _facts(self, versions: list[Version]) -> Raw:
        meta = versions[-1].obj["metadata"]
        kind = versions[-1].obj["kind"]
        before = [one for one in versions if not _is_deleting(one)]
        after = [one for one in versions if _is_deleting(one)]
        held = [one for one in after if self.finalizers[kind] & {*_finalizers(one.obj)}]
        gone = [one for one in versions if one.event == DELETED]
        errors = [error for one in [*before, *held] if (error := _error(one.obj))]
        last = errors[-1] if errors else {}
        about = f"{kind} {meta.get('namespace', '')}/{meta['name']}: "
        return {
            "kind": kind,
            "name": meta["name"],
            "shoot": meta["labels"][SHOOT],
            "created": self._first(versions),
            "failed": self._first(one for one in before if _error(one.obj)),
            "ready": self._first(one for one in before if is_ready(one.obj)),
            "migrated": self._first(one for one in before if _operation(one.obj) == MIGRATED),
            "deleted": self._first(after),
            "stuck": self._first(one for one in held if _error(one.obj)),
            "forced": self._forced(kind, meta["labels"][SHOOT], after, gone),
            "released": self._first(one for one in after if one not in held or one in gone),
            "gone": self._first(gone),
            "error": last.get("description", ""),
            "codes": last.get("codes") or [],
            "said": sorted(
                FINAL[why]
                for uid, why, text in self._events()
                if why in FINAL and (uid == meta["uid"] or text.startswith(about))
            ),
        }

    def _first(self, versions: Iterable[Version]) -> float | None:
        """The seconds from the start of the drill to the first of these versions."""
        return next((one.at - self.start for one in versions), None)

    def _forced(
        self, kind: str, shoot: str, after: list[Version], gone: list[Version]
    ) -> float | None:
        """When an object under deletion had a confirmed force deletion first."""
        if kind.startswith("Backup") or not after:
            return None
        if kind == "Bastion":
            return self._first(one for one in after if _confirms(one.obj))
        confirmed = [
            version
            for version in self._of("Cluster")
            if version.obj["metadata"]["name"] == shoot and _confirms(version.obj["spec"]["shoot"])
        ]
        if not confirmed or (gone and gone[0].number < confirmed[0].number):
            return None
        return self._first([max(confirmed[0], after[0], key=lambda one: one.number)])

    def _of(self, kind: str) -> list[Version]:
        """The versions of this drill's objects of a kind, in order."""
        return [
            one
            for one in self.log.versions()
            if one.obj["kind"] == kind
            and one.at <= self.until
            and self.drill in str([one.obj["metadata"], one.obj.get("message")])
        ]

    def _newest(self, kind: str) -> dict[str, Raw]:
        return {one.obj["metadata"]["uid"]: one.obj for one in self._of(kind)}


def _told(life: Raw) -> Raw:
    return {**life, "said": sorted(life["said"])}


def _agree(told: Any, real: Any) -> bool:
    """Whether two facts are equal; times may differ by the delays of two watches."""
    if isinstance(told, float) and isinstance(real, float):
        return abs(told - real) <= DELAY
    return bool(told == real)


def _confirms(obj: Raw) -> bool:
    return bool((obj["metadata"].get("annotations") or {}).get(FORCE))


def _is_strip(reason: str) -> bool:
    return reason == "FinalizerStripped"


def _in_seed(orphan: Raw) -> bool:
    return str(orphan["spec"]["resourceType"]).startswith("seed/")


def _is_deleting(version: Version) -> bool:
    return version.event == DELETED or "deletionTimestamp" in version.obj["metadata"]


def _finalizers(obj: Raw) -> list[str]:
    return obj["metadata"].get("finalizers") or []


def _error(obj: Raw) -> Raw:
    return (obj.get("status") or {}).get("lastError") or {}


def _operation(obj: Raw) -> tuple[str, str]:
    operation = (obj.get("status") or {}).get("lastOperation") or {}
    return operation.get("type", ""), operation.get("state", "")


def is_ready(obj: Raw) -> bool:
    meta = obj["metadata"]
    seen = (obj.get("status") or {}).get("observedGeneration") == meta["generation"]
    asked = OPERATION in (meta.get("annotations") or {})
    return seen and not asked and not _error(obj) and _operation(obj)[1] == "Succeeded"


@contextmanager
def recording(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[DrillRecord]]:
    """Record each drill on an embedded seed."""
    records: list[DrillRecord] = []
    opened, left = world.embedded_seed, CombinedRehearsal.left_outside
    caused, told = CombinedRehearsal.break_outside, Observer.tell

    @contextmanager
    def open_recorded(rehearsal: CombinedRehearsal, say: Any) -> Iterator[Any]:
        record = DrillRecord()
        kinds = [kind_of(one) for one in rehearsal.actuators()]
        for kind in kinds:
            record.finalizers.setdefault(kind.name, set()).add(kind.finalizer)
        resources = [*dict.fromkeys(map(resource_of, kinds)), CLUSTERS, EVENTS, ORPHANS]
        with opened(rehearsal, say) as seed:
            records.append(record)
            with watched(seed.admin, resources, record.log):
                yield seed

    def break_outside(self: CombinedRehearsal, scenario: str) -> None:
        for record in records[-1:]:
            record.failures.append(scenario)
        caused(self, scenario)

    def left_outside(self: CombinedRehearsal) -> Any:
        found = list(left(self))
        for record in records[-1:]:
            record.outside = found
        return found

    def tell(self: Observer, evidence: Evidence) -> None:
        for record in records[-1:]:
            record.until = time.monotonic()
            record.start = record.until - self.now()
        told(self, evidence)

    monkeypatch.setattr(world, "embedded_seed", open_recorded)
    monkeypatch.setattr(Observer, "tell", tell)
    monkeypatch.setattr(CombinedRehearsal, "break_outside", break_outside)
    monkeypatch.setattr(CombinedRehearsal, "left_outside", left_outside)
    yield records
