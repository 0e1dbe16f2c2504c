"""ManagedResources: deployed, changed, kept, deleted, awaited; never those of others."""

import base64
import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import brotli
import pytest
import yaml

from actuator import Resource
from actuator.codec import decode
from actuator.errors import ActuatorError, NotFound, RequeueAfter
from generic.kube.clock import SystemClock
from generic.library import managedresources
from generic.library.managedresources import ManagedResource
from generic.library.managedresources.kind import MANAGED_RESOURCES, SHOOT_FINALIZER
from generic.testing.seed import install

SECRETS = Resource("v1", "secrets")
NAME = "mine"


@attrs.frozen
class Clock:
    """A clock that is ahead."""

    ahead: timedelta

    def now(self):
        return datetime.now(UTC) + self.ahead

    def monotonic(self):
        return 0.0


@pytest.fixture
def client(admin, environment):
    install(environment, [ManagedResource])
    return admin


def config_map(name="one", **data):
    meta = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def get(client, namespace):
    return client.get(MANAGED_RESOURCES, NAME, namespace)


def contents(client, namespace):
    found: list[Any] = []
    for ref in get(client, namespace)["spec"]["secretRefs"]:
        secret = client.get(SECRETS, ref["name"], namespace)
        assert secret["immutable"]
        for key, value in secret["data"].items():
            text = base64.b64decode(value)
            text = brotli.decompress(text) if key.endswith(".br") else text
            found += yaml.load_all(text, Loader=yaml.CSafeLoader)
    return found


def say(client, namespace, **status):
    client.patch(MANAGED_RESOURCES, NAME, namespace, {"status": status}, subresource="status")


def hold(client, namespace, finalizers=(f"{SHOOT_FINALIZER}-seed",)):
    patch = {"metadata": {"finalizers": list(finalizers) or None}}
    client.patch(MANAGED_RESOURCES, NAME, namespace, patch)


def condition(type, status="True", reason="Because", message="so it is"):
    now = "2026-01-01T00:00:00Z"
    said = {"type": type, "status": status, "reason": reason, "message": message}
    return {**said, "lastTransitionTime": now, "lastUpdateTime": now}


def test_the_seed_gets_exactly_these_manifests(client, namespace):
    wanted = [config_map("one", a="1"), config_map("two")]
    managedresources.deploy_for_seed(client, NAME, namespace, wanted)
    found = get(client, namespace)
    assert found["spec"]["class"] == "seed"
    assert found["spec"]["keepObjects"] is False
    assert contents(client, namespace) == wanted


def test_the_shoot_gets_them_without_a_class_and_labelled(client, namespace):
    managedresources.deploy_for_shoot(
        client, NAME, namespace, [config_map()], origin="mine", force_overwrite_annotations=True
    )
    found = get(client, namespace)
    assert "class" not in found["spec"]
    assert found["spec"]["injectLabels"] == {"shoot.gardener.cloud/no-cleanup": "true"}
    assert found["spec"]["forceOverwriteAnnotations"] is True
    assert found["metadata"]["labels"] == {"origin": "mine"}


def test_the_annotations_for_the_garbage_collector_name_the_secret_in_use_alone(client, namespace):
    for value in ("1", "2"):
        managedresources.deploy_for_seed(client, NAME, namespace, [config_map(a=value)])
        (used,) = get(client, namespace)["spec"]["secretRefs"]
        key = f"reference.resources.gardener.cloud/secret-{hashed(used['name'])}"
        assert get(client, namespace)["metadata"]["annotations"] == {key: used["name"]}
    others = {"metadata": {"annotations": {"example.org/kept": "yes"}, "labels": {"kept": "yes"}}}
    client.patch(MANAGED_RESOURCES, NAME, namespace, others)
    managedresources.deploy_for_seed(client, NAME, namespace, [config_map(a="3")])
    meta = get(client, namespace)["metadata"]
    assert meta["annotations"].pop("example.org/kept") == "yes"
    assert len(meta["annotations"]) == 1
    assert meta["labels"] == {"kept": "yes", "origin": "actuator"}


class Racing:
    """Another party annotates a ManagedResource right after it was read."""

    def __init__(self, client):
        self._client = client

    def __getattr__(self, name):
        return getattr(self._client, name)

    def get(self, resource, name, namespace=""):
        found = self._client.get(resource, name, namespace)
        if resource == MANAGED_RESOURCES:
            patch = {"metadata": {"annotations": {"example.org/changed": "yes"}}}
            self._client.patch(resource, name, namespace, patch)
        return found


def test_a_change_between_read_and_write_is_kept_and_the_write_repeated_later(client, namespace):
    managedresources.deploy_for_seed(client, NAME, namespace, [config_map(a="1")])
    with pytest.raises(RequeueAfter, match="was modified concurrently"):
        managedresources.deploy_for_seed(Racing(client), NAME, namespace, [config_map(a="2")])
    assert get(client, namespace)["metadata"]["annotations"]["example.org/changed"] == "yes"
    managedresources.deploy_for_seed(client, NAME, namespace, [config_map(a="2")])
    assert contents(client, namespace) == [config_map(a="2")]


def hashed(name):
    return sha256(name.encode()).hexdigest()[:8]


def test_the_same_again_writes_nothing_and_another_content_is_another_secret(client, namespace):
    def deploy(value):
        managedresources.deploy_for_seed(client, NAME, namespace, [config_map(a=value)])
        return get(client, namespace)

    first = deploy("1")
    assert deploy("1")["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    second = deploy("2")
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert second["spec"]["secretRefs"] != first["spec"]["secretRefs"]
    (old,) = first["spec"]["secretRefs"]
    label = "resources.gardener.cloud/garbage-collectable-reference"
    assert client.get(SECRETS, old["name"], namespace)["metadata"]["labels"][label] == "true"


def test_a_managed_resource_of_another_owner_is_neither_taken_over_nor_kept_nor_deleted(
    client, namespace
):
    managedresources.deploy_for_seed(client, NAME, namespace, [config_map()], origin="other")
    before = get(client, namespace)
    with pytest.raises(ActuatorError, match="without the label origin=actuator"):
        managedresources.deploy_for_seed(client, NAME, namespace, [config_map(a="1")])
    managedresources.set_keep_objects(client, NAME, namespace, keep=True)
    managedresources.delete(client, NAME, namespace)
    managedresources.check_deleted(client, SystemClock(), NAME, namespace=namespace)
    assert get(client, namespace) == before
    assert contents(client, namespace) == [config_map()]


def test_a_deletion_takes_the_secrets_too_and_gone_is_fine(client, namespace):
    managedresources.deploy_for_seed(client, NAME, namespace, [config_map()])
    for _ in range(2):
        managedresources.delete(client, NAME, namespace)
    managedresources.check_deleted(client, SystemClock(), NAME, namespace=namespace)
    managedresources.set_keep_objects(client, NAME, namespace, keep=True)
    assert not client.list(SECRETS, namespace)
    with pytest.raises(NotFound):
        get(client, namespace)


def test_objects_can_be_kept(client, namespace):
    managedresources.deploy_for_shoot(client, NAME, namespace, [config_map()])
    managedresources.set_keep_objects(client, NAME, namespace, keep=True)
    assert get(client, namespace)["spec"]["keepObjects"] is True


def test_while_it_is_held_the_deletion_is_waited_for(client, namespace):
    managedresources.deploy_for_seed(client, NAME, namespace, [config_map()])
    hold(client, namespace)
    managedresources.delete(client, NAME, namespace)
    with pytest.raises(RequeueAfter, match=f"Waiting for the deletion of ManagedResource {NAME}"):
        managedresources.check_deleted(client, SystemClock(), "gone", NAME, namespace=namespace)
    with pytest.raises(RequeueAfter, match="Waiting for the deletion of the old"):
        managedresources.deploy_for_seed(client, NAME, namespace, [config_map()])
    pending = condition("ResourcesApplied", "False", "DeletionPending", "ConfigMap one is held")
    say(client, namespace, conditions=[pending])
    with pytest.raises(ActuatorError, match="more than 2 minutes: ConfigMap one is held"):
        managedresources.check_deleted(
            client, Clock(timedelta(minutes=3)), NAME, namespace=namespace
        )
    failed = condition("ResourcesApplied", "False", "DeletionFailed", "a webhook says no")
    say(client, namespace, conditions=[failed])
    with pytest.raises(ActuatorError, match="failed: a webhook says no") as caught:
        managedresources.check_deleted(client, SystemClock(), NAME, namespace=namespace)
    assert caught.value.codes == ("ERR_CLEANUP_CLUSTER_RESOURCES",)
    hold(client, namespace, [])
    managedresources.check_deleted(client, SystemClock(), NAME, namespace=namespace)


def test_it_is_healthy_once_applied_as_it_is_now_and_healthy(client, namespace):
    def healthy():
        return managedresources.is_healthy(decode(ManagedResource, get(client, namespace)))

    managedresources.deploy_for_seed(client, NAME, namespace, [config_map()])
    assert not healthy()
    good = [condition("ResourcesApplied"), condition("ResourcesHealthy")]
    say(client, namespace, conditions=good, observedGeneration=1)
    assert healthy()
    managedresources.deploy_for_seed(client, NAME, namespace, [config_map(a="1")])
    assert not healthy()
    say(client, namespace, conditions=good[:1], observedGeneration=2)
    assert not healthy()


def test_several_are_awaited_until_each_is_healthy_and_a_long_failure_is_an_error(
    client, namespace
):
    def wait(*names, minutes=1):
        managedresources.wait_until_healthy(client, clock_at(minutes), *names, namespace=namespace)

    wait()
    with pytest.raises(RequeueAfter, match=r"^Waiting for ManagedResource absent to be healthy$"):
        wait("absent")
    managedresources.deploy_for_seed(client, NAME, namespace, [config_map()])
    with pytest.raises(RequeueAfter, match=f"^Waiting for ManagedResource {NAME}, absent to be"):
        wait(NAME, "absent")
    progressing = condition("ResourcesProgressing", "False", message="rolled out")
    failed = {**condition("ResourcesHealthy", "False", message="no pod"), "codes": CODES}
    bad = [condition("ResourcesApplied"), failed, progressing]
    say(client, namespace, conditions=bad, observedGeneration=1)
    with pytest.raises(
        RequeueAfter, match=f"^Waiting for ManagedResource {NAME} to be healthy: no"
    ):
        wait(NAME)
    with pytest.raises(
        ActuatorError, match=r"ResourcesHealthy is False for more than 120 s: no pod$"
    ) as no:
        wait(NAME, minutes=3)
    assert no.value.codes == ("ERR_CONFIGURATION_PROBLEM",)
    managedresources.deploy_for_seed(client, NAME, namespace, [config_map(a="1")])
    with pytest.raises(RequeueAfter, match="no pod"):
        wait(NAME, minutes=3)  # the condition is about the former content
    good = [condition("ResourcesApplied"), condition("ResourcesHealthy")]
    say(client, namespace, conditions=good, observedGeneration=2)
    wait(NAME)


def test_the_example_in_the_documentation_runs(client, namespace):
    text = (Path(__file__).parents[3] / "docs/extensions.md").read_text()
    names: dict[str, Any] = {}
    [code] = [part for part in text.split("```") if "managedresources.wait_until_healthy(" in part]
    exec(code.removeprefix("python"), names)
    ctx = SimpleNamespace(client=client, clock=SystemClock())
    with pytest.raises(RequeueAfter, match="Waiting for ManagedResource extension-agent"):
        names["deploy"](ctx, namespace)
    good = [condition("ResourcesApplied"), condition("ResourcesHealthy")]
    patch = {"status": {"conditions": good, "observedGeneration": 1}}
    where = MANAGED_RESOURCES, "extension-agent", namespace
    client.patch(*where, patch, subresource="status")
    names["deploy"](ctx, namespace)


CODES = ["ERR_CONFIGURATION_PROBLEM", "ERR_OF_A_NEWER_GARDENER"]


def clock_at(minutes):
    """A clock at that time after the transition of `condition`."""
    then = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    return Clock(then - datetime.now(UTC))


def test_a_secret_that_was_replaced_under_its_name_is_refused(client, namespace):
    managedresources.deploy_for_seed(client, NAME, namespace, [config_map()])
    (ref,) = get(client, namespace)["spec"]["secretRefs"]
    meta = client.get(SECRETS, ref["name"], namespace)["metadata"]
    client.delete(SECRETS, ref["name"], namespace)
    fake = {"name": ref["name"], "namespace": namespace, "labels": meta["labels"]}
    data = {"objects.yaml": base64.b64encode(json.dumps({}).encode()).decode()}
    client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": fake, "data": data})
    with pytest.raises(ActuatorError, match="was modified by another owner"):
        managedresources.deploy_for_seed(client, NAME, namespace, [config_map()])


def name_of(obj):
    return obj["metadata"]["name"]


def test_manifests_above_the_limit_of_a_secret_are_deployed(client, namespace):
    small = [config_map(f"m{index}", a="x" * 300_000) for index in range(4)]
    large = config_map("large", a="y" * 1_100_000)
    for wanted in ([*small, large], [*small, config_map("other")], [*small, large]):
        managedresources.deploy_for_shoot(client, NAME, namespace, wanted)
        found = contents(client, namespace)
        assert sorted(found, key=name_of) == sorted(wanted, key=name_of)
    meta = get(client, namespace)["metadata"]
    names = {ref["name"] for ref in get(client, namespace)["spec"]["secretRefs"]}
    assert len(names) == 3
    assert set(meta["annotations"].values()) == names
    managedresources.delete(client, NAME, namespace)
    assert names.isdisjoint(obj["metadata"]["name"] for obj in client.list(SECRETS, namespace))


FIELDS = {
    "keep_objects": True,
    "delete_persistent_volume_claims": True,
    "force_overwrite_annotations": True,
    "force_overwrite_labels": True,
    "inject_labels": {"a": "b"},
    "equivalences": [[managedresources.GroupKind(group="apps", kind="Deployment")]],
}


@pytest.mark.parametrize("deploy", ["deploy_for_seed", "deploy_for_shoot"])
def test_further_fields_stay_as_long_as_they_are_passed(client, namespace, deploy):
    def spec(value, **fields):
        function = getattr(managedresources, deploy)
        function(client, NAME, namespace, [config_map(a=value)], **fields)
        found = get(client, namespace)["spec"]
        return {key: found[key] for key in found if key != "secretRefs"}

    plain = spec("1")
    every = spec("1", **FIELDS)
    assert every["deletePersistentVolumeClaims"] is True
    assert every["injectLabels"] == {**plain.get("injectLabels", {}), "a": "b"}
    assert every["equivalences"] == [[{"group": "apps", "kind": "Deployment"}]]
    assert len(every) == len(FIELDS) + (deploy == "deploy_for_seed")
    assert spec("2", **FIELDS) == every
    assert spec("3") == plain
