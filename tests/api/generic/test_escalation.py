"""The time limit of a failing deletion, as data; and the status of a stuck object."""

import re
from datetime import timedelta

import pytest

from actuator import ActuatorError, ErrorCode
from actuator.errors import Forbidden
from generic.kube.clock import SystemClock
from tests.support.cluster.harness import FINALIZER, Script, eventually
from tests.support.objects.builders import cluster, infrastructure

DAY = 86400.0
FOREIGN = "example.org/foreign"


pytestmark = pytest.mark.usefixtures("short_window")


class Later(SystemClock):
    """The time of day, moved forward by a test; the monotonic clock goes on as it does."""

    ahead = timedelta()

    def now(self):
        return super().now() + self.ahead


def unauthorized(*_args):
    raise ActuatorError("revoked", codes=[ErrorCode.ERR_INFRA_UNAUTHORIZED])


def condition(seed):
    found = seed.status().get("conditions") or []
    return next((c for c in found if c["type"] == "DeletionBlocked"), None)


def stuck(seed, start, actuator, give_up_after=None, clock=None):
    manager = start(actuator, give_up_after=give_up_after, clock=clock)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    eventually(lambda: condition(seed))
    return manager


def gave_up(manager):
    return manager.metrics.total("actuator_deletions_total", "outcome")["gave_up"]


def test_after_its_time_a_deletion_is_given_up_until_it_is_requested_again(seed, start):
    clock = Later()
    actuator = Script(delete=unauthorized)
    day = {ErrorCode.ERR_INFRA_UNAUTHORIZED: DAY}
    manager = stuck(seed, start, actuator, day, clock=clock)
    eventually(lambda: actuator.operations().count("delete") > 2)
    assert gave_up(manager) == 0
    clock.ahead = timedelta(days=2)
    eventually(lambda: gave_up(manager) == 1, seconds=130)
    assert (
        "no retry until the spec or the annotation gardener.cloud/timestamp changes"
        in condition(seed)["message"]
    )
    eventually(lambda: seed.events("GaveUp"))  # written after it is counted
    tried = actuator.operations().count("delete")
    seed.annotate(**{"example.org/other": "yes"})
    with pytest.raises(AssertionError):
        eventually(lambda: actuator.operations().count("delete") > tried, seconds=3)
    assert seed.get()["metadata"]["finalizers"] == [FINALIZER]
    actuator.on.clear()
    seed.annotate(**{"gardener.cloud/timestamp": "2026-01-02T00:00:00Z"})
    eventually(seed.is_gone)


def test_a_wrong_clock_gives_up_no_deletion(seed, start, monkeypatch):
    monkeypatch.setattr("generic.kube.clock.WINDOW", 60.0)
    clock = Later()
    actuator = Script(delete=unauthorized)
    day = {ErrorCode.ERR_INFRA_UNAUTHORIZED: DAY}
    manager = stuck(seed, start, actuator, day, clock=clock)
    clock.ahead = timedelta(days=2)
    tried = actuator.operations().count("delete")
    eventually(lambda: actuator.operations().count("delete") > tried + 1)
    clock.ahead = timedelta()
    assert gave_up(manager) == 0
    actuator.on.clear()
    eventually(seed.is_gone)


def test_an_object_given_up_by_a_wrong_clock_is_retried_once_the_clock_is_right(seed, start):
    clock = Later()
    actuator = Script(delete=unauthorized)
    day = {ErrorCode.ERR_INFRA_UNAUTHORIZED: DAY}
    manager = stuck(seed, start, actuator, day, clock=clock)
    clock.ahead = timedelta(days=2)
    eventually(lambda: gave_up(manager) == 1)
    actuator.on.clear()
    clock.ahead = timedelta()
    eventually(seed.is_gone)


def test_an_error_without_such_a_code_is_retried_without_limit(seed, start):
    clock = Later()
    actuator = Script(delete=unauthorized)
    clock.ahead = timedelta(days=400)
    other = {ErrorCode.ERR_INFRA_DEPENDENCIES: 0}
    manager = stuck(seed, start, actuator, other, clock=clock)
    eventually(lambda: actuator.operations().count("delete") > 3)
    assert gave_up(manager) == 0


def test_a_force_deletion_is_never_given_up(seed, start):
    actuator = Script(delete=unauthorized)
    stuck(seed, start, actuator, {None: 0})
    seed.update_cluster(cluster(seed.namespace, force="true"))
    eventually(seed.is_gone)


def test_a_stuck_object_reports_the_reason_its_attempts_and_the_next_one(seed, start):
    several = re.compile(r"([3-9]|\d\d+) failed attempts")
    stuck(seed, start, Script(delete=unauthorized))
    found = eventually(lambda: (c := condition(seed)) and several.search(c["message"]) and c)
    assert (found["status"], found["reason"]) == ("True", "ActuatorError")
    assert found["codes"] == ["ERR_INFRA_UNAUTHORIZED"]
    assert "revoked" in found["message"]
    assert seed.get()["metadata"]["deletionTimestamp"] in found["message"]
    assert "next attempt within 60 s" in found["message"]
    assert found["lastTransitionTime"] <= found["lastUpdateTime"]


def test_a_missing_cluster_is_named(seed, start):
    start(Script())
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete_cluster()
    seed.delete()
    found = eventually(lambda: condition(seed))
    assert found["reason"] == "ClusterMissing"


def test_a_denied_verb_is_named(seed, start):
    def forbidden(ctx, obj, cluster):
        raise Forbidden(403, 'secrets is forbidden: User "x" cannot list resource "secrets"')

    stuck(seed, start, Script(delete=forbidden))
    found = condition(seed)
    assert found["reason"] == "Forbidden"
    assert 'cannot list resource "secrets"' in found["message"]


def test_finalizers_of_others_are_named_when_ours_is_removed(seed, start):
    start(Script())
    seed.create(infrastructure(seed.namespace, seed.namespace, finalizers=[FOREIGN]))
    eventually(seed.is_ready)
    seed.delete()
    (event,) = eventually(lambda: seed.events("WaitsForOthers"))
    assert FOREIGN in event["message"]
    seed.patch({"metadata": {"finalizers": None}})


@pytest.mark.parametrize("events", ["all", "unusual"])
def test_each_outcome_is_one_event_where_all_are_asked_for(seed, start, events):
    start(Script(), outcome_events=events)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    eventually(seed.is_gone)
    assert len(seed.events("Deleted")) == (1 if events == "all" else 0)
