"""Take-over from a real extension on Gardener's Go library, and the way back: nothing changes.

The former extension is a Go program with the library's own code; its Worker is that of Gardener's
provider-local (`golibrary/main.go`).
"""

from __future__ import annotations

import base64
import json
from itertools import product
from typing import Any

import attrs
import pytest

from actuator.codec import decode, encode
from actuator.errors import ActuatorError
from actuator.interface import SECRETS, Resource
from actuator.v1alpha1 import ControlPlane, OperatingSystemConfig, Worker
from generic.kube.crds import crd
from generic.library import secrets
from generic.library.controlplane import GenericControlPlane
from generic.library.machines import (
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_KINDS,
    MACHINE_SETS,
    MACHINES,
)
from generic.library.managedresources import ManagedResource, deploy_for_seed, deploy_for_shoot
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.library.secrets import (
    Authority,
    BasicAuth,
    Certificate,
    RsaKey,
    SecretsManager,
    StaticTokens,
    TokenUser,
    rotation_of,
)
from generic.library.webhooks import mutates, validates
from generic.library.webhooks.configurations import (
    MUTATING,
    VALIDATING,
    Endpoint,
    Mode,
    configurations,
)
from generic.library.webhooks.controlplane import KUBELET_CONFIG, KUBELET_UNIT, ControlPlaneMutator
from generic.library.webhooks.objects import Deployment
from generic.library.webhooks.publishing import publish
from generic.library.worker import (
    GenericWorker,
    ProviderImage,
    in_zone,
    pool_hash,
    require_technical_id,
    use_images,
    user_data,
)
from generic.testing.admission import admit
from generic.testing.machinecontroller import MachineController
from generic.testing.polling import polling
from generic.testing.resourcemanager import ResourceManager
from generic.testing.seed import OneShoot, install, install_crds
from tests.support.cluster import takeover_forms as forms
from tests.support.cluster.go_library import AUTHORITY, run_library
from tests.support.cluster.harness import eventually
from tests.support.objects.go_state import PARTS, ready_object

CONFIG_MAPS = Resource("v1", "configmaps")
CONFIG, SEED, SHOOT, CRDS, STORAGE, WEBHOOKS = PARTS
CLOUD = {"name": "cloudprovider"}


class Nodes(ControlPlaneMutator):
    """The same changes as `ensurer` in the Go program."""

    def kubelet_unit(self, request, unit, version):
        unit.ensure_exec_flag("cloud-provider", "external")
        name = """/bin/sh -c 'hostnamectl set-hostname "$(hostname -f)"'"""
        unit.ensure("Service", "ExecStartPre", name)

    def kubelet_configuration(self, request, config, version):
        config["enableControllerAttachDetach"] = True
        config["featureGates"] = {**config.get("featureGates", {}), "Added": True}


BINARY = "[Service]\nExecStart=/opt/bin/kubelet"
UNITS = {
    "as gardenlet writes it": "[Unit]\nDescription=kubelet daemon\nAfter=containerd.service\n"
    "[Install]\nWantedBy=multi-user.target\n[Service]\nRestart=always\n"
    "EnvironmentFile=/etc/environment\nExecStartPre=/bin/true\n"
    "ExecStart=/opt/bin/kubelet \\\n    --config=/x \\\n    --v=2",
    "without flags": f"{BINARY}\n",
    "one flag": f"{BINARY} --v=2\n",
    "already changed": f"{BINARY} --cloud-provider=external \\\n    --v=2\n",
    "another value": f"{BINARY} \\\n    --cloud-provider=aws \\\n    --v=2\n",
    "values beside flags": f"{BINARY} --v 2   --config  /x\n",
    "comments and blank lines": f"# a\n\n[Unit]\n; b\nA=1\n\n\nA=2\n{BINARY}\n# end\n",
    "sections twice": f"[Unit]\nA=1\n{BINARY} --v=2\n[Unit]\nB=2\n",
    "spaces": "[Unit] \n  A =  1  \n[Service]\nExecStart = /opt/bin/kubelet\t--v=2 \n",
    "without a command": "[Unit]\nA=1\n",
}
CONFIGS = {
    "empty": {},
    "options": {"maxPods": 110, "imageGCHighThresholdPercent": 50, "registerNode": False},
    "feature gates": {"featureGates": {"Zed": True, "A10": True, "A9": False, "Added2": True}},
    "quantities": {"kubeReserved": {"memory": "1Gi", "cpu": "80m", "ephemeral-storage": "10"}},
    "thresholds": {"evictionHard": {"nodefs.available": "5%", "memory.available": "100Mi"}},
    "texts like values": {"systemReserved": {"a": "1", "b": "true", "c": "y", "d": "1e3",
        "e": "0x1", "f": "1:20", "g": "2026-01-01", "h": "~", "i": "", "j": "a: b", "k": "*x",
        "l": "a b " * 40, "m": "x\ny\n", "n": "0.5", "o": "_1", "p": "é", "q": " a", "r": "=",
        "s": "1_000", "t": "off", "v": "08", "w": "0o7", "x": "-", "y": "#a",
        "z": "null"}},
    "lists": {"allowedUnsafeSysctls": ["net.*", "b"], "clusterDNS": [], "tlsCipherSuites": ["X"]},
    "durations": {"nodeStatusUpdateFrequency": "10s", "syncFrequency": "1m0s"},
}  # fmt: skip


def node_config(namespace, unit, config, encoding):
    """An OperatingSystemConfig with a unit and a configuration of the kubelet."""
    head = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    text = json.dumps({**head, **config})
    data = base64.b64encode(text.encode()).decode() if encoding else text
    inline = {"encoding": encoding, "data": data}
    spec = {
        "type": "linux",
        "purpose": "reconcile",
        "units": [{"name": KUBELET_UNIT, "content": unit}],
        "files": [{"path": KUBELET_CONFIG, "content": {"inline": inline}}],
    }
    return {"metadata": {"name": "nodes", "namespace": namespace}, "spec": spec}


def parts(config):
    """The text of the unit, and of the configuration with its encoding."""
    [unit] = config["spec"]["units"]
    [file] = config["spec"]["files"]
    inline = file["content"]["inline"]
    data = inline["data"]
    encoding = inline.get("encoding", "")
    return unit["content"], base64.b64decode(data).decode() if encoding else data, encoding


def test_nodes_have_the_same_bytes_whichever_side_changes_them(admin, seed, namespace, kubeconfig):
    seed.update_cluster(forms.cluster(namespace, "", capabilities=False, removed=False))
    cases = list(product(UNITS, CONFIGS, ["", "b64"]))
    given = [
        node_config(namespace, UNITS[unit], CONFIGS[config], encoding)
        for unit, config, encoding in cases
    ]
    written, theirs = run_library(kubeconfig, "nodes", configs=given)
    [webhook] = Nodes("test").webhooks()
    for case, before, after in zip(cases, written, theirs, strict=True):
        ours = encode(admit(webhook, decode(OperatingSystemConfig, before), client=admin))
        assert parts(ours) == parts(after), case
        again = encode(admit(webhook, decode(OperatingSystemConfig, after), client=admin))
        assert parts(again) == parts(after), case


@attrs.frozen(kw_only=True)
class LocalImage(ProviderImage):
    """The image of provider-local."""

    image: str = ""


class LocalWorker(GenericWorker):
    """The machines of provider-local."""

    def machine_deployments(self, ctx, worker, cluster):
        pools = worker.spec.pools
        technical_id = require_technical_id(cluster)
        images = use_images(LocalImage, worker, pools, cluster, forms.LOCAL)
        groups = []
        for pool, image in zip(pools, images, strict=True):
            secret_data = {"userData": user_data(ctx.client, worker, pool)}
            for index in range(len(pool.zones)):
                group = in_zone(
                    worker,
                    pool,
                    cluster,
                    index,
                    hash=pool_hash(worker, pool, cluster),
                    provider="local",
                    provider_spec={"image": image.image, "namespace": f"infra-{technical_id}"},
                    secret_data=secret_data,
                    credentials=worker.spec.secret_ref,
                )
                pace = {"max_surge": pool.max_surge, "max_unavailable": pool.max_unavailable}
                groups.append(attrs.evolve(group, **pace))
        return groups


class Provider(GenericControlPlane):
    """The control plane of the Go program."""

    origin = "provider-test"
    access_secrets = ("csi",)
    permissions = (*GenericControlPlane.permissions, *secrets.PERMISSIONS)

    def _one(self, name, namespace):
        meta = {"name": name, "namespace": namespace}
        part = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        return [{**part, "data": {"value": "1"}}]

    def config(self, at):
        return self._one(CONFIG, at.namespace)

    def seed(self, at):
        return self._one(SEED, at.namespace)

    def shoot(self, at):
        return self._one(SHOOT, "kube-system")

    def shoot_crds(self, at):
        return self._one(CRDS, "kube-system")

    def storage_classes(self, at):
        return self._one(STORAGE, "kube-system")

    def shoot_webhooks(self, at):
        return self._one(WEBHOOKS, "kube-system")

    def secret_configs(self, control_plane, cluster):
        return [
            Authority(name=AUTHORITY, rotation=rotation_of(cluster)),
            Certificate(name="server", authority=AUTHORITY, common_name="server"),
            BasicAuth(name="login"),
            RsaKey(name="signing-key", bits=2048),
            RsaKey(name="ssh-key", bits=2048, for_ssh=True),
            StaticTokens(name="tokens", users=[TokenUser("csi", "csi")]),
        ]

    def secrets_manager(self, ctx, control_plane):
        namespace = control_plane.metadata.namespace
        return SecretsManager(ctx.client, namespace, "provider-test-controlplane", ctx.clock)


class Shoot:
    """A shoot that an extension on Go's library has served until now."""

    def __init__(self, seed, kubeconfig, capabilities):
        self.seed = seed
        self.client = seed.client
        self.namespace = seed.namespace
        self.kubeconfig = kubeconfig
        self.capabilities = capabilities
        self.worker = seed.of(Worker, "worker")
        self.control_plane = seed.of(ControlPlane, "x")

    def prepare(self):
        """Create the objects that gardenlet creates."""
        where = {"namespace": self.namespace}
        texts = {"cloud_config": "eA=="}
        for name in ("cloudprovider", "user-data"):
            meta = {**where, "name": name}
            self.client.create(SECRETS, {"metadata": meta, "data": texts})
        spec = {"type": self.namespace, "region": "eu-1", "secretRef": {**where, **CLOUD}}
        for kind, plural, name, more in (
            ("ControlPlane", "controlplanes", "x", {}),
            ("Worker", "workers", "worker", {"pools": forms.pools()}),
        ):
            finalizer = f"extensions.gardener.cloud/{kind.lower()}"
            meta = {**where, "name": name}
            ready_object(self.client, kind, plural, finalizer, meta, {**spec, **more})

    def see(self, phase, *, removed):
        manifest = forms.cluster(
            self.namespace, phase, capabilities=self.capabilities, removed=removed
        )
        self.seed.update_cluster(manifest)

    def run_former(self, *actions):
        """Let the Go extension reconcile once."""
        for action in actions or ("controlplane", "worker"):
            given = {"namespace": self.namespace, "caBundle": "eA=="}
            run_library(self.kubeconfig, action, **given)

    def run_ours(self, start):
        """Let our extension reconcile once."""
        for actuator, obj in ((LocalWorker(), self.worker), (Provider(), self.control_plane)):
            manager = start(actuator)
            obj.ask("reconcile")
            eventually(lambda obj=obj: ready(obj))
            manager.stop()

    def _all(self, resource, label="", **parts):
        found = self.client.list(resource, self.namespace, label_selector=label)
        return {
            obj["metadata"]["name"]: (
                obj["metadata"]["uid"],
                *(path(obj) for path in parts.values()),
            )
            for obj in found
        }

    def is_applied(self):
        """Whether the simulated resource managers have applied all ManagedResources as they are."""
        return all(
            obj.get("status", {}).get("observedGeneration") == obj["metadata"]["generation"]
            for obj in self.client.list(MANAGED_RESOURCES, self.namespace)
        )

    def snapshot(self):
        """The objects that stay, by the name of their state."""
        eventually(self.is_applied)
        data = {"data": lambda item: item.get("data")}
        template = {"template": lambda item: item["spec"]["template"]}
        names = ",".join([AUTHORITY, f"{AUTHORITY}-bundle"])
        managed = self._all(MANAGED_RESOURCES, f=lambda item: item["metadata"].get("finalizers"))
        worker = self.worker.status()
        of_class = ("provider", "providerSpec", "nodeTemplate", "secretRef", "credentialsSecretRef")
        classes = {"parts": lambda item: [item.get(part) for part in of_class]}
        purpose = "gardener.cloud/purpose=machineclass"
        states = (
            [item.get()["metadata"]["finalizers"] for item in (self.worker, self.control_plane)],
            self._all(SECRETS, f"name in ({names})", **data),
            self._all(SECRETS, "name in (login,signing-key,ssh-key,tokens)", **data),
            None,
            self._all(SECRETS, "resources.gardener.cloud/purpose=token-requestor", **data),
            (managed, self._all(CONFIG_MAPS, "!x")),
            None,
            None,
            None,
            [
                self._all(MACHINE_DEPLOYMENTS, n=replicas, **template),
                # The simulated controller keeps empty ones of former classes.
                {k: v for k, v in self._all(MACHINE_SETS, n=replicas, **template).items() if v[1]},
                self._all(MACHINES, c=lambda item: item["spec"]["class"]),
            ],
            (self._all(MACHINE_CLASSES, **classes), self._all(SECRETS, purpose, **data)),
            worker["providerStatus"],
            worker["inPlaceUpdates"],
        )
        return dict(zip(forms.STATES, states, strict=False))


def replicas(one):
    """The number of machines that a deployment or set has to have."""
    return one["spec"].get("replicas", 0)


def same(after, before):
    """The states that differ."""
    return [state for state in before if after[state] != before[state]]


def ready(obj):
    """Whether our manager has reconciled it; fails with its error."""
    status = obj.status()
    assert "lastError" not in status, status["lastError"]
    return obj.is_ready()


@pytest.fixture
def served(admin, environment, seed, namespace):
    """The controllers of a seed, which serve this shoot."""
    install(environment, [ManagedResource])
    install_crds(admin, [crd(cls) for cls in MACHINE_KINDS])
    shoot = OneShoot(admin, namespace)
    with (
        polling(ResourceManager(shoot).poll, "seed-manager"),
        polling(ResourceManager(shoot, "").poll, "shoot-manager"),
        polling(MachineController(admin, namespace).poll, "machines"),
    ):
        yield


@pytest.mark.parametrize(
    ("phases", "capabilities"), list(zip(forms.ROTATIONS, [False, True, True], strict=True))
)
def test_a_take_over_and_the_way_back_change_nothing(
    seed, served, start, kubeconfig, phases, capabilities
):
    shoot = Shoot(seed, kubeconfig, capabilities)
    shoot.see("", removed=False)
    shoot.prepare()
    *earlier, last = forms.ROTATIONS[phases]
    for phase in earlier:
        shoot.see(phase, removed=False)
        shoot.run_former("controlplane")
    shoot.see(last, removed=False)
    shoot.run_former()
    shoot.see(last, removed=True)
    before = shoot.snapshot()
    assert {state for state, part in before.items() if not part} <= forms.ELSEWHERE
    shoot.run_ours(start)
    assert same(shoot.snapshot(), before) == []
    shoot.run_former()
    assert same(shoot.snapshot(), before) == []


def test_go_continues_with_objects_of_this_framework(seed, served, start, kubeconfig):
    shoot = Shoot(seed, kubeconfig, capabilities=True)
    shoot.see("", removed=False)
    shoot.prepare()
    shoot.run_ours(start)
    before = shoot.snapshot()
    shoot.run_former()
    after = shoot.snapshot()
    assert set(same(after, before)) == forms.ONE_WAY & before.keys(), "as the table says"
    authorities = after[forms.STATES[1]]
    ours = {name for name in before[forms.STATES[1]] if "-bundle-" not in name}
    assert all(authorities[name] == before[forms.STATES[1]][name] for name in ours)
    [bundle] = [parts[1] for name, parts in authorities.items() if "-bundle-" in name]
    trusted = base64.b64decode(bundle["bundle.crt"])
    [known] = [base64.b64decode(authorities[name][1]["ca.crt"]) for name in ours]
    assert known in trusted, "Go trusts it beside its own"
    assert trusted.count(b"BEGIN CERT") == 2


def test_go_refuses_records_of_flow(seed, served, kubeconfig):
    shoot = Shoot(seed, kubeconfig, capabilities=False)
    shoot.see("", removed=False)
    shoot.prepare()
    record = {"name": "network", "type": "vpc", "id": "1"}
    status = {"apiVersion": forms.LOCAL, "kind": "WorkerStatus", "resources": [record]}
    shoot.worker.patch({"status": {"providerStatus": status}}, subresource="status")
    with pytest.raises(AssertionError, match='unknown field "resources"'):
        shoot.run_former("worker")


def test_webhook_configurations_are_continued_in_both_directions(admin, namespace, kubeconfig):
    def found():
        name = f"gardener-extension-{namespace}"
        return [admin.get(resource, name) for resource in (MUTATING, VALIDATING)]

    def parts():
        return [(obj["metadata"]["uid"], obj["webhooks"]) for obj in found()]

    given = {"namespace": namespace, "caBundle": "eA=="}
    run_library(kubeconfig, "webhooks", **given)
    before = parts()
    of_namespace: dict[str, Any] = {
        "failure_policy": "Ignore",
        "namespace_labels": {"shoot": namespace},
    }
    mine = [mutates(Deployment, name="change", **of_namespace)(lambda _: None)]
    mine += [validates(Deployment, name="other", **of_namespace)(lambda _: None)]
    endpoint = Endpoint(mode=Mode.SERVICE, name=namespace, namespace=namespace, port=443)
    for resource, wanted in configurations(mine, endpoint, b"y"):
        publish(admin, resource, wanted)
    assert [uid for uid, _ in parts()] == [uid for uid, _ in before]
    names = [[webhook["name"].partition(".")[0] for webhook in webhooks] for _, webhooks in parts()]
    assert names == [["change"], ["other"]], "no entry of the former extension is left"
    run_library(kubeconfig, "webhooks", **given)
    assert parts() == before
    for obj, resource in zip(found(), (MUTATING, VALIDATING), strict=True):
        admin.delete(resource, obj["metadata"]["name"])


def test_other_managed_resources_are_continued_in_both_directions(
    admin, environment, namespace, kubeconfig
):
    def state():
        found = admin.list(MANAGED_RESOURCES, namespace)
        return {
            obj["metadata"]["name"]: (obj["metadata"]["uid"], obj["spec"].get("class"))
            for obj in found
        }

    install(environment, [ManagedResource])
    run_library(kubeconfig, "managedresources", namespace=namespace)
    before = state()
    of_seed = admin.get(MANAGED_RESOURCES, "other-seed", namespace)
    with pytest.raises(ActuatorError, match="set the label to hand it over"):
        deploy_for_seed(admin, "other-seed", namespace, [], origin="provider-test")
    assert admin.get(MANAGED_RESOURCES, "other-seed", namespace) == of_seed
    labels = {"metadata": {"labels": {"origin": "provider-test"}}}
    admin.patch(MANAGED_RESOURCES, "other-seed", namespace, labels)
    deploy_for_seed(admin, "other-seed", namespace, [], origin="provider-test")
    deploy_for_shoot(admin, "other-shoot", namespace, [], origin="provider-test")
    assert state() == before
    run_library(kubeconfig, "managedresources", namespace=namespace)
    assert state() == before
