"""The least object of each kind that its CRD accepts, for tests of the Gardener contract."""

from __future__ import annotations

from typing import Any

from actuator.meta import Object, Raw
from actuator.v1alpha1 import (
    BackupBucket,
    BackupEntry,
    Bastion,
    ContainerRuntime,
    ControlPlane,
    DNSRecord,
    Infrastructure,
    Network,
    OperatingSystemConfig,
    SelfHostedShootExposure,
    Worker,
)

_REGIONAL: Raw = {"region": "eu-1"}
_REQUIRED: dict[type[Object], Raw] = {
    BackupBucket: _REGIONAL,
    BackupEntry: {**_REGIONAL, "bucketName": "bucket"},
    Bastion: {"userData": "IyEK", "ingress": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]},
    ContainerRuntime: {"binaryPath": "/bin", "workerPool": {"name": "p", "selector": {}}},
    ControlPlane: _REGIONAL,
    DNSRecord: {"name": "a.example.org", "recordType": "A", "values": ["10.0.0.1"]},
    Infrastructure: _REGIONAL,
    Network: {"podCIDR": "10.1.0.0/16", "serviceCIDR": "10.2.0.0/16"},
    OperatingSystemConfig: {"purpose": "provision"},
    SelfHostedShootExposure: {"port": 443, "endpoints": []},
    Worker: {**_REGIONAL, "pools": []},
}
_WITH_SECRET = (BackupBucket, BackupEntry, ControlPlane, DNSRecord, Infrastructure, Worker)


def manifest(
    cls: type[Object], namespace: str, name: str = "infra", *, type: str = "", **more: Any
) -> Raw:
    """An object of `cls`; `annotations` and fields of the spec as wanted.

    Its type is the namespace's name, which managers in tests serve.
    """
    kind = cls.KIND
    meta: Raw = {"name": name, "annotations": more.pop("annotations", {})}
    if kind.namespaced:
        meta["namespace"] = namespace
    spec: Raw = {"type": type or namespace, **_REQUIRED.get(cls, {})}
    if cls in _WITH_SECRET:
        spec["secretRef"] = {"name": "cloudprovider", "namespace": namespace}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": meta,
        "spec": {**spec, **more},
    }


def secret(namespace: str, name: str = "cloudprovider") -> Raw:
    """A Secret with credentials of no value."""
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"key": "eA=="}}
