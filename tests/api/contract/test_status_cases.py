"""The Gardener contract: the status, and small rules around it."""

import pytest

from actuator import ActuatorError, ConfigurationError, ErrorCode, RequeueAfter
from actuator.cluster import Cluster, ClusterSpec
from actuator.errors import Unavailable
from actuator.references import locate_referenced
from tests.support.cluster.harness import OPERATION, TIMESTAMP, eventually
from tests.support.objects.builders import infrastructure


def fails_once(error):
    errors = [error]

    def operate(ctx, obj, cluster):
        if errors:
            raise errors.pop()

    return operate


def seen_when_called_again(seed, start, script, error):
    """The status after a first reconcile that ended so, as the second one sees it."""
    seen = []
    fails = fails_once(error)

    def operate(ctx, obj, cluster):
        seen.append(seed.status())
        fails(ctx, obj, cluster)

    script.on["reconcile"] = operate
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    assert script.operations() == ["reconcile", "reconcile"]
    return seen[1]


def failed(seed, start, script, error):
    """The status after a first reconcile that failed with that error, and is not tried again."""

    def operate(ctx, obj, cluster):
        raise RequeueAfter(3600, cause=error)

    script.on["reconcile"] = operate
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(lambda: seed.last_operation() == ("Create", "Error"))
    return seed.status()


def test_processing_says_type_and_progress_and_leaves_the_rest(seed, start, script, gate):
    failed(seed, start, script, ActuatorError("no"))
    script.on["reconcile"] = lambda ctx, obj, cluster: gate.wait(100)
    seed.patch({"spec": {"region": "eu-2"}})
    seed.ask("reconcile")
    eventually(lambda: seed.last_operation() == ("Create", "Processing"))
    status = seed.status()
    assert status["lastOperation"]["progress"] == 1
    assert status["lastOperation"]["description"] == "Reconciling Infrastructure"
    assert status["lastError"]["description"].endswith("no")
    assert status["observedGeneration"] == 1


def test_an_error_without_codes_has_none(seed, start, script):
    status = failed(seed, start, script, ActuatorError("no network"))
    assert status["lastOperation"]["progress"] == 50
    assert status["lastError"]["description"] == status["lastOperation"]["description"]
    assert "no network" in status["lastError"]["description"]
    assert "codes" not in status["lastError"]
    assert status["observedGeneration"] == 1


def test_an_error_with_codes_is_written_with_them(seed, start, script):
    code = ErrorCode.ERR_INFRA_QUOTA_EXCEEDED
    status = failed(seed, start, script, ActuatorError("too much", codes=[code]))
    assert status["lastError"]["codes"] == ["ERR_INFRA_QUOTA_EXCEEDED"]


def test_success_removes_the_error(seed, start, script):
    script.on["reconcile"] = fails_once(ActuatorError("no"))
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(lambda: seed.last_operation() == ("Create", "Succeeded"))
    status = seed.status()
    assert status["lastOperation"]["progress"] == 100
    assert "lastError" not in status
    assert status["observedGeneration"] == 1


class RefusesStatus:
    """A client whose API server is unavailable for its first writes of statuses."""

    def __init__(self, inner, times):
        self.inner = inner
        self.times = times

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def patch(self, resource, name, namespace, patch, *, subresource=""):
        if subresource == "status" and self.times > 0:
            self.times -= 1
            raise Unavailable(503, "not now")
        return self.inner.patch(resource, name, namespace, patch, subresource=subresource)


@pytest.mark.parametrize("processing", ["slow", "always"])
def test_a_status_that_cannot_be_written_is_tried_again(seed, start, script, processing):
    """Difference: the reconciler hides no such failure; after an error status it logs it too."""
    start(script, intercept=lambda client: RefusesStatus(client, 2), processing_status=processing)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)


def test_taking_the_request_off_leaves_the_other_annotations(seed, start, script):
    start(script)
    annotations = {OPERATION: "reconcile", TIMESTAMP: "2026-01-01T00:00:00Z", "example.org/a": "b"}
    seed.create(infrastructure(seed.namespace, seed.namespace, annotations=annotations))
    eventually(seed.is_ready)
    del annotations[OPERATION]
    assert seed.get()["metadata"]["annotations"] == annotations


@pytest.mark.parametrize("type", ["Create", "Reconcile", "Delete", "Migrate", "Restore"])
@pytest.mark.parametrize("state", ["Succeeded", "Error", "Processing", "Failed"])
def test_only_migrate_succeeded_means_migrated(seed, start, script, type, state):
    waiting(seed, type, state)
    seed.annotate(**{OPERATION: "reconcile"})
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace, name="other"))
    eventually(lambda: seed.is_ready("other"))
    if (type, state) == ("Migrate", "Succeeded"):
        assert script.operations() == []
    else:
        eventually(script.operations)


def waiting(seed, type, state):
    """An object whose last operation was that one, and that waits for gardenlet."""
    last = {
        "type": type,
        "state": state,
        "progress": 50,
        "description": "",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }
    asked = {OPERATION: "wait-for-state"}
    seed.create(infrastructure(seed.namespace, seed.namespace, annotations=asked))
    patch = [{"op": "add", "path": "/status", "value": {"lastOperation": last}}]
    return seed.patch(patch, subresource="status")


@pytest.mark.parametrize(
    ("asked", "called"),
    [("reconcile", []), ("restore", ["restore"]), ("migrate", ["migrate"]), ("delete", [])],
)
def test_a_migrated_object_is_left_alone_unless_it_is_to_move(seed, start, script, asked, called):
    waiting(seed, "Migrate", "Succeeded")
    if asked == "delete":
        seed.annotate(**{OPERATION: None})
        seed.delete()
    else:
        seed.annotate(**{OPERATION: asked})
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace, name="other"))
    eventually(lambda: seed.is_ready("other"))
    eventually(lambda: script.operations() == called)


def test_requeue_after_with_a_cause_reports_it_and_looks_again(seed, start, script):
    again = RequeueAfter(0.5, cause=ActuatorError("the cause"))
    status = seen_when_called_again(seed, start, script, again)
    last = status["lastOperation"]
    assert (last["type"], last["state"]) == ("Create", "Error")
    assert "the cause" in status["lastError"]["description"]


def test_requeue_after_without_a_cause_is_no_error(seed, start, script):
    """Difference: Go's library reports the request's own text as an error. Ours says
    Processing with that text, since nothing went wrong."""
    again = RequeueAfter(0.5, "Waiting for the gateway")
    status = seen_when_called_again(seed, start, script, again)
    last = status["lastOperation"]
    assert (last["type"], last["state"]) == ("Create", "Processing")
    assert last["description"] == "Waiting for the gateway"
    assert "lastError" not in status


@pytest.mark.parametrize(
    ("kind", "plural", "name"),
    [
        ("Secret", "secrets", "ref-mine"),
        ("ConfigMap", "configmaps", "ref-mine"),
        ("WorkloadIdentity", "workloadidentities", "workload-identity-ref-mine"),
    ],
)
def test_referenced_resources_are_found_by_their_prefix(kind, plural, name):
    entry = {"name": "dns", "resourceRef": {"kind": kind, "name": "mine"}}
    cluster = Cluster(spec=ClusterSpec(shoot={"spec": {"resources": [entry]}}))
    resource, found = locate_referenced(cluster, "dns")
    assert (resource.plural, found) == (plural, name)
    with pytest.raises(ConfigurationError, match="'other'"):
        locate_referenced(cluster, "other")
