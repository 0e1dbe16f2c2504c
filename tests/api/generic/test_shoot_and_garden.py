"""`ctx.shoot` and `ctx.garden`: a second cluster that exists, is gone, slow, or another one."""

from __future__ import annotations

import base64
import json
import re
import socket
import threading
import time
from contextlib import suppress

import pytest

from actuator import Resource
from actuator.errors import (
    CallAbandoned,
    ConfigurationError,
    ErrorCode,
    Forbidden,
    NotFound,
    ShootUnreachable,
    Unauthorized,
)
from actuator.interface import SHOOT_ACCESS
from actuator.v1alpha1 import BackupBucket
from generic.kube import remote
from generic.kube.client import connect
from generic.kube.clock import SystemClock
from generic.kube.remote import Remote
from generic.reconciler import calls
from generic.reconciler.calls import Call, ShootClient
from generic.reconciler.operation import Operation
from generic.testing.envtest import Environment
from hack.faults import Fault, FaultProxy
from tests.support.cluster.fault_proxy import kubeconfig
from tests.support.cluster.harness import FINALIZER, Seed, eventually, is_allowed
from tests.support.cluster.tenant_server import OK, PHASES, TenantServer, playing
from tests.support.objects import builders
from tests.support.objects.builders import infrastructure
from tests.support.pages.documented import run_examples

MAPS = Resource("v1", "configmaps")
SECRETS = Resource("v1", "secrets")
NAMESPACES = Resource("v1", "namespaces", namespaced=False)
REMEDY = "check that the shoot is not hibernated and that its API server runs"
NO_ANSWER = "cannot reach the API server, or cannot verify its certificate"


@pytest.fixture
def other(borrowed):
    """A second embedded cluster: a shoot, or the garden."""
    with Environment() as environment:
        yield environment


@pytest.fixture
def proxy(other, tmp_path):
    with FaultProxy(other.kubeconfig, tmp_path) as started:
        yield started


@pytest.fixture
def impostor(other, tmp_path):
    """Another server, with a certificate of an authority of its own."""
    with FaultProxy(other.kubeconfig, tmp_path) as started:
        yield started


@pytest.fixture
def shoot(other, seed):
    """The administrator of the second cluster, whose kubeconfig is the one of the seed's shoot."""
    give(seed, other.kubeconfig.read_bytes())
    return connect(other.kubeconfig)


@pytest.fixture
def actuator(script):
    script.permissions = (SHOOT_ACCESS,)
    return script


def give(seed, content, name="gardener-internal"):
    """Write a kubeconfig as gardenlet does."""
    data = {"kubeconfig": base64.b64encode(content).decode()}
    meta = {"name": name, "namespace": seed.namespace}
    seed.client.apply(
        SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}
    )


def config_map(name="of-a-test"):
    meta = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "b"}}


def reads(ctx, _obj, _cluster):
    ctx.shoot.get(NAMESPACES, "kube-system")


def create(seed):
    seed.create(infrastructure(seed.namespace, seed.namespace))


def failure(seed):
    return eventually(lambda: seed.status().get("lastError"))


def aims_at(content: bytes, server: str) -> bytes:
    config = json.loads(content)
    config["clusters"][0]["cluster"]["server"] = server
    return json.dumps(config).encode()


def made(admin, namespace, operation=Operation.RECONCILE, seconds=60.0):
    """The shoot's client of a call, outside a manager."""
    call = Call(operation, admin, SystemClock(), lambda: None, seconds)
    return ShootClient(Remote(admin).shoot(namespace), call, namespace, threading.Semaphore())


def test_an_actuator_uses_its_shoot_under_its_generated_role(seed, shoot, start, actuator, admin):
    seen = []

    def reconcile(ctx, obj, cluster):
        seen.append(ctx.shoot)
        assert ctx.shoot is seen[-1]
        ctx.shoot.apply(MAPS, config_map())

    def delete(ctx, obj, cluster):
        ctx.shoot.delete(MAPS, "of-a-test", "kube-system")

    actuator.on.update(reconcile=reconcile, delete=delete)
    user = start(actuator).options.kubeconfig.name.rpartition("-")[0]
    create(seed)
    eventually(seed.is_ready)
    assert shoot.get(MAPS, "of-a-test", "kube-system")["data"] == {"a": "b"}
    with pytest.raises(NotFound):
        admin.get(MAPS, "of-a-test", "kube-system")
    with pytest.raises(CallAbandoned):
        seen[0].get(MAPS, "of-a-test", "kube-system")
    where = {"namespace": seed.namespace}
    assert is_allowed(admin, user, "get", "secrets", name="gardener-internal", **where)
    assert is_allowed(admin, user, "get", "secrets", name="gardener", **where)
    assert not is_allowed(admin, user, "get", "secrets", name="cloudprovider", **where)
    assert not is_allowed(admin, user, "list", "secrets", **where)
    seed.delete()
    eventually(seed.is_gone)
    with pytest.raises(NotFound):
        shoot.get(MAPS, "of-a-test", "kube-system")


def test_a_missing_permission_is_named(seed, shoot, start, script):
    script.on["reconcile"] = reads
    start(script)
    create(seed)
    text = failure(seed)["description"]
    assert f"Secret {seed.namespace}/gardener-internal" in text
    assert "add actuator.interface.SHOOT_ACCESS to the permissions" in text


def refused(proxy, impostor):
    proxy.go_down()
    return proxy.kubeconfig.read_bytes()


def without_a_host(proxy, impostor):
    return aims_at(proxy.kubeconfig.read_bytes(), "https://kube-apiserver.shoot.invalid")


def with_another_certificate(proxy, impostor):
    return aims_at(proxy.kubeconfig.read_bytes(), impostor.url)


def slow(proxy, impostor=None):
    proxy.inject(Fault(effect="stall"))
    return proxy.kubeconfig.read_bytes()


CAUSES = {
    refused: "Connection refused",
    without_a_host: "Name or service not known|name resolution|No address",
    with_another_certificate: "certificate verify failed",
}


@pytest.mark.parametrize("way", CAUSES)
def test_a_shoot_without_answer_is_one_sentence_that_says_nothing_about_the_network(
    seed, proxy, impostor, start, actuator, way, caplog
):
    give(seed, way(proxy, impostor))

    def reads_twice(ctx, obj, cluster):
        with suppress(ShootUnreachable):
            reads(ctx, obj, cluster)
        reads(ctx, obj, cluster)

    actuator.on["reconcile"] = reads_twice
    start(actuator)
    create(seed)
    error = failure(seed)
    sentence = f"shoot {seed.namespace}: {NO_ANSWER}; {REMEDY}"
    assert error["description"] == f"Error reconciling Infrastructure: {sentence}"
    assert error.get("codes", []) == []
    events = seed.client.list(Resource("v1", "events"), seed.namespace)
    assert not re.search(CAUSES[way], repr([seed.get(), events]))
    logged = [r.fields for r in caplog.records if r.getMessage() == "shoot unreachable"]
    assert {fields["shoot"] for fields in logged} == {seed.namespace}
    assert re.search(CAUSES[way], logged[0]["cause"])
    assert len(logged) <= len(actuator.calls), "once in each call"


def test_a_shoot_that_comes_back_is_used_again(seed, proxy, start, actuator):
    give(seed, proxy.kubeconfig.read_bytes())
    proxy.go_down()
    actuator.on["reconcile"] = reads
    start(actuator)
    create(seed)
    failure(seed)
    proxy.come_back()
    eventually(seed.is_ready)


def test_a_slow_shoot_costs_no_more_than_the_time_of_the_call(seed, proxy):
    give(seed, slow(proxy))
    shoot = made(seed.client, seed.namespace, seconds=1.0)
    began = time.monotonic()
    with pytest.raises(ShootUnreachable) as caught:
        shoot.get(MAPS, "x", "kube-system")
    assert time.monotonic() - began < 4
    assert str(caught.value) == f"shoot {seed.namespace}: {NO_ANSWER}; {REMEDY}"


def test_a_server_that_never_finishes_the_handshake_costs_no_more_either(seed, other):
    with socket.create_server(("127.0.0.1", 0)) as unresponsive:
        url = f"https://127.0.0.1:{unresponsive.getsockname()[1]}"
        give(seed, aims_at(other.kubeconfig.read_bytes(), url))
        shoot = made(seed.client, seed.namespace, seconds=1.0)
        began = time.monotonic()
        with pytest.raises(ShootUnreachable, match=NO_ANSWER):
            shoot.get(MAPS, "x", "kube-system")
        assert time.monotonic() - began < 4


def test_a_force_deletion_waits_once_for_a_slow_shoot(seed, proxy, start, actuator, monkeypatch):
    monkeypatch.setattr(calls, "_FORCED_SECONDS", 1.0)
    took = []

    def force_delete(ctx, obj, cluster):
        began = time.monotonic()
        for _ in range(20):
            with pytest.raises(ShootUnreachable, match=NO_ANSWER):
                ctx.shoot.delete(MAPS, "x", "kube-system")
        took.append(time.monotonic() - began)

    actuator.on["force_delete"] = force_delete
    give(seed, proxy.kubeconfig.read_bytes())
    start(actuator)
    create(seed)
    eventually(seed.is_ready)
    slow(proxy)
    seed.update_cluster(builders.cluster(seed.namespace, force="true"))
    seed.delete()
    eventually(seed.is_gone)
    assert took[0] < 4


def test_slow_shoots_of_one_tenant_do_not_keep_the_workers_from_another(
    seed, start, actuator, monkeypatch
):
    monkeypatch.setattr(calls, "_SHOOT_SECONDS", 20.0)
    monkeypatch.setattr(calls, "_FORCED_SECONDS", 0.5)
    slow = TenantServer(PHASES["chunk extension"])
    fast = TenantServer(playing([(OK, 1, 0.0)]))
    honest = Seed(seed.client, f"{seed.namespace}-other")
    seed.client.create(NAMESPACES, {"metadata": {"name": honest.namespace}})
    give(seed, slow.kubeconfig().encoded())
    give(honest, fast.kubeconfig().encoded())
    actuator.on["reconcile"] = reads
    start(actuator, workers={"infrastructure": 5})
    for number in range(20):
        seed.create(infrastructure(seed.namespace, seed.namespace, f"slow-{number}"))
    eventually(lambda: slow.accepted >= 5)
    began = time.monotonic()
    honest.create(builders.cluster(honest.namespace))
    honest.create(infrastructure(honest.namespace, seed.namespace))
    eventually(honest.is_ready)
    assert time.monotonic() - began < 15.0  # 80 s if all workers waited
    slow.close()
    fast.close()


def test_a_call_that_a_force_deletion_replaces_can_use_its_shoot_no_more(
    seed, shoot, start, actuator
):
    using = threading.Event()
    refused = []

    def reconcile(ctx, obj, cluster):
        try:
            while True:
                ctx.shoot.get(NAMESPACES, "kube-system")
                using.set()
                time.sleep(0.05)
        except CallAbandoned as error:
            refused.append(error)
            raise

    actuator.on["reconcile"] = reconcile
    start(actuator)
    create(seed)
    assert using.wait(60)
    seed.update_cluster(builders.cluster(seed.namespace, force="true"))
    seed.delete()
    eventually(seed.is_gone)
    assert len(refused) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"exec": {"command": "sh"}}, "has the key exec in user; remove it"),
        ({"tokenFile": "/etc/passwd"}, "has the key tokenFile in user; remove it"),
    ],
)
def test_a_refused_kubeconfig_names_the_secret_and_has_a_code_that_allows_a_force_deletion(
    seed, other, start, actuator, change, words
):
    config = json.loads(other.kubeconfig.read_bytes())
    config["users"][0]["user"] |= change
    give(seed, json.dumps(config).encode())
    actuator.on["reconcile"] = reads
    start(actuator)
    create(seed)
    error = failure(seed)
    assert f": Secret {seed.namespace}/gardener-internal: the kubeconfig" in error["description"]
    assert words in error["description"]
    assert error["codes"] == [ErrorCode.ERR_CONFIGURATION_PROBLEM]
    assert other.admin_token not in error["description"]


def test_a_shoot_without_a_secret_blocks_a_deletion_with_a_reason_of_its_own(seed, start, actuator):
    actuator.on["delete"] = reads
    start(actuator)
    create(seed)
    eventually(seed.is_ready)
    seed.delete()
    text = failure(seed)["description"]
    assert ": Secret gardener-internal or gardener not found in namespace" in text
    (blocked,) = [c for c in seed.status()["conditions"] if c["type"] == "DeletionBlocked"]
    assert blocked["reason"] == "ShootUnreachable"
    assert FINALIZER in seed.get()["metadata"]["finalizers"]


def test_an_object_outside_shoots_has_no_shoot(seed, start, script):
    def reconcile(ctx, obj, cluster):
        ctx.shoot.list(MAPS)

    script.of = BackupBucket
    script.on["reconcile"] = reconcile
    start(script)
    give(seed, b"", "x")
    bucket = seed.of(BackupBucket, seed.namespace)
    spec = {"type": seed.namespace, "region": "r"}
    spec["secretRef"] = {"name": "x", "namespace": seed.namespace}
    head = {"apiVersion": bucket.kind.api_version, "kind": "BackupBucket"}
    bucket.create({**head, "metadata": {"name": seed.namespace}, "spec": spec})
    error = failure(bucket)
    assert "has no namespace, so it belongs to no shoot" in error["description"]
    assert error["codes"] == [ErrorCode.ERR_CONFIGURATION_PROBLEM]


def test_clients_are_kept_up_to_a_bound_and_dropped_with_their_secret(seed, shoot, monkeypatch):
    monkeypatch.setattr(remote, "_MAX_SHOOTS", 1)
    shoots = Remote(seed.client)
    first = shoots.shoot(seed.namespace)
    assert shoots.shoot(seed.namespace) is first
    second = {"apiVersion": "v1", "kind": "Secret"}
    meta = {"name": "gardener-internal", "namespace": "default"}
    data = seed.client.get(SECRETS, "gardener-internal", seed.namespace)["data"]
    seed.client.apply(SECRETS, {**second, "metadata": meta, "data": data})
    shoots.shoot("default")
    assert list(shoots._known) == ["default"]
    seed.client.delete(SECRETS, "gardener-internal", "default")
    with pytest.raises(ShootUnreachable):
        shoots.shoot("default")
    assert not shoots._known


@pytest.fixture
def garden_file(other, tmp_path, monkeypatch):
    """The files of a pod with access to the garden, as gardenlet mounts them."""
    monkeypatch.setattr("generic.kube.access._FRESH", 0.1)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    token = tmp_path / "token"
    token.write_text("expired")
    path = kubeconfig(tmp_path / "garden", other.url, other.ca_file, tokenFile=str(token))
    monkeypatch.setenv("GARDEN_KUBECONFIG", str(path))
    return path


def test_the_garden_is_read_with_a_token_that_rotates(other, admin, garden_file):
    clients = Remote(admin)
    garden = clients.garden()
    assert clients.garden() is garden
    with pytest.raises(Unauthorized):
        garden.get(NAMESPACES, "kube-system")
    (garden_file.parent / "token").write_text(other.admin_token)
    assert garden.get(NAMESPACES, "kube-system")
    garden_file.write_bytes(other.user_kubeconfig("extension-of-a-seed").read_bytes())

    def is_someone_else():
        with pytest.raises(Forbidden, match="extension-of-a-seed"):
            garden.get(NAMESPACES, "kube-system")
        return True

    time.sleep(0.2)
    assert is_someone_else()


def test_an_actuator_uses_the_garden_until_its_call_is_over(
    other, seed, start, script, garden_file
):
    (garden_file.parent / "token").write_text(other.admin_token)
    seen = []

    def reconcile(ctx, obj, cluster):
        seen.append(ctx.garden)
        seen.append(ctx.garden.get(NAMESPACES, "kube-system"))

    script.on["reconcile"] = reconcile
    start(script)
    create(seed)
    eventually(seed.is_ready)
    garden, found = seen
    assert found == connect(other.kubeconfig).get(NAMESPACES, "kube-system")
    with pytest.raises(CallAbandoned):
        garden.get(NAMESPACES, "kube-system")


@pytest.mark.parametrize("path", ["", "/nowhere/kubeconfig"])
def test_without_access_to_the_garden_the_error_names_the_field_of_the_registration(
    admin, monkeypatch, path
):
    monkeypatch.setenv("GARDEN_KUBECONFIG", path)
    with pytest.raises(ConfigurationError) as caught:
        Remote(admin).garden()
    text = str(caught.value)
    assert text.startswith("GARDEN_KUBECONFIG: ")
    assert path in text
    assert text.endswith("set injectGardenKubeconfig: true in its registration")


def test_the_example_in_the_documentation_runs(other, seed, shoot, start, garden_file):
    (garden_file.parent / "token").write_text(other.admin_token)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden"}}
    shoot.apply(NAMESPACES, namespace)
    mirrors = config_map("mirrors")
    mirrors["metadata"]["namespace"] = "garden"
    shoot.apply(MAPS, mirrors)
    defined = run_examples("## API servers of the shoot and the garden")
    start(defined["Mirrors"]())
    extension = seed.of(defined["Extension"], "mirrors")
    head = {"apiVersion": extension.kind.api_version, "kind": "Extension"}
    meta = {"name": "mirrors", "namespace": seed.namespace}
    extension.create({**head, "metadata": meta, "spec": {"type": seed.namespace}})
    eventually(extension.is_ready)
    assert shoot.get(MAPS, "mirrors", "kube-system")["data"] == mirrors["data"]
    extension.delete()
    eventually(extension.is_gone)
    with pytest.raises(NotFound):
        shoot.get(MAPS, "mirrors", "kube-system")
