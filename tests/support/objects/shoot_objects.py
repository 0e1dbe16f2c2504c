"""The objects of one shoot in its namespace: one of each kind, and those of other controllers."""

from __future__ import annotations

from collections.abc import Sequence

from actuator import v1alpha1
from actuator.errors import NotFound
from actuator.interface import Client, Resource
from actuator.meta import Object, Raw
from generic.testing.garden import SeedShoot

KINDS = list(v1alpha1.KINDS)
FOREIGN = "example.org/foreign"
SECRET: Raw = {"name": "cloudprovider", "namespace": "default"}
NEEDED: dict[str, Raw] = {
    "Bastion": {"userData": "aGk=", "ingress": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]},
    "BackupBucket": {"region": "eu-1", "secretRef": SECRET},
    "BackupEntry": {"region": "eu-1", "secretRef": SECRET},
    "Extension": {},
    "ContainerRuntime": {
        "binaryPath": "/bin",
        "workerPool": {"name": "pool", "selector": {"matchLabels": {"a": "b"}}},
    },
    "DNSRecord": {
        "name": "api.example.com",
        "recordType": "A",
        "values": ["192.0.2.1"],
        "secretRef": {"name": "cloudprovider"},
    },
    "Network": {"podCIDR": "100.96.0.0/11", "serviceCIDR": "100.64.0.0/13"},
    "OperatingSystemConfig": {"purpose": "provision"},
    "SelfHostedShootExposure": {
        "port": 443,
        "endpoints": [
            {
                "nodeName": "node",
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            }
        ],
    },
    "Worker": {"region": "eu-1", "secretRef": {"name": "cloudprovider"}, "pools": []},
}
OTHERWISE: Raw = {"region": "eu-1", "secretRef": {"name": "cloudprovider"}}


PATIENT = 240.0
"""Seconds for a shoot to come or go: its namespace alone takes a hundred requests."""


def manifests(shoot: SeedShoot, kinds: Sequence[type[Object]] = KINDS) -> list[Raw]:
    """One object of each kind, and the Secret that they name."""
    name = shoot.technical_id
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta(name, "cloudprovider")}
    found: list[Raw] = [secret]
    for cls in kinds:
        kind = cls.KIND
        where = meta(name if kind.namespaced else "", name)
        spec = {"type": name, **NEEDED.get(kind.name, OTHERWISE)}
        if kind.name == "BackupEntry":
            spec["bucketName"] = name
        manifest = {"apiVersion": kind.api_version, "kind": kind.name, "spec": spec}
        found.append({**manifest, "metadata": {**where, "labels": shoot.labels}})
    return found


def meta(namespace: str, name: str) -> Raw:
    """Without a namespace for an object that has none."""
    return {"name": name, **({"namespace": namespace} if namespace else {})}


def held(kind: str, shoot: SeedShoot, spec: Raw, name: str = "", holder: str = FOREIGN) -> Raw:
    """An object of another controller, with its finalizer."""
    where = meta(shoot.technical_id, name or kind.lower())
    where |= {"finalizers": [holder], "labels": {"name": "machinedeployment"}}
    group = "resources.gardener.cloud" if kind == "ManagedResource" else "machine.sapcloud.io"
    return {"apiVersion": f"{group}/v1alpha1", "kind": kind, "metadata": where, "spec": spec}


def is_gone(client: Client, resource: Resource, name: str, namespace: str = "") -> bool:
    try:
        client.get(resource, name, namespace)
    except NotFound:
        return True
    return False
