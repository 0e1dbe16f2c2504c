"""Rehearsals with shoots as external system: their servers, and the rules of the judge."""

from __future__ import annotations

from typing import Any

import pytest

from actuator.errors import Forbidden, NotFound, Unavailable
from actuator.interface import ExternalResource
from actuator.v1alpha1 import Extension
from extensions.local.rehearsal import LocalRehearsal
from extensions.networkfilter.rehearsal import NetworkFilterRehearsal
from generic.library.managedresources import (
    delete,
    deploy_for_seed,
    deploy_for_shoot,
    set_keep_objects,
)
from generic.library.managedresources.kind import SHOOT_FINALIZER
from generic.reconciler.orphans import UNKNOWN
from generic.testing.drill.evidence import Evidence, Record
from generic.testing.drill.judge import judge
from generic.testing.drill.migration import rules
from generic.testing.drill.migration.rules import MigrationEvidence
from generic.testing.rehearsal import CombinedRehearsal
from generic.testing.shoots import ShootObject, Shoots
from tests.support.cluster.harness import eventually
from tests.support.cluster.shoot_extension import Extended, shoot_managers
from tests.support.objects.stand_ins import UNUSED

A = ShootObject("ConfigMap", "kube-system/a")
MANIFEST = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "kube-system"},
}
ADDRESS = ExternalResource(type="Address", tags={"shoot": "shoot--a"})
FACTS: dict[str, Any] = {
    "drill": "abc",
    "title": "T",
    "scenario": "s",
    "scenario_text": "t",
    "started": "",
}


@pytest.fixture
def shoot(admin, seed):
    with shoot_managers(admin, seed.namespace) as shoots:
        yield Extended(seed, shoots, Extension)


def deploy(shoot):
    deploy_for_shoot(shoot.client, "mr", shoot.namespace, [MANIFEST])
    eventually(lambda: shoot.inside() == {("ConfigMap", "kube-system/a")})


def is_gone(shoot):
    try:
        shoot.managed("mr")
    except NotFound:
        return True
    return False


def conditions(shoot):
    found = (shoot.managed("mr").get("status") or {}).get("conditions") or []
    return {item["type"]: item["reason"] for item in found}


def test_objects_of_a_managed_resource_are_in_the_shoot_until_it_is_deleted(shoot):
    deploy(shoot)
    assert shoot.managed("mr")["metadata"]["finalizers"] == [SHOOT_FINALIZER]
    delete(shoot.client, "mr", shoot.namespace)
    eventually(lambda: is_gone(shoot))
    assert shoot.inside() == set()


def test_kept_objects_stay_in_the_shoot(shoot):
    deploy(shoot)
    set_keep_objects(shoot.client, "mr", shoot.namespace, keep=True)
    delete(shoot.client, "mr", shoot.namespace)
    eventually(lambda: is_gone(shoot))
    assert shoot.inside() == {("ConfigMap", "kube-system/a")}


def test_managed_resources_of_the_seed_are_left_alone(shoot):
    deploy_for_seed(shoot.client, "mr", shoot.namespace, [MANIFEST])
    deploy_for_shoot(shoot.client, "other", shoot.namespace, [MANIFEST])
    eventually(shoot.inside)
    assert "finalizers" not in shoot.managed("mr")["metadata"]


@pytest.mark.parametrize("broken", ["everything-fails", "deletion-denied"])
def test_a_deletion_that_the_shoot_does_not_let_through_fails_at_once(shoot, broken):
    deploy(shoot)
    shoot.shoots.fail(broken)
    delete(shoot.client, "mr", shoot.namespace)
    eventually(lambda: conditions(shoot).get("ResourcesApplied") == "DeletionFailed")
    shoot.shoots.fail("")
    eventually(lambda: is_gone(shoot))


def test_a_shoot_that_is_force_deleted_is_taken_down_with_all_that_is_in_it(shoot):
    deploy(shoot)
    shoot.force()
    eventually(lambda: shoot.inside() == set())
    delete(shoot.client, "mr", shoot.namespace)
    eventually(lambda: conditions(shoot).get("ResourcesApplied") == "DeletionFailed")


def test_shoots_are_independent_and_fail_as_requested():
    shoots = Shoots()
    shoots.put("one", A)
    shoots.put("two", A)
    shoots.fail("deletion-denied")
    with pytest.raises(Forbidden, match="kube-system/a"):
        shoots.take("one", A)
    shoots.fail("")
    shoots.take("one", A)
    shoots.take("one", A)
    assert [content.id for content in shoots.contents()] == ["two/kube-system/a"]
    shoots.destroy("two")
    assert shoots.contents() == []
    with pytest.raises(Unavailable):
        shoots.put("two", A)


def test_together_is_only_in_shoots_where_each_part_is(tmp_path):
    inside = NetworkFilterRehearsal()
    assert CombinedRehearsal([inside]).shoots_only
    assert not CombinedRehearsal([inside, LocalRehearsal()]).shoots_only
    assert CombinedRehearsal([LocalRehearsal()]).other_controllers(UNUSED) == []


@pytest.mark.parametrize("shoots_only", [True, False])
def test_nothing_may_be_recorded_where_everything_is_deleted_with_the_shoot(shoots_only):
    records = [Record(shoot="shoot--a", owner="Extension x", resource=ADDRESS)]
    evidence = Evidence(**FACTS, shoots_only=shoots_only, records=records)
    found = {finding.rule: finding.problems for finding in judge(evidence)}
    assert bool(found["I1"]) is shoots_only
    assert all("is deleted with its shoot" in problem for problem in found["I1"])


def test_an_unknown_resource_is_recorded_all_the_same():
    records = [Record(shoot="shoot--a", owner="Extension x", resource=UNKNOWN)]
    evidence = Evidence(**FACTS, shoots_only=True, records=records)
    assert next(finding for finding in judge(evidence) if finding.rule == "I1").holds


@pytest.mark.parametrize("shoots_only", [True, False])
def test_no_state_has_to_move_where_there_is_nothing_to_find_again(shoots_only):
    evidence = MigrationEvidence(**FACTS, shoots_only=shoots_only)
    broken = {finding.rule for finding in rules.judge(evidence) if not finding.holds}
    assert ("M4" in broken) is not shoots_only
