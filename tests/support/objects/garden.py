"""Objects of users of a real garden: all that lets them create Shoots, and Seeds that run none."""

from __future__ import annotations

from actuator import Resource
from actuator.meta import Raw
from generic.testing.envtest.binaries import kubernetes_version
from generic.testing.landscape.gardenobjects import CORE, GARDEN

SECRETS = Resource("v1", "secrets")
SEEDS = Resource(CORE, "seeds", namespaced=False)
VERSION = kubernetes_version().removeprefix("v")
PROFILE = {
    "machineImages": [
        {
            "name": "local-os",
            "versions": [{"version": "1.0.0", "cri": [{"name": "containerd"}]}],
        }
    ],
    "machineTypes": [{"name": "small", "cpu": "2", "gpu": "0", "memory": "8Gi"}],
    "regions": [{"name": "here", "zones": [{"name": "here-1"}]}],
}
REGISTERED = {
    "Infrastructure": "local",
    "ControlPlane": "local",
    "Worker": "local",
    "Network": "local-net",
    "OperatingSystemConfig": "local-os",
    "DNSRecord": "local-dns",
    "BackupBucket": "local",
}
"""Without them gardener-apiserver accepts no Seed and no Shoot."""


def registration() -> Raw:
    resources = [{"kind": kind, "type": type} for kind, type in REGISTERED.items()]
    return {
        "apiVersion": CORE,
        "kind": "ControllerRegistration",
        "metadata": {"name": "local"},
        "spec": {"resources": resources},
    }


def shoot(namespace: str = "garden-dev", **spec: object) -> Raw:
    worker = {
        "name": "pool",
        "machine": {"type": "small", "image": {"name": "local-os", "version": "1.0.0"}},
        "minimum": 1,
        "maximum": 2,
    }
    return {
        "apiVersion": CORE,
        "kind": "Shoot",
        "metadata": {"name": "mine", "namespace": namespace},
        "spec": {
            "credentialsBindingName": "account",
            "cloudProfile": {"kind": "CloudProfile", "name": "local"},
            "region": "here",
            "networking": {"type": "local-net", "nodes": "10.250.0.0/16"},
            "kubernetes": {"version": VERSION},
            "provider": {"type": "local", "workers": [worker]},
            **spec,
        },
    }


def seed(name: str) -> Raw:
    """A Seed that refers to the Secret `dns-NAME` in the namespace garden."""
    reference = {"apiVersion": "v1", "kind": "Secret", "name": f"dns-{name}", "namespace": GARDEN}
    dns = {"type": "local-dns", "credentialsRef": reference}
    return {
        "apiVersion": CORE,
        "kind": "Seed",
        "metadata": {"name": name},
        "spec": {
            "provider": {"type": "local", "region": "here"},
            "dns": {"provider": dns, "internal": {**dns, "domain": f"internal.{name}.invalid"}},
            "ingress": {"domain": f"ingress.{name}.invalid", "controller": {"kind": "nginx"}},
            "networks": {
                "nodes": "10.250.0.0/16",
                "pods": "10.1.0.0/16",
                "services": "10.2.0.0/22",
            },
        },
    }
