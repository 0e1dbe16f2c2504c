"""An independent record of what happens in a drill's seed, and its comparison with the report.

It watches the seed with code of its own, and notes how the outside world was used.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator
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
NOTHING = ("Nothing outside fails.", "The drill ended before it caused the failure.")


class DrillRecord:
    """What happened in one drill on an embedded seed."""

    def __init__(self) -> None:
        self.log = Log()
        self.until = math.inf
        """When the drill began to clean up."""
        self.finalizers: dict[str, str] = {}
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
            if found.get(uid, {}).get(name) != value
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
        return {
            "strips": (told_strips, strips),
            "records": (sorted(one["resource"]["id"] for one in told["records"]), ids),
            "scenario_text": (told["scenario_text"].endswith(NOTHING), not caused),
            "outside_after": (told["outside_after"], [attrs.asdict(one) for one in self.outside]),
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
        before = [one.obj for one in versions if not _is_deleting(one)]
        after = [one.obj for one in versions if _is_deleting(one)]
        held = [one for one in after if self.finalizers[kind] in _finalizers(one)]
        gone = [one.number for one in versions if one.event == DELETED]
        errors = [error for one in [*before, *held] if (error := _error(one))]
        last = errors[-1] if errors else {}
        about = f"{kind} {meta.get('namespace', '')}/{meta['name']}: "
        return {
            "kind": kind,
            "name": meta["name"],
            "shoot": meta["labels"][SHOOT],
            "created": True,
            "failed": any(map(_error, before)),
            "ready": any(map(_is_ready, before)),
            "migrated": any(_operation(one) == ("Migrate", "Succeeded") for one in before),
            "deleted": bool(after),
            "stuck": any(map(_error, held)),
            "forced": bool(after) and self._is_forced(kind, meta["labels"][SHOOT], after, gone),
            "gone": bool(gone),
            "error": last.get("description", ""),
            "codes": last.get("codes") or [],
            "said": sorted(
                FINAL[why]
                for uid, why, text in self._events()
                if why in FINAL and (uid == meta["uid"] or text.startswith(about))
            ),
        }

    def _is_forced(self, kind: str, shoot: str, after: list[Raw], gone: list[int]) -> bool:
        if kind.startswith("Backup"):
            return False
        if kind == "Bastion":
            return any((one["metadata"].get("annotations") or {}).get(FORCE) for one in after)
        confirmed = [
            version.number
            for version in self._of("Cluster")
            if version.obj["metadata"]["name"] == shoot
            and (version.obj["spec"]["shoot"]["metadata"].get("annotations") or {}).get(FORCE)
        ]
        return bool(confirmed) and (not gone or gone[0] > confirmed[0])

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
    moments = ("created", "failed", "ready", "migrated", "deleted", "stuck", "forced", "gone")
    texts = {name: life[name] for name in ("kind", "name", "shoot", "error", "codes")}
    return {
        **texts,
        **{name: life[name] is not None for name in moments},
        "said": sorted(life["said"]),
    }


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


def _is_ready(obj: Raw) -> bool:
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
        record.finalizers = {kind.name: kind.finalizer for kind in kinds}
        resources = [*map(resource_of, kinds), CLUSTERS, EVENTS, ORPHANS]
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
        told(self, evidence)

    monkeypatch.setattr(world, "embedded_seed", open_recorded)
    monkeypatch.setattr(Observer, "tell", tell)
    monkeypatch.setattr(CombinedRehearsal, "break_outside", break_outside)
    monkeypatch.setattr(CombinedRehearsal, "left_outside", left_outside)
    yield records
