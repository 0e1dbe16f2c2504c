"""Health checks on the embedded cluster: conditions, shoots, and other writers."""

import base64
import tempfile
import threading
from contextlib import ExitStack
from typing import Any

import pytest

from actuator import Resource
from actuator.errors import Forbidden, ShootUnreachable
from actuator.interface import resource_of
from actuator.meta import Condition
from actuator.v1alpha1 import Infrastructure
from generic.controller.controller import Again, Done, Failed
from generic.controller.predicates import OPERATION
from generic.kube.client import connect
from generic.kube.clock import SystemClock
from generic.kube.clusters import CLUSTERS, Clusters
from generic.kube.headers import Event, EventType, Request, cluster_header, header
from generic.kube.remote import Remote
from generic.kube.store import Store
from generic.kube.writer import Writer
from generic.library.healthchecks import (
    Check,
    HealthChecks,
    HealthContext,
    HealthResult,
    daemon_set,
    deployment,
    managed_resource,
    nodes,
    stateful_set,
)
from generic.library.healthchecks.reconciler import HealthReconciler, wants_check
from generic.library.machines import Machine, MachineDeployment
from generic.library.managedresources import ManagedResource
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.seed import install_crds
from tests.support.cluster.harness import EVENTS, INFRASTRUCTURES, PATIENCE, connected, eventually
from tests.support.objects.builders import cluster, infrastructure

SECRETS = Resource("v1", "secrets")
CONDITION = "ControlPlaneHealthy"
GOOD = HealthResult.healthy()
PERIOD = PATIENCE
"""Seconds between two checks, and for each: no machine is so slow that one is late."""
LONG_AGO = "2020-01-01T00:00:00Z"
CREATED: dict[str, Any] = {
    "type": "Created",
    "status": "True",
    "reason": "R",
    "message": "m",
    "last_transition_time": LONG_AGO,
    "last_update_time": LONG_AGO,
}


def foreign(type):
    """A condition that another controller has written."""
    times = {"lastTransitionTime": LONG_AGO, "lastUpdateTime": LONG_AGO}
    return {"type": type, "status": "True", "reason": "R", "message": "m", **times}


class Counted:
    """A client that counts the patches that go through it, and lets a test come before each."""

    def __init__(self, client):
        self._client = client
        self.patches = 0
        self.before_patch = lambda: None

    def __getattr__(self, name):
        return getattr(self._client, name)

    def patch(self, *args, **more):
        self.before_patch()
        self.patches += 1
        return self._client.patch(*args, **more)


class Health:
    """A HealthReconciler on the embedded cluster, and its results there."""

    def __init__(self, seed, *checks, **more):
        self.seed = seed
        self.client = Counted(seed.client)
        self.store = Store(INFRASTRUCTURES, header)
        self.clusters = Store(CLUSTERS, cluster_header)
        settings = {"cls": Infrastructure, "types": [seed.namespace], "sync_period": PERIOD, **more}
        self.reconciler = HealthReconciler(
            HealthChecks(
                checks=[Check(CONDITION, c) if callable(c) else c for c in checks], **settings
            ),
            Writer(self.client, self.store, lambda _event: None),
            Clusters(self.clusters, self.client),
            self.client,
            SystemClock(),
        )

    def look(self):
        """Observe the objects as an informer would."""
        self.store.observe(self.seed.get())
        self.clusters.observe(self.seed.client.get(CLUSTERS, self.seed.namespace))

    def run(self):
        self.look()
        return self.reconciler.reconcile(Request(self.seed.namespace, "infra"))

    def conditions(self):
        return {c["type"]: c for c in self.seed.status().get("conditions", [])}

    def __call__(self):
        """The condition after one more run."""
        assert self.run() == Again(PERIOD)
        return self.conditions()[CONDITION]


@pytest.fixture
def infra(seed):
    """A seed with one Infrastructure of the type named like the namespace."""
    seed.create(infrastructure(seed.namespace, seed.namespace))
    return seed


def set_status(client, resource, name, namespace, status):
    client.patch(resource, name, namespace, {"status": status}, subresource="status")


def test_a_condition_appears_with_all_that_gardenlet_reads_and_nothing_else_is_touched(infra):
    infra.patch({"status": {"providerStatus": {"vpc": "v"}}}, subresource="status")
    found = Health(infra, lambda ctx: GOOD)()
    assert (found["status"], found["reason"]) == ("True", "HealthCheckSuccessful")
    assert found["lastTransitionTime"] == found["lastUpdateTime"] != ""
    assert infra.status()["providerStatus"] == {"vpc": "v"}


def test_nothing_is_written_while_nothing_changes(infra):
    health = Health(infra, lambda ctx: GOOD)
    health()
    version = infra.get()["metadata"]["resourceVersion"]
    for _ in range(3):
        health()
    assert health.client.patches == 1
    assert infra.get()["metadata"]["resourceVersion"] == version


def test_times_say_since_when_the_status_holds_and_when_anything_changed(infra):
    detail = ["one"]
    health = Health(infra, lambda ctx: HealthResult.unhealthy(detail[0]))
    past = LONG_AGO
    old = {**foreign(CONDITION), "status": "False", "reason": "HealthCheckUnsuccessful"}
    infra.patch({"status": {"conditions": [{**old, "message": "one."}]}}, subresource="status")
    assert health()["lastUpdateTime"] == past
    detail[0] = "two"
    found = health()
    assert (found["message"], found["lastTransitionTime"]) == ("two.", past)
    assert found["lastUpdateTime"] > past


def test_several_checks_share_a_condition_and_others_stay_where_they_are(infra):
    written = [foreign("Old"), foreign("Foreign")]
    infra.patch({"status": {"conditions": written}}, subresource="status")
    health = Health(
        infra,
        lambda ctx: GOOD,
        Check("EveryNodeReady", lambda ctx: HealthResult.unhealthy("no nodes")),
        lambda ctx: HealthResult.unhealthy("down"),
        stale_conditions=["Old"],
    )
    health()
    found = health.conditions()
    assert found["Foreign"] == written[1]
    assert (found[CONDITION]["message"], found["EveryNodeReady"]["message"]) == (
        "down.",
        "no nodes.",
    )
    assert "Old" not in found


def test_an_exception_in_a_check_is_reported_as_unknown(infra):
    def fails(ctx):
        raise KeyError("x")

    found = Health(infra, fails, lambda ctx: GOOD)()
    assert (found["status"], found["reason"]) == ("Unknown", "ConditionCheckError")
    said = "failed to execute 1 health check: KeyError: 'x' (test_health_checks.py:"
    assert found["message"].startswith(said)


def test_a_check_that_hangs_is_unknown_and_the_worker_is_free(infra, gate):
    ended = []

    def hangs(ctx):
        gate.wait(PATIENCE)
        ended.append(True)
        return GOOD

    health = Health(infra, hangs, sync_period=0.5)
    assert health.run() == Again(0.5)
    assert not ended, "nobody waited for it"
    assert "timed out after 0.5 s" in health.conditions()[CONDITION]["message"]


def test_progressing_becomes_false_after_its_threshold(infra):
    health = Health(infra, lambda ctx: HealthResult.progressing("rolling", 1.0))
    found = health()
    assert (found["status"], found["reason"]) == ("Progressing", "HealthCheckProgressing")
    eventually(lambda: health()["status"] == "False")
    assert health()["reason"] == "HealthCheckUnsuccessful"


def test_a_hibernated_shoot_is_healthy_and_waking_up_is_noticed(infra):
    manifest = cluster(infra.namespace)
    manifest["spec"]["shoot"]["spec"]["hibernation"] = {"enabled": True}
    infra.update_cluster(manifest)
    health = Health(infra, lambda ctx: HealthResult.unhealthy("no replicas"))
    found = health()
    assert (found["status"], found["message"]) == ("True", "Shoot is hibernated")
    infra.update_cluster(cluster(infra.namespace))
    assert health()["message"] == "no replicas."


def test_outside_shoots_hibernation_means_nothing(seed):
    manifest = infrastructure(seed.namespace, seed.namespace)
    manifest["spec"]["class"] = "seed"
    seed.create(manifest)
    asleep = cluster(seed.namespace)
    asleep["spec"]["shoot"]["spec"]["hibernation"] = {"enabled": True}
    seed.update_cluster(asleep)
    assert Health(seed, lambda ctx: GOOD)()["message"] == "All health checks successful"


def test_without_a_cluster_the_condition_is_unknown(infra):
    infra.client.delete(CLUSTERS, infra.namespace)
    health = Health(infra, lambda ctx: GOOD)
    health.store.observe(infra.get())
    assert health.reconciler.reconcile(Request(infra.namespace, "infra")) == Again(PERIOD)
    found = health.conditions()[CONDITION]
    assert (found["status"], found["reason"]) == ("Unknown", "ConditionCheckError")
    infra.create(cluster(infra.namespace))


def test_a_deleting_object_is_left_alone(infra):
    infra.patch({"metadata": {"finalizers": ["test/hold"]}})
    infra.client.delete(INFRASTRUCTURES, "infra", infra.namespace)
    health = Health(infra, lambda ctx: GOOD)
    try:
        assert health.run() == Done()
        assert health.conditions() == {}
    finally:
        infra.patch({"metadata": {"finalizers": None}})


@pytest.mark.parametrize("by", ["annotation", "last operation"])
def test_a_migrating_object_is_left_alone(infra, by):
    if by == "annotation":
        infra.annotate(**{OPERATION: "migrate"})
    else:
        operation = {
            "type": "Migrate",
            "state": "Succeeded",
            "progress": 100,
            "description": "d",
            "lastUpdateTime": LONG_AGO,
        }
        infra.patch({"status": {"lastOperation": operation}}, subresource="status")
    health = Health(infra, lambda ctx: GOOD)
    assert health.run() == Done()
    assert health.conditions() == {}


def test_an_object_that_is_gone_is_done(infra):
    health = Health(infra, lambda ctx: GOOD)
    health.look()
    infra.client.delete(INFRASTRUCTURES, "infra", infra.namespace)
    assert health.reconciler.reconcile(Request(infra.namespace, "infra")) == Done()
    assert health.reconciler.reconcile(Request(infra.namespace, "infra")) == Done()


def test_another_object_of_the_same_name_never_gets_the_conditions(infra):
    def replaced(ctx):
        infra.client.delete(INFRASTRUCTURES, "infra", infra.namespace)
        infra.create(infrastructure(infra.namespace, infra.namespace))
        return GOOD

    health = Health(infra, replaced)
    assert health.run() == Done()
    assert health.conditions() == {}


def test_a_condition_written_by_another_controller_meanwhile_is_kept(infra):
    health = Health(infra, lambda ctx: GOOD)

    def interfere():
        health.client.before_patch = lambda: None
        infra.patch({"status": {"conditions": [foreign("Foreign")]}}, subresource="status")

    health.client.before_patch = interfere
    health()
    assert set(health.conditions()) == {"Foreign", CONDITION}


@pytest.mark.parametrize("own", [[], [Condition(**CREATED)]], ids=["none", "one of its own"])
def test_conditions_written_while_an_actuator_runs_are_not_lost(infra, start, script, gate, own):
    """And the other way round: a status of the actuator survives the health check."""
    entered = threading.Event()

    def works(ctx, obj, cluster):
        entered.set()
        gate.wait(PATIENCE)
        obj.status.provider_status = {"vpc": "v"}
        obj.status.conditions.extend(own)

    script.on["reconcile"] = works
    infra.ask("reconcile")
    start(script)
    assert entered.wait(PATIENCE)
    health = Health(infra, lambda ctx: HealthResult.unhealthy("down"))
    health()
    gate.set()
    eventually(infra.is_ready)
    assert infra.status()["providerStatus"] == {"vpc": "v"}
    assert health.conditions()[CONDITION]["message"] == "down."
    health()
    assert set(health.conditions()) == {CONDITION, *(condition.type for condition in own)}
    assert infra.is_ready()


def test_an_answer_that_refuses_is_tried_again_with_a_backoff(infra):
    health = Health(infra, lambda ctx: GOOD)

    def refuse():
        raise Forbidden(403, "no")

    health.client.before_patch = refuse
    assert health.run() == Failed(cap=PERIOD)


def headers(infra):
    return header(infra.get())


def test_a_check_is_triggered_by_spec_and_finished_operations(infra):
    request = Request(infra.namespace, "infra")
    old = headers(infra)

    def updated(new, before=old):
        return wants_check(Event(EventType.MODIFIED, request, before, new))

    assert wants_check(Event(EventType.ADDED, request, None, old))
    infra.patch({"status": {"providerStatus": {"a": 1}}}, subresource="status")
    assert not updated(headers(infra))
    infra.annotate(**{OPERATION: "migrate"})
    migrating = headers(infra)
    assert not updated(migrating)
    infra.annotate(**{OPERATION: None})
    assert updated(headers(infra), migrating)
    infra.patch({"spec": {"region": "eu-2"}})
    assert updated(headers(infra))


@pytest.fixture(scope="module")
def managed_resources(admin):
    """The embedded cluster serves ManagedResources."""
    install_crds(admin, [ManagedResource])


def managed(infra, **status):
    manifest = {
        "apiVersion": MANAGED_RESOURCES.api_version,
        "kind": "ManagedResource",
        "metadata": {"name": "mr", "namespace": infra.namespace},
        "spec": {"secretRefs": []},
    }
    infra.client.create(MANAGED_RESOURCES, manifest)
    if status:
        set_status(infra.client, MANAGED_RESOURCES, "mr", infra.namespace, status)


def resource_conditions(applied="True", healthy="True", message="m"):
    return [
        {**foreign("ResourcesApplied"), "status": applied, "message": message},
        {**foreign("ResourcesHealthy"), "status": healthy, "message": message},
    ]


def test_a_managed_resource_that_is_missing_is_unhealthy(managed_resources, infra):
    found = Health(infra, managed_resource("mr"))()
    assert found["status"] == "False"
    assert found["message"] == (
        f'managed resource "mr" in namespace "{infra.namespace}" not found.'
    )


@pytest.mark.parametrize(
    ("generation", "conditions", "words"),
    [
        pytest.param(0, resource_conditions(), "outdated (0/1)", id="outdated"),
        pytest.param(1, resource_conditions()[:1], '"ResourcesHealthy" is missing', id="missing"),
        pytest.param(
            1,
            resource_conditions(healthy="False"),
            'condition "ResourcesHealthy" has invalid status False (expected True) due to R: m.',
            id="unhealthy",
        ),
    ],
)
def test_a_managed_resource_that_is_outdated_or_unhealthy_is_reported(
    managed_resources, infra, generation, conditions, words
):
    managed(infra, observedGeneration=generation, conditions=conditions)
    found = Health(infra, managed_resource("mr"))()
    assert found["status"] == "False"
    assert words in found["message"]
    assert "codes" not in found


def test_a_managed_resource_with_an_object_that_is_invalid_is_the_users_problem(
    managed_resources, infra
):
    message = "Error during apply of object v1/ConfigMap/a/b is invalid: data"
    conditions = resource_conditions(applied="False", message=message)
    managed(infra, observedGeneration=1, conditions=conditions)
    found = Health(infra, managed_resource("mr"))()
    assert found["codes"] == ["ERR_CONFIGURATION_PROBLEM"]


def test_a_managed_resource_that_is_well_is_well(managed_resources, infra):
    managed(infra, observedGeneration=1, conditions=resource_conditions())
    assert Health(infra, managed_resource("mr"))()["status"] == "True"


def test_a_managed_resource_that_cannot_be_read_is_unknown(infra, environment):
    """Another error than not found: here the permission to read it is missing."""
    stranger = connect(environment.user_kubeconfig("stranger"))

    def check(ctx):
        seen = HealthContext(ctx.obj, ctx.cluster, stranger, lambda: stranger)
        return managed_resource("mr")(seen)

    found = Health(infra, check)()
    assert (found["status"], found["reason"]) == ("Unknown", "ConditionCheckError")
    assert "forbidden" in found["message"]


def workload(kind, name, namespace):
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "example.org/c:1"}]},
    }
    spec = {"selector": {"matchLabels": labels}, "template": template}
    if kind == "StatefulSet":
        spec["serviceName"] = name
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec}


SCHEDULED = {
    "currentNumberScheduled": 2,
    "numberMisscheduled": 0,
    "desiredNumberScheduled": 2,
    "numberReady": 2,
}


@pytest.mark.parametrize(
    ("kind", "check", "ill", "well"),
    [
        (
            "Deployment",
            deployment,
            {"conditions": [{"type": "Available", "status": "False", "reason": "R"}]},
            {"conditions": [{"type": "Available", "status": "True", "reason": "R"}]},
        ),
        (
            "StatefulSet",
            stateful_set,
            {"replicas": 1, "readyReplicas": 0},
            {"replicas": 1, "readyReplicas": 1},
        ),
        (
            "DaemonSet",
            daemon_set,
            {**SCHEDULED, "numberUnavailable": 2},
            {**SCHEDULED, "numberUnavailable": 1},
        ),
    ],
)
def test_workloads_in_the_seed_and_in_the_shoot(infra, environment, kind, check, ill, well):
    resource = Resource("apps/v1", f"{kind.lower()}s")
    infra.client.create(resource, workload(kind, "w", infra.namespace))
    shoot_secret(infra, environment)
    for look in (check("w"), check("w", shoot_namespace=infra.namespace)):
        health = Health(infra, look)
        for status, expected in ((ill, "False"), (well, "True")):
            whole = {"observedGeneration": 1, **status}
            set_status(infra.client, resource, "w", infra.namespace, whole)
            assert health()["status"] == expected


def test_nodes_of_the_shoot_are_compared_with_machines_of_the_seed(admin, infra, environment):
    """More machines are desired than there are; the nodes of other tests change nothing."""
    install_crds(admin, [Machine, MachineDeployment])
    shoot_secret(infra, environment)
    resource = resource_of(MachineDeployment.KIND)
    manifest = {
        "apiVersion": resource.api_version,
        "kind": "MachineDeployment",
        "metadata": {"name": "pool", "namespace": infra.namespace},
        "spec": {"replicas": 1000, "template": {}},
    }
    infra.client.create(resource, manifest)
    found = Health(infra, nodes())()
    assert found["status"] == "Progressing"
    assert found["message"] == "not enough machine objects created yet (0/1000)."


def shoot_secret(infra, environment, name="gardener-internal", kubeconfig=None):
    """A kubeconfig of a "shoot": the embedded cluster, as another administrator."""
    content = kubeconfig or environment.user_kubeconfig("shoot", ["system:masters"]).read_bytes()
    data = {"kubeconfig": base64.b64encode(content).decode()}
    meta = {"name": name, "namespace": infra.namespace}
    infra.client.apply(
        SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}
    )


def test_without_a_shoot_client_the_condition_is_unknown(infra):
    found = Health(infra, deployment("w", shoot_namespace="kube-system"))()
    assert found["status"] == "Unknown"
    assert "Secret gardener-internal or gardener not found" in found["message"]


def test_the_internal_address_is_preferred_and_a_new_kubeconfig_replaces_the_client(
    infra, environment
):
    shoots = Remote(infra.client)
    shoot_secret(infra, environment, "gardener")
    first = shoots.shoot(infra.namespace)
    assert shoots.shoot(infra.namespace) is first
    shoot_secret(infra, environment, "gardener-internal")
    second = shoots.shoot(infra.namespace)
    assert second is not first
    assert second.get(SECRETS, "gardener", infra.namespace)
    shoots.forget(infra.namespace)
    third = shoots.shoot(infra.namespace)
    assert third is not second
    shoots.forget(infra.namespace)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda text: text.replace("token:", "tokenFile: /etc/passwd\n    token:"),
            "tokenFile in user",
        ),
        # PyYAML has a key b"user" there, client-go the user itself.
        (lambda text: f"{text}  !!binary dXNlcg==: {{exec: {{command: sh}}}}\n", "anchors"),
        (lambda text: text.replace("https://", "http://"), "has an invalid value in server"),
        (lambda text: text.replace("current-context: x", "current-context: y"), "has 0 contexts"),
        (lambda text: "nonsense", "has an invalid value in the top level"),
    ],
)
def test_a_kubeconfig_outside_the_allow_list_makes_no_client_and_names_the_secret(
    infra, environment, change, words
):
    ca = base64.b64encode(environment.ca_file.read_bytes()).decode()
    text = (
        f"clusters: [{{name: c, cluster: {{server: '{environment.url}', "
        f"certificate-authority-data: {ca}}}}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
        "current-context: x\n"
        f"users:\n- name: u\n  user:\n    token: {environment.admin_token}\n"
    )
    shoot_secret(infra, environment, kubeconfig=text.encode())
    assert Remote(infra.client).shoot(infra.namespace)
    shoot_secret(infra, environment, kubeconfig=change(text).encode())
    with pytest.raises(ShootUnreachable, match=words) as refused:
        Remote(infra.client).shoot(infra.namespace)
    assert f"Secret {infra.namespace}/gardener-internal" in str(refused.value)
    assert environment.admin_token not in str(refused.value)


def test_no_credential_of_a_shoot_stays_in_the_temporary_directory(
    infra, environment, monkeypatch, tmp_path
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shoot_secret(infra, environment)
    client = Remote(infra.client).shoot(infra.namespace)
    assert list(tmp_path.iterdir()) == [], "while the client lives"
    assert client.get(SECRETS, "gardener-internal", infra.namespace)
    assert list(tmp_path.iterdir()) == []


def test_checking_writes_no_events(infra):
    Health(infra, lambda ctx: HealthResult.unhealthy("down"))()
    assert infra.client.list(EVENTS, infra.namespace) == []


@pytest.fixture
def checked(environment, admin, infra):
    """A manager with an actuator and a health check, under its generated Role and no more."""
    with ExitStack() as stack:

        def start(actuator, check):
            options = Options(
                metrics_bind_address="0", health_bind_address="0", shutdown_timeout=5.0
            )
            manager = Manager(options)
            manager.add(actuator, type=infra.namespace)
            # It bounds each check as well: one that is late is a condition that changes.
            checks = HealthChecks(
                cls=Infrastructure,
                checks=[Check(CONDITION, check)],
                types=[infra.namespace],
                sync_period=2.0,
            )
            manager.add_health_checks(checks)
            stack.enter_context(connected(environment, admin, manager, infra.namespace))
            manager.start()
            return manager

        yield start


def test_a_manager_checks_while_its_actuator_runs_and_neither_triggers_the_other(
    infra, checked, script, gate
):
    answers = [HealthResult.unhealthy("down")]
    looks = []

    def check(ctx):
        looks.append(True)
        return answers[-1]

    def works(ctx, obj, cluster):
        gate.wait(PATIENCE)
        obj.status.provider_status = {"vpc": "v"}

    def condition():
        found = [c for c in infra.status().get("conditions", []) if c["type"] == CONDITION]
        return found[0]["status"] if found else ""

    script.on["reconcile"] = works
    checked(script, check)
    eventually(lambda: condition() == "False")
    gate.set()
    eventually(infra.is_ready)
    assert condition() == "False"
    answers.append(GOOD)
    eventually(lambda: condition() == "True")
    assert infra.status()["providerStatus"] == {"vpc": "v"}
    assert script.operations() == ["reconcile"]
    version = infra.get()["metadata"]["resourceVersion"]
    before = len(looks)
    eventually(lambda: len(looks) >= before + 3)  # by then two are over, and written or not
    assert infra.get()["metadata"]["resourceVersion"] == version
    assert script.operations() == ["reconcile"]


@pytest.mark.parametrize("text", ["a=1&b=2", "<html>502</html>", "für", "\u2028"])
def test_the_condition_moves_on_whatever_its_text(infra, text):
    results = [HealthResult.unhealthy(text)]
    health = Health(infra, lambda ctx: results[0])
    assert text in health()["message"]
    results[0] = HealthResult.unhealthy("another")
    assert "another" in health()["message"]
    results[0] = GOOD
    assert health()["status"] == "True"
