"""Deletions without a Cluster, a Secret or a shoot, and with faulty actuators."""

import json
import secrets
import socket
import threading
import time

import pytest

from actuator import ActuatorError, ErrorCode, ExternalResource, RequeueAfter, Resource
from actuator.errors import ConfigurationError, NotFound
from generic.kube.client import connect
from tests.support.cluster.harness import FINALIZER, Script, eventually
from tests.support.objects.builders import cluster, infrastructure

SECRETS = Resource("v1", "secrets")
CONFIG_MAPS = Resource("v1", "configmaps")
READS = Resource("v1", "secrets").permission("get")


class Vpcs(Script):
    """Leaves one thing outside."""

    permissions = (READS,)

    def external_resources(self, obj):
        yield ExternalResource(type="VPC", id=f"vpc-{obj.metadata.name}")


def needs_credentials(ctx, obj, cluster):
    """Read the Secret as its first reader: no earlier version is remembered."""
    try:
        ctx.client.get(SECRETS, obj.spec.secret_ref.name, obj.metadata.namespace)
    except NotFound as error:
        raise ConfigurationError("the Secret is gone") from error


def ready(seed, *names):
    for name in names or ("infra",):
        seed.create(infrastructure(seed.namespace, seed.namespace, name))
    for name in names or ("infra",):
        eventually(lambda name=name: seed.is_ready(name))


def force(seed):
    seed.update_cluster(cluster(seed.namespace, force="true"))


def test_scenarios_20_and_21_without_its_cluster_only_a_deletion_forced_before_is_recorded(
    seed, start, script, gate, blocked, recorded
):
    script.on["force_delete"] = lambda ctx, obj, cluster: gate.wait(100) and None
    start(script, force_delete_budget=4.0)
    ready(seed)
    seed.delete_cluster()
    seed.delete()
    condition = eventually(lambda: blocked(seed))
    assert (condition["reason"], script.operations()) == ("ClusterMissing", ["reconcile"])
    assert seed.get()["metadata"]["finalizers"] == [FINALIZER]
    seed.create(cluster(seed.namespace, force="true"))
    eventually(lambda: "force_delete" in script.operations())
    seed.delete_cluster()
    eventually(seed.is_gone)
    assert recorded(seed) == {("unknown", "", "BudgetExceeded")}


def test_scenario_25_a_missing_secret_blocks_a_deletion_and_a_forced_one_is_recorded(
    seed, start, blocked, recorded
):
    """Where the Secret was read before, the deletion goes on with it: test_known_secrets.py."""
    start(Vpcs(delete=needs_credentials))
    ready(seed)
    seed.delete()
    condition = eventually(lambda: blocked(seed))
    assert condition["reason"] == "SecretMissing"
    assert condition["codes"] == [ErrorCode.ERR_CONFIGURATION_PROBLEM]
    assert seed.get()["metadata"]["finalizers"] == [FINALIZER]
    force(seed)
    eventually(seed.is_gone)
    assert recorded(seed) == {("VPC", "vpc-infra", "ForceDeleted")}


@pytest.fixture
def silent():
    """The port of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.mark.parametrize("host", ["nowhere.invalid", "127.0.0.1"], ids=["no-such-name", "silence"])
def test_scenario_27_a_shoot_that_cannot_be_reached_is_never_taken_for_gone(
    seed, start, environment, silent, blocked, recorded, host
):
    """No error proves that the shoot is gone: the finalizer stays until a user forces."""

    def delete(ctx, obj, cluster):
        shoot = connect(environment.kubeconfig, server=f"https://{host}:{silent}")
        shoot.within(0.5).list(CONFIG_MAPS, "kube-system")

    start(Vpcs(delete=delete))
    ready(seed)
    seed.delete()
    condition = eventually(lambda: blocked(seed))
    assert condition["reason"] == "APIServerUnavailable"
    assert seed.get()["metadata"]["finalizers"] == [FINALIZER]
    force(seed)
    eventually(seed.is_gone)
    assert recorded(seed) == {("VPC", "vpc-infra", "ForceDeleted")}


def test_scenario_40_a_long_deletion_is_polled_and_takes_no_worker(seed, start):
    left = {"infra": 5, "infra-2": 5}
    goes = threading.Event()

    def delete(ctx, obj, cluster):
        name = obj.metadata.name
        if goes.is_set():
            left[name] -= 1
        if left[name]:
            raise RequeueAfter(0.3, f"waiting for the gateway of {name}")

    script = Script(delete=delete)
    start(script, max_concurrent_reconciles=1)
    ready(seed, *left)
    for name in left:
        seed.delete(name)
    for name in left:
        said = f"waiting for the gateway of {name}"
        eventually(
            lambda name=name, said=said: seed.status(name)["lastOperation"]["description"] == said
        )
        assert seed.last_operation(name) == ("Delete", "Processing")
    ready(seed, "beside")
    goes.set()
    for name in left:
        eventually(lambda name=name: seed.is_gone(name))
    assert left == {"infra": 0, "infra-2": 0}, "not asked again once it was done"
    assert all(script.operations(name).count("delete") > 5 for name in left)


def test_scenario_44_an_error_for_good_keeps_the_finalizer_as_any_other(seed, start, script):
    def delete(ctx, obj, cluster):
        raise ActuatorError("never", codes=[ErrorCode.ERR_INFRA_DEPENDENCIES])

    script.on["delete"] = delete
    start(script)
    ready(seed)
    seed.delete()
    eventually(lambda: script.operations().count("delete") > 3)
    assert seed.get()["metadata"]["finalizers"] == [FINALIZER]
    assert seed.status()["lastError"]["codes"] == ["ERR_INFRA_DEPENDENCIES"]


def test_scenario_45_a_restore_without_a_state_is_an_error_and_the_process_lives(
    seed, start, script
):
    script.on["restore"] = lambda ctx, obj, cluster: obj.status.state["vpc"]
    manager = start(script)
    asked = {"gardener.cloud/operation": "restore"}
    seed.create(infrastructure(seed.namespace, seed.namespace, annotations=asked))
    eventually(lambda: seed.last_operation() == ("Restore", "Error"))
    assert "TypeError" in seed.status()["lastError"]["description"]
    ready(seed, "other")
    assert manager.check_ready()["workers"]() is None


def test_scenario_53_a_deletion_requested_while_no_manager_ran_is_not_missed(seed, start, script):
    """There is no mode without a finalizer, so there is nothing that could go unseen."""
    first = start(script)
    ready(seed)
    first.stop()
    seed.delete()
    time.sleep(0.5)
    assert script.operations() == ["reconcile"]
    start(script)
    eventually(seed.is_gone)
    assert script.operations() == ["reconcile", "delete"]


def test_scenario_54_no_series_is_about_one_object(seed, start, script):
    manager = start(script)
    name = f"only-{secrets.token_hex(4)}"
    ready(seed, name)
    uid = seed.get(name)["metadata"]["uid"]
    during = exposed(manager)
    seed.delete(name)
    eventually(lambda: seed.is_gone(name))
    assert name not in during + exposed(manager)
    assert uid not in during + exposed(manager)
    named = [line for line in during.splitlines() if json.dumps(seed.namespace) in line]
    assert all(line.startswith("actuator_controller_info{") for line in named)  # it is the type


def exposed(manager):
    return manager.metrics.expose()[0].decode()
