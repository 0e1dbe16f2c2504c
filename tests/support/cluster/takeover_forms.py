"""The forms in which an extension on Gardener's Go library leaves its state. Pure.

`STATES` names each of them as the table in `docs/take-over.md` does; a snapshot has a part for
each state that stays.
"""

from __future__ import annotations

from typing import Any

from actuator.meta import Raw
from tests.support.objects import builders

__all__ = ["ELSEWHERE", "ONE_WAY", "REPLACED", "ROTATIONS", "STATES", "cluster", "pools"]

LOCAL = "local.provider.extensions.gardener.cloud/v1alpha1"
STATES = (
    "Finalizers, `lastOperation`",
    "Certificate authority, also during a rotation, and its bundle",
    "Password, RSA key, static tokens",
    "Server or client certificate",
    "Request for a token `shoot-access-…`",
    "ManagedResources `extension-controlplane-…`, and the objects they deploy",
    "Secrets of ManagedResources",
    "Other ManagedResources of the shoot, with the same label `origin`",
    "Other ManagedResources of the seed",
    "MachineDeployment, MachineSet, Machine",
    "MachineClass and its Secret",
    "WorkerStatus, with architecture or capabilities, also of a removed image",
    "Hash of pools that are updated in place",
    "Webhook configurations",
    "Secrets of the webhook server, `ca-…-webhook` and `…-webhook-server`",
    "Unit and configuration of the kubelet",
    "Flow state of an Infrastructure in `status.state`",
    "Terraform state of an Infrastructure in `status.state`",
    "`status.providerStatus` of an Infrastructure",
)
ELSEWHERE = {STATES[index] for index in (3, 6, 7, 8, 16, 17, 18)}
"""States missing in the snapshot of a shoot: replaced, or of another test."""
REPLACED = {STATES[index] for index in (3, 6)}
"""States that both sides create anew: nothing outside the seed depends on them."""
ONE_WAY = {STATES[index] for index in (1, 2, 17)}
"""States that Go replaces, or cannot read, if this framework created them."""

ROTATIONS: dict[str, list[str]] = {
    "no rotation": [""],
    "preparing": ["", "Preparing"],
    "completed": ["", "Preparing", "Completing"],
}
"""The phases that the former extension saw, one after the other."""
_TIME = "2026-03-01T00:00:00Z"
_IMAGES = {"plain": "1.0.0", "full": "2.0.0+build.1", "inplace": "3.0.0"}
REMOVED = "2.0.0+build.1"


def pools() -> list[Raw]:
    """One pool without options, one with all, and one that is updated in place."""
    every = {
        "labels": {"example.org/a": "1"},
        "annotations": {"example.org/b": "2"},
        "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
        "zones": ["a", "b"],
        "maxSurge": "25%",
        "maxUnavailable": 1,
        "minimum": 2,
        "maximum": 3,
        "clusterAutoscaler": {"scaleDownUnneededTime": "1h0m0s", "maxNodeProvisionTime": "20m0s"},
        "machineControllerManager": {
            "machineDrainTimeout": "1h30m0s",
            "machineHealthTimeout": "10m0s",
            "machineCreationTimeout": "20m0s",
            "maxEvictRetries": 5,
            "nodeConditions": ["ReadonlyFilesystem", "DiskPressure"],
        },
        "priority": 7,
    }
    in_place = {
        "updateStrategy": "AutoInPlaceUpdate",
        "kubernetesVersion": "1.33.2",
        "kubeletConfig": {"kubeReserved": {"cpu": "80m", "memory": "1Gi"}},
    }
    options: dict[str, Raw] = {"plain": {}, "full": every, "inplace": in_place}
    return [_pool(name, **options[name]) for name in _IMAGES]


def _pool(name: str, **more: Any) -> Raw:
    return {
        "name": name,
        "machineType": "small",
        "machineImage": {"name": "linux", "version": _IMAGES[name]},
        "architecture": "amd64",
        "minimum": 1,
        "maximum": 1,
        "maxSurge": 1,
        "maxUnavailable": 0,
        "nodeAgentSecretName": f"node-agent-{name}",
        "nodeTemplate": {"capacity": {"cpu": "2", "memory": "8Gi"}},
        "userDataSecretRef": {"name": "user-data", "key": "cloud_config"},
        "zones": ["a"],
        **more,
    }


def cluster(namespace: str, phase: str, *, capabilities: bool, removed: bool) -> Raw:
    """The Cluster; `removed`: the CloudProfile has lost an image that a pool uses."""
    rotation = {"phase": phase, "lastInitiationTime": _TIME}
    status: Raw = {"technicalID": namespace}
    if phase:
        status["credentials"] = {"rotation": {"certificateAuthorities": rotation}}
    shoot = {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": "shoot", "namespace": "garden-tests"},
        "spec": {
            "kubernetes": {"version": "1.33.2"},
            "networking": {"type": "calico"},
            "provider": {"type": "local", "workers": []},
            "region": "eu-1",
        },
        "status": status,
    }
    profile = _profile(capabilities=capabilities, removed=removed)
    return builders.cluster(namespace, shoot=shoot, cloudProfile=profile)


def _profile(*, capabilities: bool, removed: bool) -> Raw:
    versions = [image for image in _IMAGES.values() if not (removed and image == REMOVED)]
    flavors = [
        {"image": "linux:arm64", "capabilities": {"architecture": ["arm64"]}},
        {"image": "linux:amd64", "capabilities": {"architecture": ["amd64"], "boot": ["secure"]}},
    ]
    images = {"capabilityFlavors": flavors} if capabilities else {"image": "linux:any"}
    config = {
        "apiVersion": LOCAL,
        "kind": "CloudProfileConfig",
        "machineImages": [
            {"name": "linux", "versions": [{"version": version, **images} for version in versions]}
        ],
        "loadBalancer": {"image": "envoy"},
    }
    machine_type: Raw = {"name": "small", "cpu": "2", "memory": "8Gi", "gpu": "0"}
    spec: Raw = {"type": "local", "providerConfig": config, "machineTypes": [machine_type]}
    if capabilities:
        machine_type["capabilities"] = {"architecture": ["amd64"]}
        spec["machineCapabilities"] = [
            {"name": "architecture", "values": ["amd64", "arm64"]},
            {"name": "boot", "values": ["secure", "plain"]},
        ]
    head = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile"}
    return {**head, "metadata": {"name": "local"}, "spec": spec}
