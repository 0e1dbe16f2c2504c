"""The API server refuses, stalls, or forgets who we are, in the middle of a deletion."""

import threading
from typing import Any

import pytest

from actuator import Resource
from actuator.errors import ApiError
from hack.faults import Effect, Fault, Revocation, Revoked
from tests.support.cluster.harness import FINALIZER, eventually, is_allowed
from tests.support.objects.builders import API, cluster, infrastructure

POLICIES = Resource(
    "admissionregistration.k8s.io/v1", "validatingadmissionpolicies", namespaced=False
)
POLICY_BINDINGS = Resource(
    "admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings", namespaced=False
)
WEBHOOKS = Resource(
    "admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", namespaced=False
)
INFRASTRUCTURES = "infrastructures.*"
RELEASE: dict[str, Any] = {"verbs": ["patch"], "resource": INFRASTRUCTURES, "subresource": ""}


def ready(seed, *names):
    for name in names or ("infra",):
        seed.create(infrastructure(seed.namespace, seed.namespace, name))
    for name in names or ("infra",):
        eventually(lambda name=name: seed.is_ready(name))


@pytest.mark.parametrize(
    "fault",
    [
        Fault(effect=Effect.ANSWER, status=500, times=3, **RELEASE),
        Fault(effect=Effect.CUT, times=3, **RELEASE),
        Fault(effect=Effect.DROP_ANSWER, times=1, **RELEASE),
    ],
    ids=lambda fault: fault.effect.value,
)
def test_scenario_14_an_error_on_the_finalizer_patch_alone_calls_no_actuator_again(
    seed, script, behind, fault
):
    stage = behind(script)
    ready(seed)
    injection = stage.proxy.inject(fault)
    seed.delete()
    eventually(seed.is_gone)
    assert injection.hits == fault.times
    assert script.operations() == ["reconcile", "delete"]


def test_scenario_30_a_permission_revoked_in_a_deletion_is_named_until_it_is_back(
    seed, script, behind, gate, admin, blocked
):
    script.on["delete"] = lambda ctx, obj, cluster: gate.wait(100) and None
    stage = behind(script)
    ready(seed)
    seed.delete()
    eventually(lambda: "delete" in script.operations())
    revocation = Revocation(admin, stage.role, Revoked(resource="infrastructures", verbs=["patch"]))
    revocation.take()
    patch = ("patch", "infrastructures", API.partition("/")[0])
    eventually(lambda: not is_allowed(admin, stage.role, *patch, namespace=seed.namespace))
    gate.set()
    condition = eventually(lambda: blocked(seed))
    assert condition["reason"] == "Forbidden"
    assert 'cannot patch resource "infrastructures"' in condition["message"]
    revocation.give_back()
    eventually(seed.is_gone)
    assert script.operations() == ["reconcile", "delete"]


@pytest.fixture
def admission(admin, namespace):
    """Sets up a policy or webhook that refuses requests in this namespace, until the end."""
    made = []

    def set_up(*objects):
        for resource, manifest in objects:
            meta = {"name": manifest["metadata"]["name"]}
            admin.create(resource, manifest)
            made.append((resource, meta["name"]))

    def take_away():
        while made:
            resource, name = made.pop()
            admin.delete(resource, name)

    yield set_up, take_away
    take_away()


def rules(*operations):
    return {
        "apiGroups": [API.partition("/")[0]],
        "apiVersions": ["*"],
        "operations": list(operations),
        "resources": ["infrastructures"],
    }


def only(namespace):
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


def policy(namespace):
    """Refuses every change of an object that is being deleted, as careless webhooks do."""
    name = f"no-changes-in-{namespace}"
    expression = "!has(object.metadata.deletionTimestamp)"
    where = {"namespaceSelector": only(namespace), "resourceRules": [rules("UPDATE")]}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": where,
        "validations": [{"expression": expression, "message": "this object is immutable"}],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return (
        (POLICIES, {"metadata": {"name": name}, "spec": spec}),
        (POLICY_BINDINGS, {"metadata": {"name": name}, "spec": binding}),
    )


def absent_webhook(namespace):
    """A webhook whose server is gone, with failurePolicy Fail."""
    webhook = {
        "name": "gone.example.org",
        "clientConfig": {"url": "https://127.0.0.1:1/validate"},
        "rules": [rules("UPDATE")],
        "namespaceSelector": only(namespace),
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    name = f"gone-in-{namespace}"
    return ((WEBHOOKS, {"metadata": {"name": name}, "webhooks": [webhook]}),)


@pytest.fixture
def probe(seed):
    """A terminating object that stays: it shows whether the API server refuses writes already."""
    name = "probe"
    where = seed.namespace
    seed.create(infrastructure(where, "nobodys", name, finalizers=["example.org/probe"]))
    seed.delete(name)
    yield name
    eventually(lambda: not is_refused(seed, name))
    seed.patch([{"op": "remove", "path": "/metadata/finalizers"}], name)


@pytest.mark.parametrize(
    ("refusal", "name"),
    [
        pytest.param(policy, "ValidatingAdmissionPolicy 'no-changes-in-", id="policy"),
        pytest.param(absent_webhook, 'failed calling webhook "gone.example.org"', id="webhook"),
    ],
)
def test_scenario_34_the_policy_or_webhook_that_denies_the_finalizer_patch_is_named(
    seed, start, script, probe, admission, blocked, admin, refusal, name
):
    set_up, take_away = admission
    start(script)
    ready(seed)
    set_up(*refusal(seed.namespace))
    eventually(lambda: is_refused(seed, probe))
    admin.delete(seed.resource, seed.name, seed.namespace)
    condition = eventually(lambda: blocked(seed))
    assert name in condition["message"]
    assert seed.get()["metadata"]["finalizers"] == [FINALIZER]
    take_away()
    eventually(seed.is_gone)
    assert script.operations() == ["reconcile", "delete"], "cleaned up once"


def is_refused(seed, name):
    """Whether the API server has taken the refusal up."""
    try:
        seed.annotate(name, tried="yes")
    except ApiError:
        return True
    return False


def test_scenario_47_watches_that_are_refused_with_401_return(seed, script, behind):
    """test_kubeconfig.py proves for each sort of credentials that they are read again."""
    stage = behind(script)
    ready(seed)
    refused = stage.proxy.inject(Fault(effect=Effect.ANSWER, status=401))
    stage.proxy.go_down()
    stage.proxy.come_back()
    eventually(lambda: refused.hits > 2)
    seed.create(infrastructure(seed.namespace, seed.namespace, "meanwhile"))
    refused.remove()
    eventually(lambda: seed.is_ready("meanwhile"))
    seed.delete()
    eventually(seed.is_gone)


def test_scenario_50_a_repeated_foreground_deletion_meets_no_finalizer_of_ours_again(
    seed, start, script, gate, admin
):
    """Kubernetes issue 77081: a controller that adds finalizers again keeps such an object."""
    script.on["delete"] = lambda ctx, obj, cluster: gate.wait(100) and None
    start(script)
    ready(seed)
    seed.patch([{"op": "add", "path": "/metadata/finalizers/-", "value": "example.org/other"}])
    seen = []

    def foreground():
        admin.delete(seed.resource, seed.name, seed.namespace, propagation="Foreground")
        seen.append(seed.get()["metadata"]["finalizers"])

    foreground()
    eventually(lambda: "delete" in script.operations())
    foreground()
    gate.set()
    eventually(lambda: FINALIZER not in seed.get()["metadata"]["finalizers"])
    for _ in range(5):
        foreground()
        threading.Event().wait(0.2)
    assert all(FINALIZER in found for found in seen[:2])
    assert not any(FINALIZER in found for found in seen[2:])
    patch = {"metadata": {"finalizers": None}}
    admin.patch(seed.resource, seed.name, seed.namespace, patch)
    eventually(seed.is_gone)
    assert script.operations() == ["reconcile", "delete"]


def test_an_object_reconciled_with_a_stale_cluster_is_reconciled_again(seed, script, behind):
    """gardenlet writes the Cluster, then requests the operation; watches have no order. With Go's
    library a shoot then stays awake without any error."""
    asleep = []
    script.on["reconcile"] = lambda ctx, obj, cluster: asleep.append(cluster.hibernation_enabled)
    stage = behind(script)
    ready(seed)
    late = stage.proxy.inject(
        Fault(effect=Effect.DELAY_LINE, seconds=60, resource="clusters.*", times=1)
    )
    manifest = cluster(seed.namespace)
    manifest["spec"]["shoot"]["spec"]["hibernation"] = {"enabled": True}
    seed.update_cluster(manifest)
    seed.ask("reconcile")
    eventually(lambda: len(asleep) == 2 and seed.is_ready())
    late.remove()
    eventually(lambda: len(asleep) == 3)
    assert asleep == [False, False, True]
