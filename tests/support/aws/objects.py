"""Arguments for calls of the AWS sample in its tests."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import attrs

from actuator import Resource, SeedObjects
from actuator.cluster import Cluster
from actuator.codec import decode, encode
from actuator.interface import Client
from actuator.meta import Base64, Raw
from actuator.v1alpha1 import (
    BackupBucket,
    BackupEntry,
    Bastion,
    ControlPlane,
    DNSRecord,
    Infrastructure,
    Worker,
)
from extensions.aws.cloud import Credentials
from extensions.aws.config import API_VERSION
from generic.kube.clock import SystemClock
from generic.reconciler.stripping import delete_seed_objects
from tests.support.objects.stand_ins import StandIn

LOG = logging.LoggerAdapter(logging.getLogger("tests.aws"))
REGION = "eu-west-1"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9Zr9bDg0FJ0rKmGHzSgNqkNN0+q2L5hUOxCwBPpzSk a"
RESOURCES = [
    "DHCPOptions",
    "EIP",
    "InstanceProfile",
    "InternetGateway",
    "KeyPair",
    "NatGateway",
    "Role",
    *["RouteTable"] * 2,
    "SecurityGroup",
    *["Subnet"] * 3,
    "VPC",
]
"""The types of the resources of a network in one zone, sorted."""
NETWORKS: Raw = {
    "vpc": {"cidr": "10.250.0.0/16"},
    "zones": [
        {
            "name": "eu-west-1a",
            "workers": "10.250.0.0/19",
            "public": "10.250.32.0/20",
            "internal": "10.250.48.0/20",
        }
    ],
}


def provider_config(networks: Raw = NETWORKS) -> Raw:
    return {"apiVersion": API_VERSION, "kind": "InfrastructureConfig", "networks": networks}


def infrastructure(namespace: str, **spec: Any) -> Infrastructure:
    key = Base64.encode_bytes(PUBLIC_KEY.encode())
    given = {"providerConfig": provider_config(), "sshPublicKey": key} | spec
    return decode(Infrastructure, _object("Infrastructure", namespace, given))


def control_plane(namespace: str, **spec: Any) -> ControlPlane:
    return decode(ControlPlane, _object("ControlPlane", namespace, spec))


def dns_record(namespace: str, **spec: Any) -> DNSRecord:
    given = {"name": f"api.{namespace}.test", "recordType": "A", "values": ["192.0.2.1"]} | spec
    return decode(DNSRecord, _object("DNSRecord", namespace, given))


def bastion(namespace: str, *cidrs: str, **spec: Any) -> Bastion:
    ingress = [{"ipBlock": {"cidr": cidr}} for cidr in cidrs or ("198.51.100.0/24",)]
    given = {"userData": "IyEvYmluL3NoCg==", "ingress": ingress} | spec
    return decode(Bastion, _object("Bastion", namespace, given))


def worker(namespace: str, *pools: Raw, **spec: Any) -> Worker:
    return decode(Worker, _object("Worker", namespace, {"pools": list(pools)} | spec))


def backup_bucket(namespace: str, **spec: Any) -> BackupBucket:
    """Cluster-scoped; its Secret is in the namespace, its name is the namespace's."""
    return decode(BackupBucket, _object("BackupBucket", namespace, spec, name=namespace))


def backup_entry(namespace: str, name: str, **spec: Any) -> BackupEntry:
    given = {"bucketName": namespace} | spec
    return decode(BackupEntry, _object("BackupEntry", namespace, given, name=name))


def secret(namespace: str, key: Credentials) -> Raw:
    data = {
        "accessKeyID": Base64.encode_bytes(key.access_key_id.encode()),
        "secretAccessKey": Base64.encode_bytes(key.secret_access_key.encode()),
    }
    meta = {"name": "cloudprovider", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}


def shoot_cluster(namespace: str, machine_images: list[Raw] | None = None) -> Cluster:
    """The Cluster of a shoot, with these machine images in its CloudProfile."""
    shoot = {
        "spec": {
            "region": REGION,
            "networking": {"pods": "100.96.0.0/11", "services": "100.64.0.0/13"},
        },
        "status": {"technicalID": namespace},
    }
    profile = {"spec": {"providerConfig": {"machineImages": machine_images or []}}}
    spec = {"shoot": shoot, "cloudProfile": profile}
    return decode(Cluster, {"metadata": {"name": namespace, "uid": "1"}, "spec": spec})


def _object(kind: str, namespace: str, spec: Raw, name: str = "") -> Raw:
    given: Raw = {"type": "aws", "region": REGION}
    given["secretRef"] = {"name": "cloudprovider", "namespace": namespace}
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": kind,
        "metadata": {"name": name} if name else {"name": "shoot", "namespace": namespace},
        "spec": given | spec,
    }


@attrs.define
class Call(StandIn):
    """The Context of one call: the real client; saved statuses are kept for the test."""

    client: Client
    namespace: str
    log: Any = LOG
    configurations: Any = None
    clock: Any = attrs.field(factory=SystemClock)
    deadline: float = float("inf")
    saved: list[Raw] = attrs.field(factory=list)
    stripped: list[str] = attrs.field(factory=list)
    on_check: Callable[[], None] = lambda: None
    on_save: Callable[[Raw], None] = lambda status: None

    @property
    def config(self) -> Any:
        return self.configurations.get()

    def pool_config(self, index: int) -> Any:
        return self.configurations.get(index)

    def check(self) -> None:
        self.on_check()

    def remaining(self) -> float:
        return self.deadline - self.clock.monotonic()

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        self.log.info("%s: %s", reason, message)

    def save(self, obj: Any) -> None:
        status = encode(obj.status)
        self.saved.append(status)
        self.on_save(status)

    def secret(self, name: str, namespace: str) -> Raw:
        return self.client.get(Resource("v1", "secrets"), name, namespace)

    def delete_seed_objects(self, groups: Any) -> None:
        wanted: list[SeedObjects] = list(groups)
        delete_seed_objects(
            self.client, self.namespace, wanted, lambda item: self.stripped.append(item.finalizer)
        )
