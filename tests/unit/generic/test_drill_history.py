"""Histories of objects in a drill's evidence log, and the end of a drill without hope."""

from typing import Any

import attrs
import pytest

from actuator import Actuator
from actuator.errors import ConfigurationError
from actuator.v1alpha1 import BackupEntry, Bastion, Infrastructure
from generic.testing.drill.evidence import Refusal
from generic.testing.drill.history import History
from generic.testing.drill.inventory import check_types
from generic.testing.drill.judge import FAILURES, contradictions, judge
from generic.testing.drill.log import CLUSTER, EVENT, DrillLog, LoggedVersion
from generic.testing.drill.readiness import (
    HOPELESS_AFTER_SECONDS,
    SHOWN_AFTER_SECONDS,
    Readiness,
    Stopped,
    hopeless_after,
)
from generic.testing.garden import SHOOT
from tests.support.drills.evidence import evidence, life
from tests.support.objects.stand_ins import UNUSED

KINDS = {cls.KIND.name: cls.KIND for cls in (Infrastructure, Bastion, BackupEntry)}
FINALIZER = Infrastructure.KIND.finalizer
FORCE = {"confirmation.gardener.cloud/force-deletion": "true"}
DONE = {"type": "Reconcile", "state": "Succeeded", "lastUpdateTime": "2026-01-01T00:00:00Z"}
READY = {"observedGeneration": 1, "lastOperation": DONE}
FAILED = {"lastError": {"description": "no", "codes": ["ERR_A"]}}
MIGRATED = {"lastOperation": {"type": "Migrate", "state": "Succeeded"}, "observedGeneration": 1}


def seen(at, status=None, *, kind="Infrastructure", gone=False, **meta):
    head = {"name": "n", "namespace": "a", "uid": kind, "labels": {SHOOT: "a"}, "generation": 1}
    obj = {"metadata": {**head, "resourceVersion": str(at), **meta}, "status": status or {}}
    return LoggedVersion(at=float(at), kind=kind, obj=obj, gone=gone)


def deleting(at, status=None, *, finalizers=(FINALIZER,), **more):
    return seen(at, status, deletionTimestamp="2026", finalizers=list(finalizers), **more)


def cluster(at, annotations=FORCE):
    shoot = {"shoot": {"metadata": {"annotations": annotations}}}
    meta = {"name": "a", "resourceVersion": str(at)}
    return LoggedVersion(at=float(at), kind=CLUSTER, obj={"metadata": meta, "spec": shoot})


def event(reason, message, uid="Infrastructure", **about):
    obj = {"reason": reason, "message": message, "involvedObject": {"uid": uid, **about}}
    meta = {"uid": message, "resourceVersion": "1"}
    return LoggedVersion(at=9.0, kind=EVENT, obj={**obj, "metadata": meta})


def told(*entries):
    return History(KINDS).read_all(entries)


ABOUT_NAMESPACE = {"uid": "", "kind": "Namespace", "name": "a"}


@pytest.mark.parametrize(
    ("entries", "facts"),
    [
        pytest.param([seen(1), seen(2, READY)], {"created": 1, "ready": 2}, id="ready"),
        pytest.param(
            [seen(1, FAILED), seen(2, READY)],
            {"failed": 1, "ready": 2, "error": "no", "codes": ["ERR_A"]},
            id="ready after an error",
        ),
        pytest.param([seen(1, MIGRATED)], {"migrated": 1}, id="migrated"),
        pytest.param(
            [seen(1), deleting(2), deleting(3, FAILED), deleting(4, finalizers=["x"])],
            {"deleted": 2, "stuck": 3, "released": 4, "gone": None, "forced": None},
            id="stuck, then released beside another finalizer",
        ),
        pytest.param(
            [seen(1), deleting(2, gone=True)], {"deleted": 2, "released": 2, "gone": 2}, id="gone"
        ),
        pytest.param(
            [seen(1), deleting(2, FAILED), cluster(3), deleting(4, gone=True)],
            {"stuck": 2, "forced": 3, "gone": 4},
            id="forced while it was stuck",
        ),
        pytest.param(
            [seen(1), cluster(2), deleting(3)], {"deleted": 3, "forced": 3}, id="deleted by force"
        ),
        pytest.param(
            [seen(1), deleting(2, gone=True), cluster(3)], {"forced": None}, id="gone before"
        ),
        pytest.param([cluster(1, {}), deleting(2)], {"forced": None}, id="not confirmed"),
    ],
)
def test_moments_derive_from_the_versions_of_an_object(entries, facts):
    found = attrs.asdict(told(*entries).lives["Infrastructure"])
    assert {name: found[name] for name in facts} == facts


@pytest.mark.parametrize(
    ("kind", "annotations", "forced"),
    [("Bastion", FORCE, 2), ("Bastion", {}, None), ("BackupEntry", FORCE, None)],
)
def test_a_force_deletion_is_read_from_the_object_that_the_kind_names(kind, annotations, forced):
    history = told(cluster(1), deleting(2, kind=kind, annotations=annotations))
    assert history.lives[kind].forced == forced


@pytest.mark.parametrize(("about", "prefix"), [({}, ""), (ABOUT_NAMESPACE, "Infrastructure a/n: ")])
def test_events_are_read_also_from_a_namespace_that_ends_and_repeats_once(about, prefix):
    strip = event("FinalizerStripped", f"{prefix}Stripped x from y", **about)
    end = event("Orphaned", f"{prefix}left", **about)
    history = told(seen(1), strip, strip, end)
    assert [strip.text for strip in history.strips] == ["Stripped x from y"]
    assert history.lives["Infrastructure"].said == ["orphaned"]


def test_an_object_of_no_shoot_and_an_event_about_it_are_no_part_of_the_drill():
    history = History(KINDS, shoot_of=lambda _: "").read_all([seen(1), event("Deleted", "x")])
    assert not history.lives


@pytest.mark.parametrize("spec", [{}, {"shoot": []}, {"shoot": None}])
def test_a_cluster_that_cannot_be_read_is_a_gap_and_the_log_goes_on(spec):
    history = History(KINDS)
    log = DrillLog(UNUSED, KINDS, "", history.read)
    log.take(CLUSTER, {"metadata": {"name": "a", "uid": "1", "resourceVersion": "1"}, "spec": spec})
    log.take("Infrastructure", seen(2).obj)
    assert [gap.partition(": ")[0] for gap in log.gaps] == ["Cluster a cannot be read"]
    assert [entry.number for entry in log.entries()] == [2]
    assert [*history.lives] == ["Infrastructure"]


@pytest.mark.parametrize(
    ("after", "shoots", "shown", "stops"),
    [
        pytest.param(SHOWN_AFTER_SECONDS - 1, 1, 0, False, id="too early"),
        pytest.param(SHOWN_AFTER_SECONDS, 1, 1, False, id="shown"),
        pytest.param(HOPELESS_AFTER_SECONDS, 1, 1, True, id="the only shoot fails"),
        pytest.param(HOPELESS_AFTER_SECONDS, 2, 1, False, id="another shoot may become ready"),
    ],
)
def test_a_drill_shows_errors_once_and_stops_without_hope(after, shoots, shown, stops):
    failing = life(ready=None, failed=10.0, deleted=None, error="the reason", shoot="a")
    found: list[Any] = []
    readiness = Readiness(found.extend)
    for _ in range(2):
        stopped = False
        try:
            readiness.check([failing], ["a", "b"][:shoots], 10.0 + after)
        except Stopped as error:
            stopped = str(error) == "No valid shoot can become ready: 1 Infrastructure: the reason"
        assert stopped is stops
    assert len(found) == shown


def test_a_drill_waits_longer_for_shoots_whose_api_servers_start():
    failing = life(ready=None, failed=10.0, deleted=None, error="the reason", shoot="a")
    now = 10.0 + HOPELESS_AFTER_SECONDS
    readiness = Readiness(lambda _: None, hopeless_after(with_shoot_api=True))
    readiness.check([failing], ["a"], now)
    with pytest.raises(Stopped):
        readiness.check([failing], ["a"], now + hopeless_after(with_shoot_api=True))
    with pytest.raises(Stopped):
        Readiness(lambda _: None, hopeless_after(with_shoot_api=False)).check([failing], ["a"], now)


def test_the_rules_after_the_end_of_a_drill_are_not_exercised():
    findings = {item.rule: item for item in judge(evidence(stopped="No valid shoot", lives=[]))}
    assert findings["end"].problems == ("No valid shoot",)
    assert not any(findings[f"I{number}"].exercised for number in range(1, 7))
    path = {item.rule: item for item in judge(evidence(path="delete: create", stopped="No"))}
    assert path["path"].problems == ("No",)
    assert not path["I1"].exercised


def refused(failures):
    facts = {"shoot": "shoot--a", "webhook": "w", "policy": "Fail", "request": "r", "error": "e"}
    return [Refusal(**facts, failure=FAILURES[name], seconds=1.0) for name in failures]


@pytest.mark.parametrize(
    ("more", "rule", "untested"),
    [
        ({"resources_after": [], "records": []}, "I1", ["no external resource remained"]),
        ({"lives": []}, "I5", ["no object was blocked"]),
        ({"path": "migrate: create migrate"}, "I3", ["it does not apply to this path"]),
        (
            {"lives": [life("BackupEntry")]},
            "I6",
            ["a force deletion ends no object of these kinds"],
        ),
        (
            {"scenario": "webhooks-down", "webhooks": refused(["killed", "expired", "slow"])},
            "webhooks",
            ["a webhook that fails because it denies every request; use more shoots"],
        ),
        ({"scenario": "webhooks-down", "webhooks": refused(FAILURES)}, "webhooks", []),
    ],
)
def test_a_finding_lists_parts_that_were_not_exercised(more, rule, untested):
    [found] = [item for item in judge(attrs.evolve(evidence(), **more)) if item.rule == rule]
    assert list(found.untested) == untested
    assert found.exercised is (rule == "webhooks")


@pytest.mark.parametrize(
    ("webhooks", "problem"),
    [
        ([], "no webhook refused a request, so none was rehearsed"),
        (
            [attrs.evolve(item, seconds=None) for item in refused(["killed"])],
            "webhook w (Fail) blocked the force deletion: it refused r: e",
        ),
    ],
)
def test_webhooks_that_refuse_nothing_or_block_the_force_deletion_are_found(webhooks, problem):
    seen = attrs.evolve(evidence(), scenario="webhooks-down", webhooks=webhooks)
    [found] = [item for item in judge(seen) if item.rule == "webhooks"]
    assert list(found.problems) == [f"shoot--a: {problem}"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, ""),
        ({"gaps": ["Event: gone"]}, "the evidence log has a gap: Event: gone"),
        ({"strips": []}, "the manager counted 1 removed finalizers, the log has 0"),
        ({"lives": [life(forced=None)]}, "n is orphaned, and the log has no force deletion of it"),
    ],
)
def test_a_log_that_misses_something_is_found(more, words):
    assert [words] * bool(words) == [
        contradiction[-len(words) :] for contradiction in contradictions(evidence(**more))
    ]


class Network(Actuator[Infrastructure]):
    def reconcile(self, ctx, infrastructure, cluster): ...
    def delete(self, ctx, infrastructure, cluster): ...


def test_an_object_that_no_actuator_serves_is_named():
    manifest = {"kind": "Infrastructure", "metadata": {"name": "n"}, "spec": {"type": "drill-1"}}
    check_types([manifest, {"kind": "Secret", "metadata": {}}], [Network()], "drill-1")
    with pytest.raises(
        ConfigurationError, match=r"Infrastructure n: spec.type is 'drill-1', which"
    ):
        check_types([manifest], [Network()], "drill-2")
