"""Objects as a tenant can write them: no text, depth or type stops or blinds a manager."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actuator import ActuatorError, ErrorCode
from actuator.cluster import FORCE_DELETION
from actuator.codec import MAX_DEPTH
from actuator.errors import Invalid
from generic.kube.client import JSON_PATCH, HttpClient, path_of
from generic.kube.clusters import CLUSTERS
from generic.kube.printable import printable
from generic.reconciler.orphans import ORPHANS, OrphanReason
from tests.support.cluster.harness import (
    FINALIZER,
    INFRASTRUCTURES,
    OPERATION,
    TIMESTAMP,
    Seed,
    eventually,
)
from tests.support.objects import builders

TEXTS = ("a=1&b=2", "<html>502</html>", "für", "\u2028x\u2029", '"\\\b\f\x7f', "😀")
PROBLEM = [ErrorCode.ERR_CONFIGURATION_PROBLEM]


def deep(levels: int) -> str:
    """JSON text: objects in lists in objects."""
    return '[{"a":' * (levels // 2) + "1" + "}]" * (levels // 2)


def create_deep(admin: HttpClient, seed: Seed, type: str, name: str = "infra", **more: Any) -> None:
    """An Infrastructure whose providerConfig has 2,000 levels, as no JSON library writes it."""
    config = {"here": None}
    manifest = builders.infrastructure(seed.namespace, type, name, provider_config=config, **more)
    body = json.dumps(manifest).replace("null", deep(2000))
    admin.send("POST", path_of(INFRASTRUCTURES, seed.namespace), body=body.encode())


def deepen_cluster(admin: HttpClient, seed: Seed) -> None:
    """Afterwards the shoot in the Cluster has a field of 2,000 levels."""
    patch = f'[{{"op":"add","path":"/spec/shoot/spec/provider","value":{deep(2000)}}}]'
    path = path_of(CLUSTERS, "", seed.namespace)
    admin.send("PATCH", path, body=patch.encode(), content_type=JSON_PATCH)


def blocked(seed: Seed) -> dict[str, Any]:
    conditions = seed.status().get("conditions") or []
    return next(
        (condition for condition in conditions if condition["type"] == "DeletionBlocked"), {}
    )


def orphans(seed: Seed) -> list[Any]:
    found = seed.client.list(ORPHANS)
    return [obj["spec"] for obj in found if obj["spec"].get("shoot") == seed.namespace]


def raising(text: str) -> Any:
    def act(*_: object) -> None:
        raise ActuatorError(text)

    return act


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_the_status_moves_on_whatever_the_text_of_an_error(seed, start, script, text):
    script.on["delete"] = raising(text)
    start(script)
    seed.create(builders.infrastructure(seed.namespace, seed.namespace, finalizers=[FINALIZER]))
    seed.delete()
    eventually(lambda: printable(" ".join(text.split())) in blocked(seed)["message"])
    script.on["delete"] = raising("the second error")
    eventually(lambda: "the second error" in blocked(seed)["message"])
    script.on.clear()
    eventually(seed.is_gone)


def test_a_request_is_removed_whatever_the_text_of_its_timestamp(seed, start, script):
    start(script)
    seed.create(builders.infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.annotate(**{OPERATION: "reconcile", TIMESTAMP: "<a&b> für \u2028"})
    eventually(lambda: OPERATION not in seed.get()["metadata"]["annotations"])


def test_deep_objects_and_clusters_of_others_block_no_manager(admin, seed, start, script):
    start(script)
    for type_ in (seed.namespace, "of-another-extension"):
        create_deep(admin, seed, type_, f"deep-{type_}")
    other = f"{seed.namespace}-other"
    seed.client.create(CLUSTERS, builders.cluster(other))
    deepen_cluster(admin, Seed(admin, other))
    seed.create(builders.infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    eventually(seed.is_gone)
    seed.client.delete(CLUSTERS, other)


def test_a_manager_that_starts_beside_a_deep_object_serves_the_others(admin, seed, start, script):
    create_deep(admin, seed, seed.namespace, "deep")
    deepen_cluster(admin, seed)
    seed.create(builders.infrastructure(seed.namespace, seed.namespace))
    manager = start(script)
    eventually(lambda: seed.status()["lastError"]["codes"] == PROBLEM)
    assert [name for name, check in manager.check_ready().items() if check()] == []


def test_an_unreadable_object_reports_it_and_disappears_when_it_is_deleted(
    admin, seed, start, script
):
    start(script)
    create_deep(admin, seed, seed.namespace)
    error = eventually(lambda: seed.status()["lastError"])
    assert f"spec.providerConfig is nested deeper than {MAX_DEPTH} levels" in error["description"]
    assert error["codes"] == PROBLEM
    assert FINALIZER not in seed.get()["metadata"].get("finalizers", [])
    seed.delete()
    eventually(seed.is_gone)
    assert script.operations() == []


def test_an_unreadable_object_with_our_finalizer_blocks_until_it_is_readable(
    admin, seed, start, script
):
    start(script)
    create_deep(admin, seed, seed.namespace, finalizers=[FINALIZER])
    seed.delete()
    eventually(lambda: blocked(seed) and seed.status()["lastError"]["codes"] == PROBLEM)
    assert not seed.is_gone()
    seed.patch([{"op": "replace", "path": "/spec/providerConfig", "value": {}}])
    eventually(seed.is_gone)
    assert script.operations() == ["delete"]


def test_an_unreadable_object_is_force_deleted_and_recorded_as_unknown(admin, seed, start, script):
    start(script, force_delete_budget=10.0)
    create_deep(admin, seed, seed.namespace, finalizers=[FINALIZER])
    seed.delete()
    eventually(lambda: seed.status()["lastError"])
    seed.update_cluster(builders.cluster(seed.namespace, force="true"))
    eventually(seed.is_gone, 15)
    (orphan,) = orphans(seed)
    assert (orphan["resourceType"], orphan["reason"]) == ("unknown", OrphanReason.UNREADABLE)
    assert script.operations() == []


@pytest.mark.parametrize("operation", ["wait-for-state", "migrate"])
def test_a_force_deletion_waits_for_no_operation(seed, start, script, operation):
    script.on["migrate"] = raising("cannot migrate")
    start(script, force_delete_budget=10.0)
    asked: dict[str, Any] = {"annotations": {OPERATION: operation}, "finalizers": [FINALIZER]}
    seed.update_cluster(builders.cluster(seed.namespace, force="true"))
    seed.create(builders.infrastructure(seed.namespace, seed.namespace, **asked))
    seed.delete()
    eventually(seed.is_gone, 15)
    assert script.operations()[-1] == "force_delete"


def test_objects_of_an_unreadable_cluster_are_blocked_and_can_be_force_deleted(
    admin, seed, start, script
):
    start(script)
    seed.create(builders.infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    script.on["delete"] = raising("not yet")  # the watch of Clusters may be behind
    deepen_cluster(admin, seed)
    seed.delete()
    unreadable = f"Cluster {seed.namespace} cannot be read"
    eventually(lambda: unreadable in seed.status()["lastError"]["description"])
    assert seed.status()["lastError"]["codes"] == PROBLEM
    metadata = {"name": "shoot", "annotations": {FORCE_DELETION: "true"}}
    patch = [{"op": "replace", "path": "/spec/shoot/metadata", "value": metadata}]
    admin.patch(CLUSTERS, seed.namespace, "", patch)
    eventually(seed.is_gone)
    assert script.operations()[-1] == "force_delete"


def test_explain_shows_an_unreadable_object(admin, seed, environment, command):
    create_deep(admin, seed, seed.namespace)
    answer = command(
        "explain", f"{seed.namespace}/Infrastructure/infra", "--kubeconfig", environment.kubeconfig
    )
    assert "cannot read the object: spec.providerConfig is nested deeper" in " ".join(
        answer.stdout.split()
    )


def test_an_api_server_compares_texts_as_they_are_encoded(admin, seed):
    """The reason for all this: the same value, in another valid encoding, fails the test."""
    name = f"{seed.namespace}-x"
    meta = {"name": name, "namespace": seed.namespace, "annotations": {"a": "x&y"}}
    created = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    admin.send(
        "POST", f"/api/v1/namespaces/{seed.namespace}/configmaps", body=json.dumps(created).encode()
    )
    path = f"/api/v1/namespaces/{seed.namespace}/configmaps/{name}"
    plain = b'[{"op":"test","path":"/metadata/annotations/a","value":"x&y"}]'
    with pytest.raises(Invalid):
        admin.send("PATCH", path, body=plain, content_type=JSON_PATCH)
    as_go = plain.replace(b"&", b"\\u0026")
    assert admin.send("PATCH", path, body=as_go, content_type=JSON_PATCH)
