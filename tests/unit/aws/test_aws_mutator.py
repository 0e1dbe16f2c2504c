"""Changes for AWS in components of Gardener: no other field changes, and a repeat changes none."""

from __future__ import annotations

import base64
from typing import Any

import attrs
import pytest
import yaml

from actuator import ProviderConfig
from actuator.codec import decode, encode
from actuator.v1alpha1 import OperatingSystemConfig
from extensions.aws.webhooks import AwsMutator
from extensions.networkfilter.config import FilterConfig
from extensions.networkfilter.webhooks import PATH, add_filter
from generic.library.webhooks import AdmissionRequest, Webhook
from generic.library.webhooks.controlplane import KERNEL_SETTINGS, KUBELET_CONFIG, OF_NODES
from generic.library.webhooks.objects import Deployment, VerticalPodAutoscaler

UNIT = "[Service]\nExecStart=/opt/bin/kubelet \\\n    --v=2\n"
BLOCKED: dict[str, Any] = {
    "apiVersion": "networkfilter.extensions.gardener.cloud/v1alpha1",
    "kind": "FilterConfig",
    "blocked": ["203.0.113.0/24"],
}


class Shoot:
    """Answers with the Cluster of a shoot."""

    def get(self, *_: Any) -> dict[str, Any]:
        extensions = [{"type": "networking-filter", "providerConfig": BLOCKED}]
        spec = {"kubernetes": {"version": "1.33.0"}, "extensions": extensions}
        return {"metadata": {"name": "shoot--a--b", "uid": "u"}, "spec": {"shoot": {"spec": spec}}}


def deployment(name: str, *flags: str) -> Deployment:
    pod = {"containers": [{"name": name, "command": [f"/{name}", *flags]}]}
    spec = {"template": {"spec": pod}}
    return decode(Deployment, {"metadata": {"name": name}, "spec": spec})


def autoscaler() -> VerticalPodAutoscaler:
    meta = {"name": "machine-controller-manager-vpa"}
    return decode(VerticalPodAutoscaler, {"metadata": meta, "spec": {"targetRef": {}}})


def node() -> OperatingSystemConfig:
    texts = {
        KUBELET_CONFIG: "maxPods: 110\n",
        KERNEL_SETTINGS: "a = 1\nnet.ipv4.neigh.default.gc_thresh1 = 5\n",
    }
    files = [
        {"path": path, "content": {"inline": {"encoding": "b64", "data": encoded(text)}}}
        for path, text in texts.items()
    ]
    units = [{"name": "kubelet.service", "content": UNIT}]
    spec = {"type": "t", "purpose": "reconcile", "files": files, "units": units}
    return decode(OperatingSystemConfig, {"metadata": {"name": "osc"}, "spec": spec})


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def hook(cls: type) -> Webhook:
    return next(webhook for webhook in AwsMutator().webhooks() if cls in webhook.kinds)


def changed(webhook: Webhook, obj: Any) -> Any:
    """The object after the webhook, which changes nothing the second time."""
    where: dict[str, Any] = {"namespace": "shoot--a--b", "client": Shoot()}
    request = AdmissionRequest(operation="CREATE", new=obj, old=None, **where)
    webhook.handle(request)
    once = encode(request.new)
    webhook.handle(request)
    assert encode(request.new) == once
    return request.new


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("kube-apiserver", ["--cloud-provider=aws", "--v=2", "--cloud-config=x"], ["--v=2"]),
        (
            "kube-controller-manager",
            [
                "--cloud-provider=aws",
                "--cloud-config=x",
                "--v=2",
                "--external-cloud-volume-plugin=a",
            ],
            ["--cloud-provider=external", "--v=2"],
        ),
    ],
)
def test_components_leave_the_cloud_to_its_controller(name, before, after):
    container = changed(hook(Deployment), deployment(name, *before)).pod.containers[0]
    assert container.command[1:] == after


def test_the_machine_controller_runs_beside_the_manager():
    pod = changed(hook(Deployment), deployment("machine-controller-manager")).pod
    sidecar = pod.container("machine-controller-manager-provider-aws")
    assert sidecar.args == [
        "--control-kubeconfig=inClusterConfig",
        "--kube-api-qps=100",
        "--kube-api-burst=200",
        "--machine-creation-timeout=20m",
        "--machine-drain-timeout=2h",
        "--machine-health-timeout=10m",
        "--machine-safety-apiserver-statuscheck-timeout=30s",
        "--machine-safety-apiserver-statuscheck-period=1m",
        "--machine-safety-orphan-vms-period=30m",
        "--namespace=shoot--a--b",
        "--port=10259",
        "--target-kubeconfig=/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig",
        "--v=3",
    ]
    spec = changed(hook(VerticalPodAutoscaler), autoscaler()).spec
    policy = {"containerName": sidecar.name, "controlledValues": "RequestsOnly"}
    assert encode(spec)["resourcePolicy"] == {"containerPolicies": [policy]}


def test_nodes_have_the_settings_of_aws():
    spec = changed(hook(OperatingSystemConfig), node()).spec
    config, settings = (base64.b64decode(file.content.inline.data).decode() for file in spec.files)
    assert yaml.safe_load(config) == {"maxPods": 110, "enableControllerAttachDetach": True}
    assert settings == "a = 1\nnet.ipv4.neigh.default.gc_thresh1 = 0\n"
    assert "    --cloud-provider=external\nExecStartPre=" in spec.units[0].content


def test_nodes_have_the_blocked_ranges_once():
    files = changed(add_filter, node()).spec.files
    assert [file.path for file in files] == [KUBELET_CONFIG, KERNEL_SETTINGS, PATH]
    assert files[-1].content.inline.data == encoded("203.0.113.0/24\n")
    assert dict(add_filter.conditions) == OF_NODES


@attrs.frozen(kw_only=True)
class OldFilter(ProviderConfig):
    api_version: str = "networkfilter.extensions.gardener.cloud/v1alpha0"
    kind: str = "FilterConfig"
    denied: str


def test_nodes_have_the_ranges_of_a_configuration_of_an_older_version(monkeypatch):
    def convert(old: OldFilter) -> FilterConfig:
        return FilterConfig(blocked=[old.denied])

    monkeypatch.setattr(FilterConfig, "versions", {OldFilter: convert})
    monkeypatch.setitem(BLOCKED, "apiVersion", attrs.fields(OldFilter).api_version.default)
    monkeypatch.setitem(BLOCKED, "denied", BLOCKED["blocked"][0])
    monkeypatch.delitem(BLOCKED, "blocked")
    *_, added = changed(add_filter, node()).spec.files
    assert added.content.inline.data == encoded("203.0.113.0/24\n")
