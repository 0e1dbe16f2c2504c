"""Handlers get typed objects and change them in place; the patch has only their changes."""

from __future__ import annotations

import base64
import inspect
import json
from typing import Any

import attrs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from actuator.codec import decode, encode
from actuator.v1alpha1 import Cluster, ContainerdConfig, File, OperatingSystemConfig, Unit
from actuator.v1alpha1.operatingsystemconfig import FileContentInline
from generic.library.webhooks import READ_CLUSTER, mutates
from generic.library.webhooks.controlplane import (
    KERNEL_SETTINGS,
    KUBELET_CONFIG,
    ControlPlaneMutator,
    machine_sidecar,
    machine_sidecar_policy,
)
from generic.library.webhooks.edits import (
    SystemdUnit,
    add_to_flag,
    ensure,
    ensure_file,
    ensure_flag,
    find_file,
    remove,
    remove_flag,
    remove_from_flag,
    text_of,
)
from generic.library.webhooks.objects import (
    Container,
    Deployment,
    Etcd,
    PodVolume,
    ResourcePolicy,
    Secret,
    Service,
    StatefulSet,
    VerticalPodAutoscaler,
)
from generic.library.webhooks.review import evaluate, parse
from generic.library.webhooks.targets import cloudprovider, network, of_type, pod_dns
from generic.testing.admission import admit
from tests.support.objects.stand_ins import StandIn

KUBECONFIG = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"
NAMES = st.sampled_from(["a", "b", "feature-gates", "a-b"])
FLAGS = st.lists(
    st.builds(lambda name, value: f"--{name}={value}", NAMES, st.sampled_from(["", "x=1", "y,z"]))
    | NAMES.map("--{}".format),
    max_size=5,
)


@given(FLAGS, NAMES, st.sampled_from(["1", "", "p=q"]))
def test_a_flag_is_set_once(flags, name, value):
    ensure_flag(flags, name, value)
    once = list(flags)
    ensure_flag(flags, name, value)
    assert flags == once
    assert [flag for flag in flags if flag.partition("=")[0] == f"--{name}"] == [
        f"--{name}={value}"
    ]


@given(FLAGS, NAMES)
def test_a_removed_flag_is_gone_and_others_stay(flags, name):
    others = [flag for flag in flags if flag.partition("=")[0] != f"--{name}"]
    remove_flag(flags, name)
    assert flags == others


def test_entries_of_a_flag_are_merged_by_key():
    flags = ["kube-apiserver", "--feature-gates=A=true,B=true"]
    add_to_flag(flags, "feature-gates", "B=false", "C=true")
    assert flags[1] == "--feature-gates=A=true,B=false,C=true"
    remove_from_flag(flags, "feature-gates", "A", "C=true")
    assert flags[1] == "--feature-gates=B=false"
    remove_from_flag(flags, "feature-gates", "B")
    assert flags == ["kube-apiserver"]


def test_entries_are_replaced_or_appended_by_name():
    volumes = [PodVolume(name="a", extra={"emptyDir": {}}), PodVolume(name="b")]
    ensure(volumes, PodVolume(name="a", extra={"secret": {}}))
    ensure(volumes, PodVolume(name="c"))
    assert [volume.name for volume in volumes] == ["a", "b", "c"]
    assert volumes[0].extra == {"secret": {}}
    remove(volumes, "a", "b")
    assert [volume.name for volume in volumes] == ["c"]


UNIT = """\
# a comment
[Unit]
Description=kubelet
After=a.service
After=b.service

[Service]
ExecStart=/opt/bin/kubelet \\
    --config=/x \\
    --v=2
"""


def test_a_unit_keeps_order_repeated_options_and_continuations():
    unit = SystemdUnit.parse(UNIT)
    assert [option.value for option in unit.options[1:3]] == ["a.service", "b.service"]
    assert SystemdUnit.parse(unit.render()) == unit
    unit.ensure("Service", "ExecStartPre", "/bin/true")
    unit.ensure("Service", "ExecStartPre", "/bin/true")
    unit.ensure_exec_flag("cloud-provider", "external")
    lines = unit.render().splitlines()
    assert lines.count("ExecStartPre=/bin/true") == 1
    assert "    --cloud-provider=external" in lines


def test_a_flag_in_a_command_leaves_quoted_arguments_alone():
    command = "/bin/sh -c 'exec  kubelet  -v 2' \\\n  --a=1 --b='c  d'"
    unit = SystemdUnit.parse(f"[Service]\nExecStart={command}\n")
    for _ in range(2):
        unit.ensure_exec_flag("a", "2")
        lines = [line.strip() for line in unit.options[0].value.split("\\\n")]
        assert lines == ["/bin/sh -c", "'exec  kubelet  -v 2'", "--a=2", "--b='c  d'"]


def inline_of(file: File) -> FileContentInline:
    assert file.content.inline is not None
    return file.content.inline


def test_a_file_with_an_unknown_encoding_is_written_with_a_known_one():
    files = [decode(File, {"path": "/a", "content": {"inline": {"encoding": "x", "data": "y"}}})]
    ensure_file(files, "/a", "text")
    assert text_of(files[0]) == "text"
    assert inline_of(files[0]).encoding == "b64"


@pytest.mark.parametrize("text", ["Description=x", "[Unit]\nnothing"])
def test_a_line_that_is_no_option_is_an_error(text):
    with pytest.raises(ValueError, match="neither a section nor an option"):
        SystemdUnit.parse(text)


@given(st.sampled_from(["", "b64"]), st.text("ab\n", max_size=9))
def test_a_file_keeps_its_encoding(encoding, text):
    data = base64.b64encode(b"before").decode() if encoding else "before"
    inline = {"encoding": encoding, "data": data}
    given = {"path": "/etc/a", "permissions": 420, "content": {"inline": inline}}
    files = [decode(File, given)]
    ensure_file(files, "/etc/a", text)
    assert (text_of(files[0]), files[0].permissions) == (text, 420)
    assert inline_of(files[0]).encoding == encoding


def deployment(name: str, **container: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shoot--a--b", "labels": {}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "Recreate"},
            "template": {
                "metadata": {"labels": {"app": name}, "creationTimestamp": None},
                "spec": {
                    "containers": [{"name": name, "image": "i", "resources": {}, **container}],
                    "volumes": None,
                    "tolerations": [{"operator": "Exists"}],
                },
            },
        },
    }


def test_an_object_survives_a_round_trip():
    value = {"name": "A", "valueFrom": {}}
    manifest = deployment("a", command=["x", "--y"], env=[value])
    assert encode(decode(Deployment, manifest)) == manifest


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("a/~", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab"), inner, max_size=2),
    max_leaves=3,
)


def record(**known: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of the known fields, which may be null, and with unknown ones."""
    optional = {name: st.none() | field for name, field in known.items()}
    unknown = st.dictionaries(st.sampled_from(["x", "x-y", "resources"]), JSON, max_size=2)
    return st.builds(lambda a, b: {**a, **b}, unknown, st.fixed_dictionaries({}, optional=optional))


TEXT = st.text("ab", max_size=2)
TEXTS = st.lists(TEXT, max_size=2)
LABELS = st.dictionaries(TEXT, TEXT, max_size=2)
ENV = record(name=TEXT, value=TEXT, valueFrom=record(secretKeyRef=record(name=TEXT)))
MOUNT = record(name=TEXT, mountPath=TEXT, readOnly=st.booleans())
CONTAINER = record(
    name=TEXT,
    image=TEXT,
    command=TEXTS,
    args=TEXTS,
    env=st.lists(ENV, max_size=1),
    volumeMounts=st.lists(MOUNT, max_size=1),
)
POD = record(
    containers=st.lists(CONTAINER, max_size=2),
    initContainers=st.lists(CONTAINER, max_size=1),
    volumes=st.lists(record(name=TEXT, emptyDir=record()), max_size=1),
    dnsPolicy=TEXT,
    dnsConfig=record(nameservers=TEXTS, searches=TEXTS, options=st.lists(JSON, max_size=1)),
)
TEMPLATE = record(metadata=record(labels=LABELS, annotations=LABELS), spec=POD)
POLICY = record(containerName=TEXT, controlledValues=TEXT, minAllowed=LABELS)
MANIFESTS = {
    Deployment: record(spec=record(replicas=st.integers(0, 3), template=TEMPLATE)),
    StatefulSet: record(spec=record(replicas=st.integers(0, 3), template=TEMPLATE)),
    Service: record(spec=record(ports=JSON, type=TEXT)),
    Secret: record(data=LABELS, type=TEXT),
    Etcd: record(spec=record(etcd=JSON)),
    VerticalPodAutoscaler: record(
        spec=record(resourcePolicy=record(containerPolicies=st.lists(POLICY, max_size=2)))
    ),
}


@pytest.mark.parametrize("cls", MANIFESTS, ids=lambda cls: cls.__name__)
@given(data=st.data())
def test_every_manifest_survives_a_round_trip(cls, data):
    """Otherwise the patch of a webhook would not fit the object that the API server has."""
    kind = {"apiVersion": cls.KIND.api_version, "kind": cls.KIND.name, "metadata": {"name": "a"}}
    manifest = {**data.draw(MANIFESTS[cls]), **kind}
    assert encode(decode(cls, manifest)) == manifest


class Reader(StandIn):
    """Answers with the Cluster of every namespace."""

    def get(self, resource, name, namespace=""):
        assert str(resource) == "clusters.extensions.gardener.cloud"
        workers = [{"name": "pool", "kubernetes": {"version": "1.32.1"}}, {"name": "other"}]
        shoot = {"spec": {"kubernetes": {"version": "1.33.0"}, "provider": {"workers": workers}}}
        return {"metadata": {"name": name, "uid": "u"}, "spec": {"shoot": shoot}}


def admitted(webhook: Any, obj: dict[str, Any], operation: str = "CREATE") -> list[dict[str, Any]]:
    group, _, version = obj["apiVersion"].rpartition("/")
    plural = f"{obj['kind'].lower()}s"
    resource = {"group": group, "version": version, "resource": plural}
    namespace = obj["metadata"].get("namespace", "")
    request = {"uid": "u", "resource": resource, "operation": operation, "namespace": namespace}
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {**request, "object": obj},
    }
    answer = evaluate(webhook, parse(json.dumps(body).encode()), Reader())
    assert answer.allowed, answer
    return list(answer.patch)


class Mine(ControlPlaneMutator):
    versions: list[str]

    def kube_controller_manager(self, request):
        container = request.new.pod.container("kube-controller-manager")
        ensure_flag(container.flags, "cloud-provider", "external")

    def machine_controller_manager(self, request):
        ensure(request.new.pod.containers, machine_sidecar("aws", request.namespace, "image:1"))

    def machine_controller_manager_vpa(self, request):
        policy = request.new.spec.resource_policy or ResourcePolicy()
        ensure(policy.container_policies, machine_sidecar_policy("aws"))
        request.new.spec.resource_policy = policy

    def kubelet_configuration(self, request, config, version):
        config["featureGates"] = {"A": version == "1.32.1"}

    def kubelet_unit(self, request, unit, version):
        unit.ensure_exec_flag("cloud-provider", "external")

    def kernel_settings(self, request, text):
        return text + "net.ipv4.neigh.default.gc_thresh1 = 0\n"

    def additional_units_and_files(self, request):
        ensure(request.new.spec.units, Unit(name="mtu.service", content="[Unit]\n"))


def hooks() -> dict[str, Any]:
    return {webhook.name: webhook for webhook in Mine("aws").webhooks()}


def test_only_overridden_methods_have_webhooks():
    assert {name: list(hook.names) for name, hook in hooks().items()} == {
        "controlplane-deployments": ["kube-controller-manager", "machine-controller-manager"],
        "controlplane-autoscalers": ["machine-controller-manager-vpa"],
        "controlplane-nodes": [],
    }
    assert ControlPlaneMutator("aws").webhooks() == []
    assert {tuple(hook.namespace_labels.items()) for hook in hooks().values()} == {
        (("shoot.gardener.cloud/provider", "aws"),)
    }


METHODS = sorted(name for name in vars(ControlPlaneMutator) if name[0] != "_")
METHODS = [name for name in METHODS if inspect.isfunction(getattr(ControlPlaneMutator, name))]


@pytest.mark.parametrize("name", [name for name in METHODS if name != "webhooks"])
def test_each_method_has_a_webhook_when_it_is_overridden(name):
    own = type("Own", (ControlPlaneMutator,), {name: lambda *_: None})
    assert len(own("aws").webhooks()) == 1


def test_the_two_objects_of_the_vpn_server_and_the_resource_manager_are_changed():
    class Servers(ControlPlaneMutator):
        def gardener_resource_manager(self, request):
            ensure_flag(request.new.pod.containers[0].args, "v", "4")

        vpn_seed_server = vpn_seed_server_stateful_set = gardener_resource_manager

    found = {hook.name: hook for hook in Servers("aws").webhooks()}
    for name, kind in [
        ("gardener-resource-manager", "Deployment"),
        ("vpn-seed-server", "Deployment"),
        ("vpn-seed-server", "StatefulSet"),
    ]:
        hook = found[f"controlplane-{kind.lower()}s"]
        assert name in hook.names
        (operation,) = admitted(hook, deployment(name, args=["--v=2"]) | {"kind": kind})
        assert operation["value"] == "--v=4"
    other = deployment("another", args=["--v=2"]) | {"kind": "StatefulSet"}
    assert admitted(found["controlplane-statefulsets"], other) == []


@pytest.mark.parametrize("place", ["seed", "backup"])
def test_the_provider_of_the_seed_or_its_backups_has_its_own_label_and_name(place):
    """One extension can have a mutator for each of them."""

    class Exposure(ControlPlaneMutator):
        namespace_label = f"{place}.gardener.cloud/provider"

        def kube_apiserver_service(self, request):
            request.new.metadata.annotations["lb"] = "nlb"

    (webhook,) = Exposure("aws").webhooks()
    assert webhook.name == f"{place}-services"
    assert webhook.namespace_labels == {f"{place}.gardener.cloud/provider": "aws"}


def test_the_cluster_is_read_only_for_a_method_that_needs_the_version():
    class Files(ControlPlaneMutator):
        def additional_units_and_files(self, request):
            ensure_file(request.new.spec.files, "/etc/mine", "text")

    (webhook,) = Files("aws").webhooks()
    spec = {"type": "t", "purpose": "reconcile"}
    stored = admit(
        webhook, decode(OperatingSystemConfig, {"metadata": {"name": "a"}, "spec": spec})
    )
    assert [file.path for file in stored.spec.files] == ["/etc/mine"]  # the client has no Cluster


def shoot_with(pool: dict[str, Any]) -> Cluster:
    spec = {"provider": {"workers": [{"name": "a"}, pool]}}
    return decode(
        Cluster, {"metadata": {"name": "c", "uid": "u"}, "spec": {"shoot": {"spec": spec}}}
    )


@pytest.mark.parametrize(
    ("namespace", "pool", "target"),
    [
        ("shoot--a--b", {}, f"{KUBECONFIG}/kubeconfig"),
        ("shoot--a--b", {"controlPlane": None}, f"{KUBECONFIG}/kubeconfig"),
        ("shoot--a--b", {"controlPlane": {}}, "none"),
        ("shoot--a--b", {"controlPlane": {"backup": {}}}, "none"),
        ("kube-system", {"controlPlane": {}}, ""),
    ],
)
def test_the_sidecar_mounts_a_kubeconfig_only_where_gardenlet_provides_it(namespace, pool, target):
    """The values are those of ProviderSidecarContainer in Gardener."""
    sidecar = machine_sidecar("aws", namespace, "image:1", shoot_with(pool))
    assert f"--target-kubeconfig={target}" in sidecar.args
    mounts = [mount.mount_path for mount in sidecar.volume_mounts]
    assert mounts == ([KUBECONFIG] if target.startswith(KUBECONFIG) else [])


def test_the_sidecar_in_kube_system_needs_no_cluster():
    assert machine_sidecar("aws", "kube-system", "image:1").volume_mounts == []


def test_the_sidecar_is_the_only_change():
    hook = hooks()["controlplane-deployments"]
    (operation,) = admitted(hook, deployment("machine-controller-manager"))
    assert (operation["op"], operation["path"]) == ("add", "/spec/template/spec/containers/-")
    sidecar = operation["value"]
    assert sidecar["name"] == "machine-controller-manager-provider-aws"
    assert "--namespace=shoot--a--b" in sidecar["args"]
    once = deployment("machine-controller-manager")
    once["spec"]["template"]["spec"]["containers"].append(sidecar)
    assert admitted(hook, once, "UPDATE") == []


def test_a_flag_in_the_command_is_one_operation():
    command = ["/usr/local/bin/kube-controller-manager", "--v=2"]
    given = deployment("kube-controller-manager", command=command)
    assert admitted(hooks()["controlplane-deployments"], given) == [
        {
            "op": "add",
            "path": "/spec/template/spec/containers/0/command/-",
            "value": "--cloud-provider=external",
        }
    ]


class Runtime(ControlPlaneMutator):
    def cri_config(self, request, config):
        containerd = config.containerd or ContainerdConfig()
        return attrs.evolve(config, containerd=attrs.evolve(containerd, sandbox_image="own:1"))

    def kernel_settings(self, request, text):
        return ""

    def kubelet_cloud_provider_config(self, request, version):
        return ""

    def additional_provision_units_and_files(self, request):
        ensure_file(request.new.spec.files, "/etc/first-boot", request.new.spec.purpose)


@pytest.mark.parametrize("runtime", [{}, {"containerd": {"sandboxImage": "a:1", "other": [1]}}])
def test_the_container_runtime_of_a_node_is_configured(runtime):
    """Files that would be empty are left out: Gardener refuses them."""
    hook = next(hook for hook in Runtime("aws").webhooks() if hook.name.endswith("nodes"))
    given = osc("pool")
    given["spec"]["criConfig"] = {"name": "containerd", "cgroupDriver": "systemd", **runtime}
    patch = [item for item in admitted(hook, given) if "/units/" not in item["path"]]
    (place,) = {item["path"].removeprefix("/spec/criConfig/containerd") for item in patch}
    assert (place, patch[0]["value"]) == (
        ("/sandboxImage", "own:1") if runtime else ("", {"sandboxImage": "own:1"})
    )
    del given["spec"]["criConfig"]
    assert [item for item in admitted(hook, given) if "/units/" not in item["path"]] == []


def test_the_user_data_of_machines_has_a_webhook_of_its_own():
    hooks = {hook.name: hook for hook in Runtime("aws").webhooks()}
    given = osc("pool")
    given["spec"]["purpose"] = "provision"
    (operation,) = admitted(hooks["controlplane-userdata"], given)
    assert operation["value"]["path"] == "/etc/first-boot"
    conditions = [str(hook.conditions) for hook in hooks.values()]
    assert ["provision" in text for text in conditions] == [False, True]


def osc(pool: str) -> dict[str, Any]:
    def file(path: str, text: str) -> dict[str, Any]:
        data = base64.b64encode(text.encode()).decode()
        return {"path": path, "content": {"inline": {"encoding": "b64", "data": data}}}

    files = [file(KUBELET_CONFIG, "maxPods: 110\n"), file(KERNEL_SETTINGS, "vm.swappiness = 0\n")]
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "OperatingSystemConfig",
        "metadata": {
            "name": "o",
            "namespace": "shoot--a--b",
            "labels": {"worker.gardener.cloud/pool": pool},
        },
        "spec": {
            "type": "gardenlinux",
            "purpose": "reconcile",
            "files": files,
            "units": [{"name": "kubelet.service", "content": UNIT}],
        },
    }


@pytest.mark.parametrize(("pool", "is_old"), [("pool", True), ("other", False), ("x", False)])
def test_nodes_get_their_configuration_by_the_version_of_their_pool(pool, is_old):
    given = osc(pool)
    patch = admitted(hooks()["controlplane-nodes"], given)
    changed = {item["path"]: item["value"] for item in patch}
    config = base64.b64decode(changed["/spec/files/0/content/inline/data"])
    assert yaml.safe_load(config) == {"maxPods": 110, "featureGates": {"A": is_old}}
    settings = base64.b64decode(changed["/spec/files/1/content/inline/data"])
    assert settings.decode().splitlines()[-1].startswith("net.ipv4.neigh")
    assert "--cloud-provider=external" in changed["/spec/units/0/content"]
    assert changed["/spec/units/-"]["name"] == "mtu.service"


def test_an_object_of_another_provider_would_not_reach_the_secret_webhook():
    def rename(request):
        request.new.data["region"] = "ZXU="

    webhook = cloudprovider("aws", rename)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "cloudprovider", "namespace": "shoot--a--b"},
        "data": {"key": "c2VjcmV0"},
    }
    assert admitted(webhook, secret) == [{"op": "add", "path": "/data/region", "value": "ZXU="}]
    assert webhook.namespace_labels == {"shoot.gardener.cloud/provider": "aws"}
    assert "secret" not in repr(decode(webhook.kinds[0], secret))


def test_networks_are_selected_by_type_and_provider():
    webhook = network("calico", "aws", lambda request: None)
    assert webhook.conditions == of_type("calico")
    assert set(webhook.namespace_labels.values()) == {"calico", "aws"}


def test_pods_get_other_name_servers():
    webhook = pod_dns(["prober"], lambda request: ["10.0.0.10"], namespace_labels={"a": "b"})
    changed = {item["path"]: item["value"] for item in admitted(webhook, deployment("prober"))}
    assert changed["/spec/template/spec/dnsPolicy"] == "None"
    config = changed["/spec/template/spec/dnsConfig"]
    assert config["nameservers"] == ["10.0.0.10"]
    assert config["searches"][0] == "shoot--a--b.svc.cluster.local"


def test_every_handler_may_read_the_cluster():
    def nothing(request):
        return []

    targets = [
        cloudprovider("aws", nothing),
        network("calico", "aws", nothing),
        pod_dns(["a"], nothing, namespace_labels={"a": "b"}),
    ]
    for webhook in (*hooks().values(), *targets):
        assert READ_CLUSTER in webhook.permissions


def test_a_container_without_flags_gets_them_as_arguments():
    container = Container(name="a", command=["/bin/a"])
    ensure_flag(container.flags, "v", "2")
    assert (container.command, container.args) == (["/bin/a"], ["--v=2"])
    assert find_file([], "/x") is None


def test_the_object_of_a_subresource_is_read_as_the_class_of_its_resource():
    """For deployments/scale the API server sends a Scale of autoscaling/v1."""

    @mutates(Deployment, failure_policy="Fail", subresource="scale")
    def at_least_two(request: Any) -> None:
        request.new.spec.replicas = max(2, request.new.spec.replicas)

    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}}
    request = {
        "uid": "u",
        "kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "subResource": "scale",
        "operation": "UPDATE",
        "object": {**scale, "spec": {"replicas": 1}, "status": {"replicas": 3, "selector": "a=b"}},
        "oldObject": {**scale, "spec": {"replicas": 3}},
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    answer = evaluate(at_least_two, parse(json.dumps(body).encode()), Reader())
    assert answer.allowed, answer
    assert answer.patch == [{"op": "replace", "path": "/spec/replicas", "value": 2}]
