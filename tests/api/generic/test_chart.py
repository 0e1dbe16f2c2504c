"""`actuator chart`: rendered by helm, accepted by the API server, enough to run and no more."""

import base64
import io
import json
import re
import signal
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from typing import Any

import pytest
import yaml

from actuator import Actuator, Resource
from actuator.errors import ConfigurationError, Forbidden, NotFound
from actuator.interface import resource_of
from actuator.v1alpha1 import Extension, Infrastructure
from generic.kube.client import path_of
from generic.kube.clusters import NAMESPACES
from generic.library import managedresources
from generic.library.charts import find_helm
from generic.library.healthchecks import Check, HealthChecks, HealthResult
from generic.library.managedresources import ManagedResource
from generic.library.webhooks import VerticalPodAutoscaler
from generic.library.webhooks.policies import BINDINGS, POLICIES
from generic.manager import flags
from generic.manager.manager import Manager
from generic.manager.webhooks import endpoint_of
from generic.reconciler.orphans import FORCE_DELETIONS, ORPHANS
from generic.testing.garden import not_ready_because
from generic.testing.resourcemanager import ResourceManager
from generic.testing.seed import CRDS, OneShoot, install, install_crds
from generic.tools.packaging.chart import MALLOC
from generic.tools.packaging.registration import controller_registration, controller_resources
from tests.support.cluster.harness import PATIENCE, eventually, is_allowed
from tests.support.landscape.chart import GARDENLET, OPERATOR, arguments_of, rendered
from tests.support.objects.builders import infrastructure
from tests.support.objects.present import present

ACTUATOR = [sys.executable, "-c", "from generic.tools.cli.main import main; main()"]
MODULE = """
from actuator import Actuator
from actuator.v1alpha1 import Infrastructure
from generic.library.healthchecks import Check, HealthChecks, HealthResult

class Network(Actuator[Infrastructure]):
    def reconcile(self, ctx, infrastructure, cluster): ...
    def delete(self, ctx, infrastructure, cluster): ...

def extension(manager):
    manager.add(Network(), type="TYPE")
    checks = [Check("ControlPlaneHealthy", lambda ctx: HealthResult.healthy())]
    manager.add_health_checks(HealthChecks(cls=Infrastructure, types=["TYPE"], checks=checks))
"""
RESOURCES = {
    "ServiceAccount": Resource("v1", "serviceaccounts"),
    "ConfigMap": Resource("v1", "configmaps"),
    "Service": Resource("v1", "services"),
    "Deployment": Resource("apps/v1", "deployments"),
    "Pod": Resource("v1", "pods"),
    "PodDisruptionBudget": Resource("policy/v1", "poddisruptionbudgets"),
    "VerticalPodAutoscaler": resource_of(VerticalPodAutoscaler.KIND),
    "Job": Resource("batch/v1", "jobs"),
    "CustomResourceDefinition": CRDS,
    "Role": Resource("rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": Resource("rbac.authorization.k8s.io/v1", "rolebindings"),
    "ClusterRole": Resource("rbac.authorization.k8s.io/v1", "clusterroles", namespaced=False),
    "ClusterRoleBinding": Resource(
        "rbac.authorization.k8s.io/v1", "clusterrolebindings", namespaced=False
    ),
    "ValidatingAdmissionPolicy": POLICIES,
    "ValidatingAdmissionPolicyBinding": BINDINGS,
}
TEXT = {"type": "string"}
AUTOSCALERS: dict[str, Any] = {
    "apiVersion": CRDS.api_version,
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "verticalpodautoscalers.autoscaling.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
    },
}
"""The definition of VerticalPodAutoscalers, with the fields that a chart may set."""


def typed(**fields):
    return {"type": "object", "properties": fields}


def autoscalers():
    modes = ["Off", "Initial", "Recreate", "InPlaceOrRecreate", "Auto"]
    quantities = {"type": "object", "additionalProperties": TEXT}
    values = {**TEXT, "enum": ["RequestsAndLimits", "RequestsOnly"]}
    policy = typed(containerName=TEXT, controlledValues=values, minAllowed=quantities)
    spec = typed(
        targetRef=typed(apiVersion=TEXT, kind=TEXT, name=TEXT),
        updatePolicy=typed(updateMode={**TEXT, "enum": modes}),
        resourcePolicy=typed(containerPolicies={"type": "array", "items": policy}),
    )
    schema = {"openAPIV3Schema": typed(spec=spec)}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "verticalpodautoscalers", "kind": "VerticalPodAutoscaler"}
    rest = {"names": names, "scope": "Namespaced", "versions": [version]}
    return {**AUTOSCALERS, "spec": {"group": "autoscaling.k8s.io", **rest}}


LEASES = Resource("coordination.k8s.io/v1", "leases")
INFRASTRUCTURES = resource_of(Infrastructure.KIND)


@pytest.fixture(scope="session")
def helm():
    """The real helm."""
    return find_helm(print)


@pytest.fixture
def author(tmp_path, monkeypatch, namespace):
    """A directory with an author's extension in it, for the type named like the namespace."""
    module = f"mine_{namespace.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(MODULE.replace("TYPE", namespace))
    monkeypatch.chdir(tmp_path)
    return f"{module}:extension"


@pytest.fixture
def chart(author, command, tmp_path):
    """Calls the command; returns its stderr."""

    def call(*arguments, status=0):
        flags = ("--output", tmp_path / "out", "--name", "mine")
        return command("chart", author, *flags, *arguments, status=status).stderr

    return call


@pytest.fixture
def write(chart, tmp_path):
    """Calls the command, and returns the folder it has written."""

    def call(*arguments):
        chart(*arguments)
        return tmp_path / "out"

    return call


@pytest.fixture
def render(helm, namespace):
    """Render a chart with helm; return the objects."""

    def call(folder, **values):
        command = [helm, "template", "release", folder / "mine", "--namespace", namespace]
        for key, value in values.items():
            command += ["--set-json", f"{key}={json.dumps(value)}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return [document for document in yaml.safe_load_all(done.stdout) if document]

    return call


def of_kind(objects, kind):
    (found,) = (obj for obj in objects if obj["kind"] == kind)
    return found


def dry_run(admin, obj):
    meta = obj["metadata"]
    path = path_of(RESOURCES[obj["kind"]], meta.get("namespace", ""), meta["name"])
    query = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "test", "force": "true"}
    body = json.dumps(obj).encode()
    admin.send("PATCH", path, query=query, body=body, content_type="application/apply-patch+yaml")


def test_every_rendered_object_is_accepted_in_strict_mode(admin, write, render, namespace):
    objects = render(write())
    assert {obj["kind"] for obj in objects} >= {
        "Deployment",
        "Service",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "PodDisruptionBudget",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
    for obj in objects:
        dry_run(admin, obj)
        if RESOURCES[obj["kind"]].namespaced:
            place = obj["metadata"]["namespace"]
            reads_seed_identity = obj["kind"] in ("Role", "RoleBinding") and place == "kube-system"
            assert place == namespace or reads_seed_identity
    assert "Secret" not in {obj["kind"] for obj in objects}


def test_values_change_the_documented_parts_of_an_installation(admin, write, render):
    objects = render(
        write("--image", "registry.example.org:5000/mine@sha256:0123"),
        replicas=2,
        metricsPort=9090,
        env=[{"name": "A", "value": "b"}],
        ignoreOperationAnnotation=True,
        extensionClasses=["shoot", "seed"],
    )
    for obj in objects:
        dry_run(admin, obj)
    deployment = of_kind(objects, "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert deployment["spec"]["replicas"] == 2
    assert container["image"] == "registry.example.org:5000/mine@sha256:0123"
    assert [item["name"] for item in container["env"]] == [
        *MALLOC,
        "A",
        "IMAGEVECTOR_OVERWRITE",
    ]
    options = flags.from_args(container["args"][1:])
    assert options.extension_classes == ("shoot", "seed")
    assert options.ignore_operation_annotation
    assert options.metrics_bind_address == ":9090"


def test_an_installation_replaces_the_charts_environment_by_name(write, render):
    env = [{"name": "MALLOC_ARENA_MAX", "value": "8"}]
    objects = render(write(), env=env)
    for kind in ("Deployment", "Job"):
        (container,) = of_kind(objects, kind)["spec"]["template"]["spec"]["containers"]
        rest = [{"name": name, "value": MALLOC[name]} for name in MALLOC if name != env[0]["name"]]
        assert container["env"][:-1] == [*rest, *env]


def test_values_without_quotes_and_null_values_are_rendered(admin, write, render):
    image = {"repository": "mine", "tag": 20260131, "pullPolicy": "Always"}
    objects = render(write(), image=image, env=None, networkLabels=None)
    for obj in objects:
        dry_run(admin, obj)
    (container,) = of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "mine:20260131"
    assert [item["name"] for item in container["env"]] == [*MALLOC, "IMAGEVECTOR_OVERWRITE"]


KEPT = {"resources.gardener.cloud/keep-object": "true", "helm.sh/resource-policy": "keep"}
OWN_KIND = """
import attrs
from typing import Annotated
from actuator import Actuator, Resource
from actuator.meta import Kind, Object, Schema
from actuator.v1alpha1 import BackupBucket, Infrastructure

@attrs.frozen(kw_only=True)
class Spec:
    text: Annotated[str, Schema(description="{{ .Values.secret }}")] = ""

@attrs.define(kw_only=True)
class Note(Object):
    \"\"\"Text with {{ braces }}.\"\"\"
    KIND = Kind(
        name="Note", plural="notes", finalizer="example.org/note", group="TYPE.example.org",
        has_operation_annotation=False,
    )
    spec: Spec = attrs.field(factory=Spec)

class Notes(Actuator[Note]):
    permissions = (
        Resource("v1", "configmaps").permission("get", namespace="one"),
        Resource("v1", "configmaps").permission("list", namespace="two"),
    )
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...

class Network(Actuator[Infrastructure]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...

class Buckets(Actuator[BackupBucket]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...

def extension(manager):
    manager.add(Notes())
    manager.add(Network(), type="TYPE")
    manager.add(Buckets(), type="TYPE")
"""


@pytest.fixture
def own_kind(author, tmp_path, namespace):
    """The author's extension serves a kind of its own, too."""
    module = tmp_path / f"{author.partition(':')[0]}.py"
    module.write_text(OWN_KIND.replace("TYPE", namespace))


def test_gardener_gets_the_definitions_of_orphans_and_own_kinds_and_no_job(
    admin, own_kind, write, namespace
):
    folder = write() / "mine"
    assert not (folder / "crds").exists()
    objects = rendered(folder, namespace, GARDENLET)
    found = {
        object_["metadata"]["name"]: object_
        for object_ in objects
        if object_["kind"] == "CustomResourceDefinition"
    }
    own = f"notes.{namespace}.example.org"
    assert set(found) == {str(ORPHANS), str(FORCE_DELETIONS), own}
    assert found[own]["metadata"]["annotations"] == KEPT
    created = {**KEPT, "resources.gardener.cloud/ignore": "true"}
    for shared in (ORPHANS, FORCE_DELETIONS):
        assert found[str(shared)]["metadata"]["annotations"] == created
    assert "Job" not in {object_["kind"] for object_ in objects}
    schema = found[own]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["description"] == "Text with {{ braces }}."
    text = schema["properties"]["spec"]["properties"]["text"]
    assert text["description"] == "{{ .Values.secret }}"
    for object_ in objects:
        dry_run_new(admin, object_, {"one", "two"})


def definition_in(folder, namespace, **values):
    [found] = [
        obj
        for obj in rendered(folder, namespace, GARDENLET, **values)
        if obj["metadata"]["name"] == str(ORPHANS)
    ]
    return found


def test_gardener_never_hands_the_definition_of_orphans_from_one_extension_to_another(
    admin, environment, write, namespace
):
    """The first one creates it; then only the one with `crds: always` changes it."""
    install(environment, [ManagedResource])
    manager = ResourceManager(OneShoot(admin, namespace))
    folder = write() / "mine"
    group = f"{namespace}.example.org"  # that of this test: others need theirs

    def deploy(name, column, **values):
        """An extension whose version of the definition has another column."""
        wanted = definition_in(folder, namespace, **values)
        wanted["metadata"]["name"] = f"orphans.{group}"
        wanted["spec"]["group"] = group
        wanted["spec"]["versions"][0]["additionalPrinterColumns"][0]["name"] = column
        managedresources.deploy_for_seed(admin, name, namespace, [wanted])
        for _ in range(2):
            manager.poll()
        found = admin.get(CRDS, f"orphans.{group}")["spec"]["versions"][0]
        return found["additionalPrinterColumns"][0]["name"]

    assert deploy("first", "A") == "A"
    assert deploy("second", "B") == "A"
    assert deploy("second", "B", crds="always") == "B"
    assert deploy("first", "C") == "B"
    admin.delete(CRDS, f"orphans.{group}")


def dry_run_new(admin, obj, missing):
    """As `dry_run`; objects of namespaces that are not there are not sent."""
    if obj["metadata"].get("namespace") not in missing:
        dry_run(admin, obj)


def test_gardener_loses_no_role_of_another_namespace(own_kind, write, namespace):
    objects = rendered(write() / "mine", namespace, GARDENLET)
    for kind in ("Role", "RoleBinding"):
        where = {object_["metadata"]["namespace"] for object_ in objects if object_["kind"] == kind}
        assert where == {namespace, "kube-system", "one", "two"}


@pytest.mark.parametrize(
    ("gardener", "arguments", "classes", "controllers"),
    [
        (GARDENLET, [], (), ()),
        (GARDENLET, ["--cluster-compatibility", "shoot"], (), ()),
        (GARDENLET, ["--cluster-compatibility", "seed"], ("seed", "shoot"), ()),
        (OPERATOR, [], ("garden",), ("backupbucket", "heartbeat", "orphans")),
    ],
    ids=["shoot", "shoot-compatible", "seed", "garden"],
)
def test_each_installation_serves_its_classes_with_the_controllers_that_can_run_there(
    own_kind, write, namespace, gardener, arguments, classes, controllers
):
    options = flags.from_args(
        arguments_of(rendered(write(*arguments) / "mine", namespace, gardener))[1:]
    )
    assert options.extension_classes == classes
    assert set(options.controllers) == set(controllers)
    assert not options.self_hosted_shoot_cluster


def test_values_name_other_controllers_and_classes(write, namespace):
    folder = write() / "mine"
    own = {"controllers": ["infrastructure"], "extensionClasses": ["seed"]}
    for gardener, values in ((GARDENLET, own), (OPERATOR, {"runtimeCluster": own})):
        options = flags.from_args(arguments_of(rendered(folder, namespace, gardener, **values))[1:])
        assert options.controllers == ("infrastructure",)
        assert options.extension_classes == ("seed",)


def test_an_installation_in_a_self_hosted_shoot_sets_the_flag_of_the_manager(write, namespace):
    injected = {"selfHostedShootCluster": True}  # and no seed yet
    objects = rendered(write() / "mine", namespace, injected)
    assert flags.from_args(arguments_of(objects)[1:]).self_hosted_shoot_cluster


def test_values_injected_by_gardener_are_used(write, render):
    runtime = {
        "runtimeCluster": {"enabled": True, "priorityClassName": "gardener-garden-system-200"}
    }
    injected = {"gardener": {"version": "v1.150.0", **runtime}}
    pod = of_kind(render(write(), **injected), "Deployment")["spec"]["template"]["spec"]
    assert pod["priorityClassName"] == "gardener-garden-system-200"
    assert flags.from_args(pod["containers"][0]["args"][1:]).extension_classes == ("garden",)
    pod = of_kind(render(write()), "Deployment")["spec"]["template"]["spec"]
    assert pod["priorityClassName"] == "gardener-system-900"


def test_the_pods_are_restricted_probed_and_named_to_network_policies(write, render, namespace):
    objects = render(write())
    template = of_kind(objects, "Deployment")["spec"]["template"]
    pod = template["spec"]
    (container,) = template["spec"]["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert template["metadata"]["labels"]["networking.gardener.cloud/to-runtime-apiserver"]
    options = flags.from_args(container["args"][1:])
    assert options.leader_election
    assert options.leader_election_namespace == options.heartbeat_namespace == namespace
    assert pod["terminationGracePeriodSeconds"] > options.shutdown_timeout


RESTRICTED = {"security.gardener.cloud/pod-security-enforce": "restricted"}
"""The annotation by which Gardener labels the namespace of an extension."""


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_the_pods_are_admitted_in_a_namespace_for_restricted_ones(
    admin, write, render, namespace, kind
):
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    admin.patch(NAMESPACES, namespace, "", {"metadata": {"labels": label}})
    spec = of_kind(render(write()), kind)["spec"]["template"]["spec"]
    for missing in ("serviceAccountName", "priorityClassName"):
        del spec[missing]
    meta = {"name": "pod", "namespace": namespace}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    dry_run(admin, pod)
    spec["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    with pytest.raises(Forbidden, match="violates PodSecurity"):
        dry_run(admin, pod)


def test_several_replicas_are_spread_over_nodes_and_zones(admin, write, render):
    folder = write()
    (alone,) = [of_kind(render(folder), "Deployment")]
    assert "topologySpreadConstraints" not in alone["spec"]["template"]["spec"]
    objects = render(folder, replicas=3)
    deployment = of_kind(objects, "Deployment")
    dry_run(admin, deployment)
    constraints = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert [constraint["topologyKey"] for constraint in constraints] == [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    ]
    selectors = [constraint["labelSelector"] for constraint in constraints]
    budget = of_kind(objects, "PodDisruptionBudget")["spec"]
    assert [*selectors, budget["selector"]] == [deployment["spec"]["selector"]] * 3
    assert budget["maxUnavailable"] == 1


OFF = {"spec": {"settings": {"verticalPodAutoscaler": {"enabled": False}}}}


@pytest.mark.parametrize(
    ("enabled", "gardener", "expected"),
    [
        ("auto", {}, False),
        ("auto", GARDENLET, True),
        ("auto", OPERATOR, True),
        ("auto", {"seed": OFF}, False),
        ("auto", {"selfHostedShootCluster": True}, False),
        ("always", {}, True),
        ("never", GARDENLET, False),
    ],
)
def test_the_pods_have_an_autoscaler_where_the_cluster_can_have_one(
    admin, write, namespace, enabled, gardener, expected
):
    objects = rendered(write() / "mine", namespace, gardener, vpa={"enabled": enabled})
    found = [obj for obj in objects if obj["kind"] == "VerticalPodAutoscaler"]
    assert len(found) == expected
    for autoscaler in found:
        install_crds(admin, [autoscalers()])
        dry_run(admin, autoscaler)
        deployment = of_kind(objects, "Deployment")
        target = autoscaler["spec"]["targetRef"]
        assert (target["kind"], target["name"]) == ("Deployment", deployment["metadata"]["name"])
        (policy,) = autoscaler["spec"]["resourcePolicy"]["containerPolicies"]
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert policy["containerName"] == container["name"]


@pytest.mark.parametrize("given", ["true", "sometimes"])
def test_another_value_for_the_autoscaler_is_refused_by_name(helm, write, given):
    command = [helm, "template", "one", write() / "mine", "--set", f"vpa.enabled={given}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert f"vpa.enabled: expected auto, always or never, got {given}" in done.stderr


def test_an_autoscaler_is_installed_where_helm_knows_its_api(helm, write, namespace):
    command = [helm, "template", "one", write() / "mine", "--namespace", namespace]
    command += ["--api-versions", "autoscaling.k8s.io/v1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "kind: VerticalPodAutoscaler" in done.stdout


TO = "networking.gardener.cloud/to-"
SHOOTS = "networking.resources.gardener.cloud/to-all-shoots-kube-apiserver-tcp-443"
BASE = {f"{TO}runtime-apiserver", f"{TO}dns"}
CLOUDS = {f"{TO}public-networks", f"{TO}private-networks"}
CHECK = "lambda ctx: HealthResult.healthy())"
ACCESS = (
    "    from actuator.interface import SHOOT_ACCESS\n    permissions = (SHOOT_ACCESS,)\n\n"
    "def extension"
)
LEAVES_NOTHING = "    leaves_nothing = True\n\ndef extension"
EXTERNAL = "    def external_resources(self, obj): return ()\n\ndef extension"


def network_labels(obj):
    labels = obj["spec"]["template"]["metadata"]["labels"]
    return {key for key, value in labels.items() if "networking" in key and value == "allowed"}


@pytest.mark.parametrize(
    ("was", "becomes", "labels"),
    [
        ("def extension", "def extension", BASE),
        ("def extension", EXTERNAL, BASE | CLOUDS),
        ("def extension", LEAVES_NOTHING, BASE),
        (CHECK, "deployment('x'))", BASE),
        (CHECK, "deployment('x', shoot_namespace='y'))", BASE | {SHOOTS}),
        ("def extension", ACCESS, BASE | {SHOOTS}),
    ],
    ids=["plain", "cloud", "leaves-nothing", "seed-check", "shoot-check", "shoot-actuator"],
)
def test_pods_have_only_the_network_labels_that_the_extension_needs(
    author, write, render, tmp_path, was, becomes, labels
):
    module = tmp_path / f"{author.partition(':')[0]}.py"
    text = f"from generic.library.healthchecks import deployment\n{module.read_text()}"
    assert text.count(was) == 1
    module.write_text(text.replace(was, becomes))
    objects = render(write())
    pods = of_kind(objects, "Deployment")
    assert network_labels(pods) == labels
    assert network_labels(of_kind(objects, "Job")) == BASE
    selector = pods["spec"]["selector"]["matchLabels"]
    assert selector.items() <= pods["spec"]["template"]["metadata"]["labels"].items()


WEBHOOK = """
from generic.library.webhooks import mutates

@mutates(Infrastructure, failure_policy="Fail", namespace_labels={"a": "b"})
def label(request): ...

def extension(manager):
    manager.add_webhooks(label)"""


def test_webhooks_have_a_service_a_port_and_the_right_to_register_themselves(
    admin, author, write, render, tmp_path, namespace
):
    module = tmp_path / f"{author.partition(':')[0]}.py"
    module.write_text(module.read_text().replace("\ndef extension(manager):", WEBHOOK))
    objects = render(write())
    service = of_kind(objects, "Service")
    pods = of_kind(objects, "Deployment")
    role = of_kind(objects, "ClusterRole")
    assert service["metadata"]["name"] == "gardener-extension-mine"
    assert [(port["port"], port.get("targetPort")) for port in service["spec"]["ports"]] == [
        (8080, None),
        (443, 10250),
    ]
    opened = {
        key.partition("/")[2]: json.loads(value)
        for key, value in service["metadata"]["annotations"].items()
        if key.endswith("ports")
    }
    assert opened["from-world-to-ports"] == [{"protocol": "TCP", "port": 10250}]
    assert opened["from-all-webhook-targets-allowed-ports"] == opened["from-world-to-ports"]
    (container,) = pods["spec"]["template"]["spec"]["containers"]
    assert {"name": "webhooks", "containerPort": 10250, "protocol": "TCP"} in container["ports"]
    options = flags.from_args(container["args"][1:])
    endpoint = endpoint_of(options)
    assert (endpoint.service, endpoint.namespace) == (service["metadata"]["name"], namespace)
    assert (endpoint.port, options.webhook_config_server_port) == (443, 10250)
    assert (options.webhook_config_server_host, options.disable_webhooks) == ("", ())
    assert pods["metadata"]["labels"]["high-availability-config.resources.gardener.cloud/type"] == (
        "server"
    )
    names = [name for rule in role["rules"] for name in rule.get("resourceNames", ())]
    assert {endpoint.service, namespace} <= {*names}
    for obj in objects:
        dry_run(admin, obj)
    for values, disabled in (
        ({"webhooks": {"disabled": ["label"]}}, ("label",)),
        ({"gardener": {"runtimeCluster": {"enabled": True}}}, ("*",)),
    ):
        (container,) = of_kind(render(write(), **values), "Deployment")["spec"]["template"]["spec"][
            "containers"
        ]
        assert flags.from_args(container["args"][1:]).disable_webhooks == disabled


def test_a_webhook_that_could_block_deletions_has_no_chart(author, chart, tmp_path):
    module = tmp_path / f"{author.partition(':')[0]}.py"
    webhook = WEBHOOK.replace(', namespace_labels={"a": "b"}', ', subresource="status"')
    module.write_text(module.read_text().replace("\ndef extension(manager):", webhook))
    found = chart(status=1).removeprefix("Error: ").split("\\n")
    assert [line.partition(" ")[2].partition(" ")[0] for line in found] == ["label:", "label:"]
    assert "set namespace_labels or object_labels" in found[1]


def test_an_installation_adds_network_labels_and_keeps_those_that_select_the_pods(write, render):
    added = {SHOOTS: "allowed", "app.kubernetes.io/name": "x"}
    pods = of_kind(render(write(), networkLabels=added), "Deployment")
    assert network_labels(pods) == BASE | {SHOOTS}
    labels = pods["spec"]["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/name"] == "mine"
    assert labels["app.kubernetes.io/instance"] == "release"


@pytest.fixture
def installed(admin, write, render, environment, namespace):
    """The rendered accounts and roles, really there; a kubeconfig of the account."""
    objects = [
        obj for obj in render(write()) if "Role" in obj["kind"] or obj["kind"] == "ServiceAccount"
    ]
    for obj in objects:
        admin.apply(RESOURCES[obj["kind"]], obj)
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    yield environment.user_kubeconfig(f"system:serviceaccount:{namespace}:mine", groups)
    for obj in objects:
        meta = obj["metadata"]
        admin.delete(RESOURCES[obj["kind"]], meta["name"], meta.get("namespace", ""))


def test_the_account_has_the_permissions_of_the_manager_and_no_others(admin, installed, namespace):
    def may(*arguments, **more):
        user = f"system:serviceaccount:{namespace}:mine"
        return is_allowed(admin, user, *arguments, **more)

    def is_granted(*arguments, **more):
        return eventually(lambda: may(*arguments, **more))

    extensions = "extensions.gardener.cloud"
    coordination = "coordination.k8s.io"
    for verb in ("get", "list", "watch", "patch"):
        assert is_granted(verb, "infrastructures", extensions)
    assert is_granted("patch", "infrastructures/status", extensions)
    assert is_granted("watch", "clusters", extensions)
    assert is_granted("create", "events", namespace=namespace)
    for name in ("mine-leader-election", "gardener-extension-heartbeat"):
        assert is_granted("patch", "leases", coordination, namespace=namespace, name=name)
    assert is_granted("create", "leases", coordination, namespace=namespace)
    assert not may("patch", "leases", coordination, namespace="kube-system")
    assert not may("list", "secrets")
    assert not may("get", "secrets", namespace=namespace)
    assert not may("delete", "infrastructures", extensions)
    assert not may("list", "controlplanes", extensions)
    assert not may("create", "pods", namespace=namespace)
    assert not may("*", "*", "*")


def test_the_rendered_command_runs_with_the_rendered_rights(
    admin, seed, installed, write, render, namespace, tmp_path
):
    """Run the command of the Deployment as a process: it reconciles, reports health, and lives."""
    objects = render(write(), metricsPort=0, healthPort=0)  # any that is free
    (container,) = of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["actuator", "run"]
    process = subprocess.Popen(
        [*ACTUATOR, "run", *container["args"], "--kubeconfig", installed],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    try:
        seed.create(infrastructure(namespace, namespace))

        def ready():
            assert process.stderr is not None
            assert process.poll() is None, process.stderr.read()
            return not_ready_because(seed.get()) is None and seed.status().get("conditions")

        eventually(ready)
        heartbeat = eventually(lambda: lease(admin, namespace))
        assert heartbeat["spec"]["leaseDurationSeconds"] == 30
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.communicate()


BACKUPS = """
from actuator import Actuator
from actuator.v1alpha1 import BackupEntry

class Backups(Actuator[BackupEntry]):
    def reconcile(self, ctx, entry, cluster): ...
    def delete(self, ctx, entry, cluster): ...

def extension(manager):
    manager.add(Backups(), type="TYPE")
"""


def test_the_role_allows_the_watches_of_a_deployment_that_ignores_the_annotation(
    author, write, render, namespace, tmp_path
):
    (tmp_path / f"{author.partition(':')[0]}.py").write_text(BACKUPS.replace("TYPE", namespace))

    def watched(**values):
        rules = of_kind(render(write(), **values), "ClusterRole")["rules"]
        return {
            resource for rule in rules if "watch" in rule["verbs"] for resource in rule["resources"]
        }

    assert watched() == watched(ignoreOperationAnnotation=False)
    assert watched(ignoreOperationAnnotation=True) - watched() == {"secrets", "namespaces"}


def test_a_deployment_that_ignores_the_annotation_becomes_ready(
    author, admin, environment, write, render, namespace, tmp_path
):
    (tmp_path / f"{author.partition(':')[0]}.py").write_text(BACKUPS.replace("TYPE", namespace))
    objects = render(write(), ignoreOperationAnnotation=True, metricsPort=0, healthPort=0)
    roles = [obj for obj in objects if "Role" in obj["kind"]]
    for obj in roles:
        admin.apply(RESOURCES[obj["kind"]], obj)
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    user = environment.user_kubeconfig(f"system:serviceaccount:{namespace}:mine", groups)
    (container,) = of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    log = tmp_path / "log"
    with log.open("w") as stderr:
        command = [*ACTUATOR, "run", *container["args"], "--kubeconfig", user]
        process = subprocess.Popen(command, stderr=stderr, cwd=tmp_path)
    try:

        def address():
            assert process.poll() is None, log.read_text()
            found = [json.loads(line) for line in log.read_text().splitlines()]
            return [line["health"] for line in found if line["msg"] == "serving"]

        url = f"http://127.0.0.1:{eventually(address)[0].rpartition(':')[2]}/readyz?verbose"

        def is_ready():
            try:
                with urllib.request.urlopen(url, timeout=10) as answer:
                    return answer.status == 200
            except urllib.error.HTTPError as error:
                with error:
                    raise AssertionError(error.read().decode()) from None

        eventually(is_ready)
    finally:
        process.kill()
        process.wait()
        for obj in roles:
            meta = obj["metadata"]
            admin.delete(RESOURCES[obj["kind"]], meta["name"], meta.get("namespace", ""))


def lease(admin, namespace):
    try:
        return admin.get(LEASES, "gardener-extension-heartbeat", namespace)
    except NotFound:
        return None


def documents(path):
    return list(yaml.safe_load_all(path.read_text()))


def test_the_registration_lists_the_served_kinds_and_contains_the_chart(write, namespace, settings):
    folder = write(*settings("policy: OnDemand"))
    deployment, registration = documents(folder / "controllerregistration.yaml")
    assert deployment["apiVersion"] == "core.gardener.cloud/v1"
    assert deployment["kind"] == "ControllerDeployment"
    packed = io.BytesIO(base64.b64decode(deployment["helm"]["rawChart"]))
    with tarfile.open(fileobj=packed) as tar:
        inside = {name: present(tar.extractfile(name)).read().decode() for name in tar.getnames()}
    written = {
        str(path.relative_to(folder)): path.read_text() for path in (folder / "mine").rglob("*.*")
    }
    assert inside == written
    assert registration["apiVersion"] == "core.gardener.cloud/v1beta1"
    assert registration["kind"] == "ControllerRegistration"
    assert registration["metadata"]["annotations"] == RESTRICTED
    assert registration["spec"] == {
        "resources": [{"kind": "Infrastructure", "type": namespace, "primary": True}],
        "deployment": {"deploymentRefs": [{"name": "mine"}], "policy": "OnDemand"},
    }


def test_the_same_extension_gives_the_same_files(write, tmp_path):
    first = (write() / "controllerregistration.yaml").read_bytes()
    assert (write() / "controllerregistration.yaml").read_bytes() == first


def test_for_gardener_operator_it_is_an_extension(write, namespace, settings):
    reference = "registry.example.org/charts/mine:0.1.0"
    folder = write("--operator", "--oci-repository", reference, *settings("policy: Always"))
    (extension,) = documents(folder / "extension.yaml")
    assert (extension["apiVersion"], extension["kind"]) == (
        "operator.gardener.cloud/v1alpha1",
        "Extension",
    )
    assert extension["metadata"]["annotations"] == RESTRICTED
    assert extension["spec"] == {
        "resources": [{"kind": "Infrastructure", "type": namespace, "primary": True}],
        "deployment": {
            "extension": {"helm": {"ociRepository": {"ref": reference}}, "policy": "Always"}
        },
    }


def test_secondary_kinds_may_be_limited_to_selected_seeds(write, namespace, settings):
    selector = {"matchLabels": {"a": "b"}}
    selected = settings(f"seedSelector: {json.dumps(selector)}")
    folder = write("--secondary", f"Infrastructure/{namespace}", *selected)
    _, registration = documents(folder / "controllerregistration.yaml")
    assert registration["spec"]["resources"][0]["primary"] is False
    assert registration["spec"]["deployment"]["seedSelector"] == selector


SETTINGS = """
values: {endpoint: "{{ .resources.config.data.endpoint }}"}
injectGardenKubeconfig: true
resources:
- {name: config, resourceRef: {apiVersion: v1, kind: ConfigMap, name: mine-config}}
"""
OPERATORS = """
runtimeClusterValues: {replicas: 2}
admission:
  runtimeCluster: {helm: {ociRepository: {ref: "registry.example.org/admission-runtime:v1"}}}
  virtualCluster: {helm: {ociRepository: {ref: "registry.example.org/admission-garden:v1"}}}
  values: {logLevel: debug}
"""
OCI = ["--operator", "--oci-repository", "registry.example.org/charts/mine:0.1.0"]


@pytest.fixture
def settings(tmp_path):
    """A file for --deployment."""

    def write_file(text):
        (tmp_path / "deployment.yaml").write_text(text)
        return ["--deployment", str(tmp_path / "deployment.yaml")]

    return write_file


def test_a_controller_deployment_has_the_authors_values_resources_and_garden_access(
    write, settings
):
    given = yaml.safe_load(SETTINGS)
    folder = write(*settings(SETTINGS))
    deployment, registration = documents(folder / "controllerregistration.yaml")
    assert deployment["helm"]["values"] == given["values"]
    assert deployment["injectGardenKubeconfig"] is True
    assert deployment["resources"] == given["resources"]
    assert set(deployment["helm"]) == {"rawChart", "values"}
    assert set(registration["spec"]["deployment"]) == {"deploymentRefs"}


def test_an_operator_extension_has_the_runtime_clusters_values_and_the_admission_charts_too(
    write, settings
):
    folder = write(*OCI, *settings(SETTINGS + OPERATORS))
    given = yaml.safe_load(SETTINGS + OPERATORS)
    (extension,) = documents(folder / "extension.yaml")
    deployment = extension["spec"]["deployment"]
    assert set(deployment) == {"extension", "admission", "resources"}
    assert deployment["admission"] == given["admission"]
    assert deployment["resources"] == given["resources"]
    assert deployment["extension"] == {
        "helm": {"ociRepository": {"ref": OCI[-1]}},
        **{name: given[name] for name in given.keys() - {"admission", "resources"}},
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            OPERATORS,
            "runtimeClusterValues: only an operator Extension has this field; add --operator",
        ),
        ("admission: {values: {}}", "admission: only an operator Extension has this"),
        ("value: {}", "unknown field value; did you mean values"),
        ("resources: [{name: a}]", "resources.0..resourceRef: required field missing"),
        ("resources: 5", "resources: expected a list, got an integer"),
        ("values: abc", "values: expected an object, got a string"),
        ("admission: 3", "admission: expected an object, got an integer"),
        ("runtimeClusterValues: []", "runtimeClusterValues: expected an object"),
        ("injectGardenKubeconfig: 'yes'", "injectGardenKubeconfig: expected a boolean, got a st"),
        (SETTINGS.replace("ConfigMap", "Pod"), "expected one of Secret, ConfigMap, got 'Pod'"),
        ("policy: Never", "policy: expected one of OnDemand, Always, AlwaysExceptNoShoots, got 'N"),
        ("seedSelector: a=b", "seedSelector: expected an object, got a string"),
        ("seedSelector: {}", "requires that every kind is secondary"),
        ("values: {a: '{{ .resources.b.data.c }}'}", "with a NAME of resources"),
        (SETTINGS.replace("config.data", "other.data"), r"got \{\{ .resources.other.data.endpoint"),
        ("values: {a: '{{ .Values.b }}'}", r"values: expected \{\{ .resources.NAME.data.KEY \}\}"),
    ],
)
def test_settings_that_gardener_would_refuse_are_refused_with_the_fields_path(
    chart, settings, text, words
):
    assert re.search(words, chart(*settings(text), status=1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a", "expected a YAML mapping"),
        ("", "expected a YAML mapping"),
        ("a: 1\n---\na: 1", "expected a YAML mapping"),
        ("a: [", "while parsing"),
        ("\x00", "special characters"),
        ("values: {limit: .inf}", "Out of range float values"),
    ],
)
def test_a_settings_file_that_is_no_mapping_of_plain_values_is_refused(
    chart, settings, text, words
):
    assert re.search(rf"deployment.yaml.*{words}", chart(*settings(text), status=1))


def test_a_date_in_the_settings_is_text_as_in_go(write, settings):
    folder = write(*settings("values: {until: 2026-01-31}"))
    deployment, _ = documents(folder / "controllerregistration.yaml")
    assert deployment["helm"]["values"] == {"until": "2026-01-31"}


def test_compatibility_with_the_garden_is_for_operator_extensions(write, chart, author, tmp_path):
    module = tmp_path / f"{author.partition(':')[0]}.py"
    module.write_text(module.read_text().replace("Infrastructure", "Extension"))
    compatible = ["--cluster-compatibility", "garden"]
    error = chart(*compatible, status=1)
    assert re.search(r"clusterCompatibility: garden.*add --operator", error)
    (extension,) = documents(write(*compatible, *OCI) / "extension.yaml")
    assert extension["spec"]["resources"][0]["clusterCompatibility"] == ["garden"]


@pytest.mark.parametrize(
    ("flag", "update"),
    [
        ([], {}),
        (["--no-continuous-endpoint-update"], {"continuousEndpointUpdate": False}),
        (["--continuous-endpoint-update"], {"continuousEndpointUpdate": True}),
    ],
)
def test_the_registration_of_an_exposure_says_whether_its_endpoints_are_kept_up_to_date(
    write, author, tmp_path, flag, update
):
    module = tmp_path / f"{author.partition(':')[0]}.py"
    module.write_text(module.read_text().replace("Infrastructure", "SelfHostedShootExposure"))
    _, registration = documents(write(*flag) / "controllerregistration.yaml")
    (resource,) = registration["spec"]["resources"]
    assert resource.keys() - {"kind", "type", "primary"} == update.keys()
    assert update.items() <= resource.items()


def test_an_extension_without_kinds_of_gardener_has_a_chart_and_no_registration(
    chart, author, tmp_path
):
    module = tmp_path / f"{author.partition(':')[0]}.py"
    module.write_text(OWN_KIND.partition("class Network")[0] + "extension = Notes()")
    assert "serves no Gardener kind" in chart()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]
    assert "to register" in chart(*OCI, status=1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--operator"], "OCI registry"),
        (["--secondary", "Worker/x"], "Worker/x cannot be secondary"),
        (["--name", "No Name"], "invalid name"),
        (["--version", "latest"], "invalid chart version"),
    ],
)
def test_invalid_arguments_are_refused_in_one_sentence(chart, arguments, words):
    assert words in chart(*arguments, status=1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--secondary", "Worker"], "KIND/TYPE"),
        (["--lifecycle-delete", "AfterWorker"], "AfterWorker"),
    ],
)
def test_a_flag_that_is_written_wrongly_is_refused(chart, arguments, words):
    assert words in chart(*arguments, status=2)


def test_the_command_lists_the_files_it_wrote(author, tmp_path):
    command = [*ACTUATOR, "chart", author, "--output", "out"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    written = [tmp_path / line for line in done.stdout.splitlines()]
    assert tmp_path / "out" / "controllerregistration.yaml" in written
    assert all(path.is_file() for path in written)
    assert "--image is not set" in done.stderr


def test_a_folder_that_cannot_be_written_is_named(chart, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot write" in chart("--output", tmp_path / "file" / "x", status=1)


def test_a_manager_without_kinds_of_gardener_has_nothing_to_register():
    manager = Manager()
    with pytest.raises(ConfigurationError, match="to register"):
        controller_registration("x", controller_resources(manager), {}, {})


class Nothing(Actuator[Any]):
    """Does nothing, for objects of any class."""

    def __init__(self, of):
        self.of = of

    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...


SEVERAL = """
from actuator import Actuator
from actuator.v1alpha1 import Extension, Infrastructure

class Filters(Actuator[Extension]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...

class Networks(Actuator[Infrastructure]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...

def extension(manager):
    manager.add(Filters(), type="filter")
    manager.add(Networks(), type=["one", "two"])
"""
ASKED = """
--reconcile-timeout 90 --lifecycle-reconcile AfterWorker --lifecycle-delete AfterKubeAPIServer
--workerless --auto-enable shoot --cluster-compatibility shoot --cluster-compatibility seed
"""


def test_extension_settings_of_gardener_are_written_for_extensions_alone(write, author, tmp_path):
    module = tmp_path / f"{author.partition(':')[0]}.py"
    module.write_text(SEVERAL)
    _, registration = documents(write(*ASKED.split()) / "controllerregistration.yaml")
    assert registration["spec"]["resources"] == [
        {
            "kind": "Extension",
            "type": "filter",
            "primary": True,
            "reconcileTimeout": "90s",
            "lifecycle": {"reconcile": "AfterWorker", "delete": "AfterKubeAPIServer"},
            "workerlessSupported": True,
            "autoEnable": ["shoot"],
            "clusterCompatibility": ["shoot", "seed"],
        },
        {"kind": "Infrastructure", "type": "one", "primary": True},
        {"kind": "Infrastructure", "type": "two", "primary": True},
    ]


def test_a_kind_with_health_checks_alone_is_secondary():
    manager = Manager()
    manager.add(Nothing(Extension), type="filter")
    check = Check("X", lambda ctx: HealthResult.healthy())
    manager.add_health_checks(HealthChecks(cls=Infrastructure, types=["aws"], checks=[check]))
    resources = controller_resources(manager)
    assert [(r["kind"], r["primary"]) for r in resources] == [
        ("Extension", True),
        ("Infrastructure", False),
    ]


ACCOUNT = {"name": "extension-admission-one", "namespace": "kube-system"}


@pytest.fixture
def admission(admin, command, helm, tmp_path, namespace):
    """The objects of both charts of the sample's admission, as gardener-operator renders them."""
    extension = "extensions.certificate.admission:admission"
    command("chart", extension, "--admission", "--image", "a.io/b:1", "--output", tmp_path)
    values = {
        "runtime": {"virtualCluster": {"enabled": True, "namespace": "extension-one"}},
        "application": {"virtualCluster": {"enabled": True, "serviceAccount": ACCOUNT}},
    }
    found = {}
    for part, where in (("runtime", namespace), ("application", "extension-one")):
        folder = tmp_path / "extension-certificate-admission" / part
        injected = f"gardener={json.dumps(values[part])}"
        line = [helm, "template", "one", folder, "--namespace", where, "--set-json", injected]
        text = subprocess.run(line, capture_output=True, check=True, timeout=120).stdout
        found[part] = [document for document in yaml.safe_load_all(text) if document]
    return found


def test_the_charts_of_an_admission_are_accepted_in_strict_mode(admin, admission):
    install_crds(admin, [autoscalers()])
    for obj in (*admission["runtime"], *admission["application"]):
        dry_run(admin, obj)
    policy = of_kind(admission["application"], "ValidatingAdmissionPolicy")
    pattern = "^(?:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)$"
    assert any(pattern in validation["expression"] for validation in policy["spec"]["validations"])
    kinds = {obj["kind"] for obj in admission["runtime"]}
    assert kinds >= {"Deployment", "Service", "PodDisruptionBudget", "Role"}
    assert "VerticalPodAutoscaler" in kinds
    pod = of_kind(admission["runtime"], "Deployment")["spec"]["template"]["spec"]
    assert len(pod["topologySpreadConstraints"]) == 2, "it has two replicas"


def test_an_admission_runs_against_the_garden_and_keeps_its_certificates_outside(
    admission, monkeypatch, namespace
):
    monkeypatch.setenv("KUBECONFIG", "")
    deployment = of_kind(admission["runtime"], "Deployment")
    given = [
        argument for argument in arguments_of(admission["runtime"]) if argument.startswith("--")
    ]
    options = flags.from_args(given)
    endpoint = endpoint_of(options)
    assert str(options.kubeconfig) == "$(GARDEN_KUBECONFIG)"
    assert endpoint.host == f"gardener-extension-certificate-admission.{namespace}:443"
    assert of_kind(admission["runtime"], "Service")["metadata"]["name"] == endpoint.service
    assert not options.leader_election
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert {"name": "SOURCE_CLUSTER", "value": "enabled"} in container["env"]
    (role,) = (obj for obj in admission["runtime"] if obj["kind"] == "Role")
    assert {name for rule in role["rules"] for name in rule["resources"]} == {"secrets"}


def test_the_webhooks_of_an_admission_are_deleted_with_its_namespace_in_the_garden(admission):
    """They would refuse Shoots when the process is gone."""
    options = flags.from_args(
        [argument for argument in arguments_of(admission["runtime"]) if argument.startswith("--")]
    )
    assert options.webhook_owner == "extension-one"
    role = of_kind(admission["application"], "ClusterRole")
    (rule,) = (rule for rule in role["rules"] if rule["resources"] == ["namespaces"])
    assert rule["resourceNames"] == ["extension-one"]
    binding = of_kind(admission["application"], "ClusterRoleBinding")
    assert binding["subjects"] == [{"kind": "ServiceAccount", **ACCOUNT}]
