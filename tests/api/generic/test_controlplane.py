"""The generic ControlPlane: the deployed parts, the order of their deletion, and kept objects."""

import base64
import json
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from actuator import Resource
from actuator.errors import NotFound
from actuator.meta import format_time
from actuator.tolerance import decode_tolerantly
from actuator.v1alpha1 import ControlPlane
from generic.library.charts import Chart
from generic.library.controlplane import GenericControlPlane, checksum_of
from generic.library.controlplane.actuator import _credentials
from generic.library.managedresources import ManagedResource
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.testing.seed import install
from tests.support.cluster.harness import Seed, eventually
from tests.support.objects import builders
from tests.support.objects.stand_ins import UNUSED

SECRETS = Resource("v1", "secrets")
DEPLOYMENTS = Resource("apps/v1", "deployments")
CONFIG = "extension-controlplane-configuration-seed"
SEED = "extension-controlplane-seed"
SHOOT = "extension-controlplane-shoot"
CRDS = "extension-controlplane-shoot-crds"
STORAGE = "extension-controlplane-storageclasses"
WEBHOOKS = "extension-controlplane-shoot-webhooks"
ALWAYS = {SEED, SHOOT, STORAGE}
HELD = "example.org/held"


def config_map(name):
    meta = {"name": name, "namespace": "kube-system"}
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}]


class Generated:
    """Secrets in the namespace, marked; cleaning up deletes those not asked for."""

    def __init__(self, client, namespace):
        self.client = client
        self.namespace = namespace
        self.kept = set()

    def ensure(self, configs):
        for name in configs:
            meta = {"name": name, "namespace": self.namespace, "labels": {"generated": "true"}}
            self.client.apply(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
        self.kept.update(configs)
        return {name: {"ca.crt": b"x"} for name in configs}

    def cleanup(self):
        for secret in self.client.list(SECRETS, self.namespace, label_selector="generated=true"):
            if secret["metadata"]["name"] not in self.kept:
                self.client.delete(SECRETS, secret["metadata"]["name"], self.namespace)


class Plain(GenericControlPlane):
    """No more than every provider has."""

    access_secrets = ("csi",)
    permissions = (
        *GenericControlPlane.permissions,
        Resource("v1", "secrets").permission("list"),
    )

    def __init__(self):
        self.hooks = []
        self.scaled_down = None

    def seed(self, at):
        self.hooks.append("seed")
        self.scaled_down = at.scaled_down
        return config_map(f"seed-{at.checksum('ca')[:4]}")

    def shoot(self, at):
        return config_map("shoot")

    def storage_classes(self, at):
        return config_map("storage")

    def secret_configs(self, control_plane, cluster):
        return ["ca"]

    def secrets_manager(self, ctx, control_plane):
        return Generated(ctx.client, control_plane.metadata.namespace)


class Full(Plain):
    """With every part."""

    def config(self, at):
        self.hooks.append("config")
        return config_map("config")

    def shoot_crds(self, at):
        return config_map("crds")

    def shoot_webhooks(self, at):
        return config_map("webhooks")


@pytest.fixture
def cp(admin, environment, seed, namespace):
    install(environment, [ManagedResource])
    return seed.of(ControlPlane, "cp")


def create(cp: Seed):
    deploy(cp)
    eventually(lambda: is_created(cp))


def deploy(cp: Seed):
    spec = {"type": cp.namespace, "region": "eu-1", "secretRef": {"name": "cloudprovider"}}
    meta = {"name": "cp", "namespace": cp.namespace}
    cp.create({"apiVersion": builders.API, "kind": "ControlPlane", "metadata": meta, "spec": spec})


def is_created(cp):
    """No resource manager runs here: the test reports the webhooks to be healthy."""
    if WEBHOOKS in managed(cp):
        report(cp, WEBHOOKS)
    return cp.last_operation() == ("Create", "Succeeded")


def report(cp, name, status="True", message="All is well", *, ago=0):
    """As the resource manager does."""
    generation = managed(cp)[name]["metadata"]["generation"]
    now = format_time(datetime.now(UTC) - timedelta(seconds=ago))
    said = {"status": status, "reason": "Tested", "message": message}
    times = {"lastTransitionTime": now, "lastUpdateTime": now}
    conditions = [
        {"type": type, **said, **times} for type in ("ResourcesApplied", "ResourcesHealthy")
    ]
    patch = {"status": {"observedGeneration": generation, "conditions": conditions}}
    cp.client.patch(MANAGED_RESOURCES, name, cp.namespace, patch, subresource="status")


def managed(cp):
    found = cp.client.list(MANAGED_RESOURCES, cp.namespace)
    return {mr["metadata"]["name"]: mr for mr in found}


def left(cp):
    """The ManagedResources without a deletion timestamp."""
    return {n for n, mr in managed(cp).items() if not mr["metadata"].get("deletionTimestamp")}


def secrets(cp):
    names = {secret["metadata"]["name"] for secret in cp.client.list(SECRETS, cp.namespace)}
    return {name for name in names if not name.startswith("managedresource-")}


def hold(cp, *names):
    for name in names:
        patch = {"metadata": {"finalizers": [HELD]}}
        cp.client.patch(MANAGED_RESOURCES, name, cp.namespace, patch)


def release(cp, *names):
    """Remove the finalizers; an object deleted meanwhile has none."""
    for name in names:
        patch = {"metadata": {"finalizers": None}}
        with suppress(NotFound):
            cp.client.patch(MANAGED_RESOURCES, name, cp.namespace, patch)


@pytest.mark.parametrize(
    ("actuator", "parts"), [(Plain, ALWAYS), (Full, ALWAYS | {CONFIG, CRDS, WEBHOOKS})]
)
def test_exactly_the_parts_that_there_are_come_and_go(cp, start, actuator, parts):
    start(actuator())
    create(cp)
    assert managed(cp).keys() == parts
    in_seed = {name for name, mr in managed(cp).items() if mr["spec"].get("class") == "seed"}
    assert in_seed == parts & {SEED, CONFIG}
    assert managed(cp)[STORAGE]["spec"]["forceOverwriteAnnotations"] is True
    assert secrets(cp) == {"ca", "shoot-access-csi"}
    cp.delete()
    eventually(cp.is_gone)
    assert not managed(cp)
    assert not secrets(cp)
    assert not cp.client.list(SECRETS, cp.namespace)


def test_a_deletion_waits_for_the_shoot_before_the_seeds_part_goes(cp, start):
    start(Full())
    create(cp)
    hold(cp, CRDS, SHOOT, WEBHOOKS)
    cp.delete()
    eventually(lambda: CRDS in str(cp.status()))
    assert left(cp) == {SHOOT, SEED, CONFIG, WEBHOOKS}
    release(cp, CRDS)
    eventually(lambda: f"ManagedResource {SHOOT}" in str(cp.status()) and SHOOT not in left(cp))
    assert left(cp) == {SEED, CONFIG, WEBHOOKS}
    release(cp, SHOOT)
    eventually(lambda: managed(cp).keys() == {WEBHOOKS} and not left(cp))
    assert secrets(cp) == {"ca"}
    release(cp, WEBHOOKS)
    eventually(cp.is_gone)
    assert not secrets(cp)


def test_on_migration_the_shoot_keeps_its_objects_and_secrets_stay(cp, start):
    start(Full())
    create(cp)
    hold(cp, *managed(cp))
    cp.ask("migrate")
    kept = (SHOOT, CRDS, STORAGE)
    eventually(lambda: CRDS not in left(cp))
    assert {n for n, mr in managed(cp).items() if mr["spec"].get("keepObjects")} == set(kept)
    release(cp, *managed(cp))
    for name in (SHOOT, SEED, CONFIG, WEBHOOKS):
        eventually(lambda name=name: name not in left(cp))
        release(cp, *managed(cp))
    eventually(lambda: cp.last_operation() == ("Migrate", "Succeeded"))
    assert secrets(cp) == {"ca"}


def test_a_forced_deletion_asks_no_hook_renders_nothing_and_waits_for_nothing(cp, start, tmp_path):
    class Broken(Full):
        def config(self, at):
            self.hooks.append("config")
            if at.cluster.needs_force_deletion or at.cluster.is_deleting:
                return Chart(path=tmp_path / "lost", namespace=at.namespace)
            return config_map("config")

    actuator = Broken()
    start(actuator)
    create(cp)
    hold(cp, *managed(cp))
    before = list(actuator.hooks)
    cp.update_cluster(builders.cluster(cp.namespace, force="true"))
    cp.delete()
    eventually(cp.is_gone)
    assert actuator.hooks == before
    assert not left(cp)
    assert not secrets(cp)
    release(cp, *managed(cp))


def run_kube_apiserver(cp):
    labels = {"app": "x"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kube-apiserver", "namespace": cp.namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
    }
    cp.client.create(DEPLOYMENTS, deployment)


def test_a_hibernated_control_plane_is_looked_at_again_until_kube_apiserver_sleeps(cp, start):
    run_kube_apiserver(cp)
    cp.update_cluster(hibernated(cp.namespace))
    actuator = Plain()
    start(actuator)
    create(cp)
    assert actuator.scaled_down is False
    cp.client.patch(DEPLOYMENTS, "kube-apiserver", cp.namespace, {"spec": {"replicas": 0}})
    eventually(lambda: actuator.scaled_down is True)


def test_a_part_that_is_no_longer_wanted_goes(cp, start):
    class Fickle(Full):
        wanted = True

        def shoot_webhooks(self, at):
            return config_map("webhooks") if self.wanted else None

    actuator = Fickle()
    start(actuator)
    create(cp)
    assert WEBHOOKS in managed(cp)
    actuator.wanted = False
    cp.ask("reconcile")
    eventually(lambda: WEBHOOKS not in managed(cp))


def test_a_secret_of_that_name_that_asks_for_no_token_is_left_alone(cp, start):
    meta = {"name": "shoot-access-csi", "namespace": cp.namespace}
    cp.client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    start(Plain())
    spec = {"type": cp.namespace, "region": "eu-1", "secretRef": {"name": "cloudprovider"}}
    cp.create(
        {
            "apiVersion": builders.API,
            "kind": "ControlPlane",
            "metadata": {"name": "cp", "namespace": cp.namespace},
            "spec": spec,
        }
    )
    eventually(lambda: "requests no token" in str(cp.status().get("lastError")))
    cp.delete()
    eventually(cp.is_gone)
    assert "shoot-access-csi" in secrets(cp)
    with pytest.raises(NotFound):
        cp.client.get(MANAGED_RESOURCES, SEED, cp.namespace)


def put_credentials(cp, value):
    data = {"foo": base64.b64encode(value.encode()).decode()}
    meta = {"name": "cloudprovider", "namespace": cp.namespace}
    cp.client.apply(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})


class Rolled(GenericControlPlane):
    """Its pods are to roll when credentials or configuration change."""

    def __init__(self):
        self.told = ("", "")
        self.region = "xyz"

    def config(self, at):
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"abc": self.region}}
        meta = {"name": "cloud-provider-config", "namespace": at.namespace}
        return [{**manifest, "metadata": meta}]

    def seed(self, at):
        self.told = (at.checksum("cloudprovider"), at.checksum("cloud-provider-config"))
        return []


def test_checksums_are_the_figures_of_gardeners_own_tests(cp, start):
    put_credentials(cp, "bar")
    actuator = Rolled()
    start(actuator)
    create(cp)
    assert actuator.told == (
        "8bafb35ff1ac60275d62e1cbd495aceb511fb354f74a20f7d06ecb48b3a68432",
        "08a7bc7fe8f59b055f173145e211760a83f02cf89635cef26ebb351378635606",
    )
    before = actuator.told
    put_credentials(cp, "rotated")
    cp.ask("reconcile")
    eventually(lambda: actuator.told[0] != before[0])
    assert actuator.told[1] == before[1]
    actuator.region = "other"
    cp.ask("reconcile")
    eventually(lambda: actuator.told[1] != before[1])


def test_texts_are_escaped_in_a_checksum_as_go_does():
    text = '{"a":"\\u003cx\\u003e \\u0026 ü","b":"\\n"}'
    assert checksum_of({"b": "\n", "a": "<x> & ü"}) == sha256(text.encode()).hexdigest()


def test_missing_credentials_are_named_where_a_part_needs_their_checksum(cp, start):
    start(Rolled())
    deploy(cp)
    error = eventually(lambda: cp.status().get("lastError"))
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    for words in (f"ControlPlane {cp.namespace}/cp", "'cloudprovider'", "spec.secretRef", "create"):
        assert words in error["description"]


class Configured(Plain):
    """Its configuration rolls with the credentials."""

    def config(self, at):
        return config_map(f"config-{at.checksum('cloudprovider')[:4]}")


@pytest.mark.parametrize("operation", ["delete", "migrate"])
def test_a_config_hook_gets_the_checksum_of_the_credentials_also_when_the_control_plane_goes(
    cp, start, operation
):
    put_credentials(cp, "bar")
    start(Configured())
    create(cp)
    if operation == "delete":
        cp.delete()
        eventually(cp.is_gone)
    else:
        cp.ask("migrate")
        eventually(lambda: cp.last_operation() == ("Migrate", "Succeeded"))
    assert not managed(cp)


def test_missing_credentials_block_no_deletion_whose_config_hook_does_not_need_them(cp, start):
    put_credentials(cp, "bar")
    start(Full())
    create(cp)
    cp.client.delete(SECRETS, "cloudprovider", cp.namespace)
    cp.delete()
    eventually(cp.is_gone)


@pytest.mark.parametrize("reference", [{"name": ""}, {}, "unreadable"])
def test_without_a_name_of_the_credentials_no_request_is_sent(reference):
    """A GET of an empty name is a LIST, which the role of an extension does not allow."""
    obj = decode_tolerantly(ControlPlane, json.dumps({"spec": {"secretRef": reference}}).encode())
    assert _credentials(UNUSED, obj) == ()


def test_it_is_ready_only_once_the_webhooks_are_healthy(cp, start):
    start(Full())
    deploy(cp)
    eventually(lambda: "Waiting for ManagedResource" in str(cp.status().get("lastOperation")))
    report(cp, WEBHOOKS, "False", "the shoot refuses it")
    eventually(lambda: "the shoot refuses it" in cp.status()["lastOperation"]["description"])
    assert cp.last_operation() == ("Create", "Processing")
    assert managed(cp).keys() >= ALWAYS, "nothing else waits for them"
    report(cp, WEBHOOKS, "False", "the shoot refuses it", ago=180)
    eventually(lambda: cp.last_operation() == ("Create", "Error"))
    assert "is False for more than 120 s: the shoot refuses it" in str(cp.status()["lastError"])
    report(cp, WEBHOOKS)
    eventually(cp.is_ready)


def hibernated(namespace, *, leaving=""):
    cluster = builders.cluster(namespace)
    shoot = cluster["spec"]["shoot"]
    shoot.setdefault("spec", {})["hibernation"] = {"enabled": True}
    if leaving == "Delete":
        shoot["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if leaving:
        shoot.setdefault("status", {})["lastOperation"] = {"type": leaving, "state": "Processing"}
    return cluster


@pytest.mark.parametrize("leaving", ["Delete", "Migrate"])
def test_a_hibernated_shoot_that_is_leaving_is_neither_asked_again_nor_scaled_down(
    cp, start, leaving
):
    run_kube_apiserver(cp)
    cp.update_cluster(hibernated(cp.namespace, leaving=leaving))
    actuator = Full()
    start(actuator)
    create(cp)
    calls = len(actuator.hooks)
    assert actuator.scaled_down is False
    time.sleep(3)
    assert len(actuator.hooks) == calls


def test_a_hibernated_shoot_needs_no_healthy_webhooks(cp, start):
    cp.update_cluster(hibernated(cp.namespace))
    start(Full())
    deploy(cp)
    eventually(cp.is_ready)
    assert not managed(cp)[WEBHOOKS].get("status")
