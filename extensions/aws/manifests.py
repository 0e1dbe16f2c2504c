"""Manifests that gardenlet creates in a seed for a shoot on AWS: Secrets and extension objects.

Names follow Gardener's: a BackupEntry is `<technical id>--<uid>`. A real seed has one bucket for
all of its shoots; here each shoot has its own, with its name, so that a rehearsal shows its owner.
Its Secret is in a namespace that outlives the shoot's, as Gardener's is in namespace `garden`.
"""

from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from actuator import v1alpha1
from actuator.meta import Base64, Object, Raw
from extensions.aws.account import ACCESS_KEY_ID, CLOUD_PROVIDER, SECRET_ACCESS_KEY
from extensions.aws.cloud import Credentials
from extensions.aws.config import API_VERSION
from generic.library.manifests import manifest, manifest_of
from generic.testing.rehearsal import RehearsedShoot

_AMI = "ami-12c6146b"
"""An AMI that the simulator knows."""

_USER_DATA = "gardener-node-agent-pool"


def entry_name(shoot: RehearsedShoot) -> str:
    """Return the name of the shoot's BackupEntry."""
    return f"{shoot.technical_id}--{uuid5(NAMESPACE_DNS, shoot.technical_id)}"


def access(shoot: RehearsedShoot, credentials: Credentials, namespace: str = "") -> Raw:
    """Return the Secret with the shoot's credentials, by default in the shoot's namespace."""
    keys = {
        ACCESS_KEY_ID: credentials.access_key_id,
        SECRET_ACCESS_KEY: credentials.secret_access_key,
    }
    return _secret(shoot, CLOUD_PROVIDER, keys, namespace)


def backup(shoot: RehearsedShoot, region: str, credentials: Credentials) -> list[Raw]:
    """Namespace, Secret, BackupBucket, BackupEntry."""
    namespace = f"backup-{shoot.technical_id}"
    reference = {"name": CLOUD_PROVIDER, "namespace": namespace}
    bucket = _object(v1alpha1.BackupBucket, shoot, region, secretRef=reference)
    name = bucket["metadata"]["name"]
    entry = _object(v1alpha1.BackupEntry, shoot, region, secretRef=reference, bucketName=name)
    entry["metadata"]["name"] = entry_name(shoot)
    secret = access(shoot, credentials, namespace)
    return [manifest("v1", "Namespace", namespace, labels=shoot.labels), secret, bucket, entry]


def infrastructure(shoot: RehearsedShoot, region: str) -> Raw:
    """Return an Infrastructure: a network with one zone."""
    zone = {
        "name": f"{region}a",
        "workers": "10.250.0.0/19",
        "public": "10.250.32.0/20",
        "internal": "10.250.48.0/20",
    }
    networks = {"vpc": {"cidr": "10.250.0.0/16"}, "zones": [zone]}
    config = _config("InfrastructureConfig", networks=networks)
    return _object(v1alpha1.Infrastructure, shoot, region, providerConfig=config)


def control_plane(shoot: RehearsedShoot, region: str) -> Raw:
    """Return a ControlPlane with all defaults."""
    return _object(v1alpha1.ControlPlane, shoot, region)


def dns_record(shoot: RehearsedShoot, region: str, domain: str) -> Raw:
    """Return the DNSRecord of the shoot's API server; the address is one for documentation."""
    name = f"api.{shoot.technical_id}.{domain}"
    record = {"name": name, "recordType": "A", "values": ["192.0.2.1"]}
    return _object(v1alpha1.DNSRecord, shoot, region, **record)


def worker(shoot: RehearsedShoot, region: str) -> list[Raw]:
    """Secret, Worker: one pool with one machine."""
    pool = {
        "name": "pool",
        "machineType": "m5.large",
        "machineImage": {"name": "gardenlinux", "version": "1.0.0"},
        "minimum": 1,
        "maximum": 2,
        "maxSurge": 1,
        "maxUnavailable": 0,
        "nodeAgentSecretName": _USER_DATA,
        "userDataSecretRef": {"name": _USER_DATA, "key": "cloud_config"},
        "zones": [f"{region}a"],
        "providerConfig": _config("WorkerConfig", ami=_AMI),
    }
    return [
        _secret(shoot, _USER_DATA, {"cloud_config": "#!/bin/sh\n"}),
        _object(v1alpha1.Worker, shoot, region, pools=[pool]),
    ]


def bastion(shoot: RehearsedShoot) -> Raw:
    """Return a Bastion for a network for documentation."""
    spec = {
        "type": shoot.type,
        "userData": Base64.encode_bytes(b"#!/bin/sh\n"),
        "ingress": [{"ipBlock": {"cidr": "198.51.100.0/24"}}],
        "providerConfig": _config("BastionConfig", ami=_AMI),
    }
    name = shoot.technical_id
    return manifest_of(v1alpha1.Bastion, name, name, shoot.labels, spec=spec)


def _config(kind: str, **settings: Any) -> Raw:
    return {"apiVersion": API_VERSION, "kind": kind, **settings}


def _secret(shoot: RehearsedShoot, name: str, data: dict[str, str], namespace: str = "") -> Raw:
    encoded = {key: Base64.encode_bytes(value.encode()) for key, value in data.items()}
    namespace = namespace or shoot.technical_id
    return manifest("v1", "Secret", name, namespace, shoot.labels, data=encoded)


def _object(cls: type[Object], shoot: RehearsedShoot, region: str, **spec: Any) -> Raw:
    """Return an object of the shoot's name, with the shoot's credentials."""
    name = shoot.technical_id
    reference = {"name": CLOUD_PROVIDER, "namespace": name}
    spec = {"type": shoot.type, "region": region, "secretRef": reference, **spec}
    return manifest_of(cls, name, name, shoot.labels, spec=spec)
