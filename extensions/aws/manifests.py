"""Manifests that gardenlet creates in a seed for a shoot on AWS: Secrets and extension objects.

Names follow Gardener's: a BackupEntry is `<technical id>--<uid>`. A real seed has one bucket for
all of its shoots; here each shoot has its own, with its name, so that a rehearsal shows its owner.
Its Secret is in a namespace that outlives the shoot's, as Gardener's is in namespace `garden`.
"""

from uuid import NAMESPACE_DNS, uuid5

from actuator import v1alpha1
from actuator.meta import Base64, Object, Raw
from extensions.aws.config import API_VERSION
from extensions.aws.credentials import ACCESS_KEY_ID, CLOUD_PROVIDER, SECRET_ACCESS_KEY, Credentials
from generic.library.manifests import manifest, manifest_of
from generic.testing.rehearsal import RehearsedShoot

_AMI = "ami-12c6146b"
"""An AMI that the simulator knows."""

_USER_DATA = "gardener-node-agent-pool"


def entry_name(shoot: RehearsedShoot) -> str:
    """Return the name of the shoot's BackupEntry."""
    return f"{shoot.technical_id}--{uuid5(NAMESPACE_DNS, shoot.technical_id)}"


def access(shoot: RehearsedShoot, credentials: Credentials) -> Raw:
    """Return the Secret with the shoot's credentials."""
    return _secret(shoot, shoot.technical_id, CLOUD_PROVIDER, _keys(credentials))


def backup(shoot: RehearsedShoot, region: str, credentials: Credentials) -> list[Raw]:
    """Namespace, Secret, BackupBucket, BackupEntry."""
    namespace = f"backup-{shoot.technical_id}"
    spec = {
        "type": shoot.type,
        "region": region,
        "secretRef": {"name": CLOUD_PROVIDER, "namespace": namespace},
    }
    bucket = shoot.technical_id
    return [
        manifest("v1", "Namespace", namespace, labels=shoot.labels),
        _secret(shoot, namespace, CLOUD_PROVIDER, _keys(credentials)),
        _object(v1alpha1.BackupBucket, shoot, spec, name=bucket),
        _object(
            v1alpha1.BackupEntry, shoot, {**spec, "bucketName": bucket}, name=entry_name(shoot)
        ),
    ]


def infrastructure(shoot: RehearsedShoot, region: str) -> Raw:
    """Return an Infrastructure: a network with one zone."""
    networks = {
        "vpc": {"cidr": "10.250.0.0/16"},
        "zones": [
            {
                "name": f"{region}a",
                "workers": "10.250.0.0/19",
                "public": "10.250.32.0/20",
                "internal": "10.250.48.0/20",
            }
        ],
    }
    config = {"apiVersion": API_VERSION, "kind": "InfrastructureConfig", "networks": networks}
    return _object(
        v1alpha1.Infrastructure, shoot, {**_spec(shoot, region), "providerConfig": config}
    )


def control_plane(shoot: RehearsedShoot, region: str) -> Raw:
    """Return a ControlPlane with all defaults."""
    return _object(v1alpha1.ControlPlane, shoot, _spec(shoot, region))


def dns_record(shoot: RehearsedShoot, region: str, domain: str) -> Raw:
    """Return the DNSRecord of the shoot's API server; the address is one for documentation."""
    record = {
        "name": f"api.{shoot.technical_id}.{domain}",
        "recordType": "A",
        "values": ["192.0.2.1"],
    }
    return _object(v1alpha1.DNSRecord, shoot, {**_spec(shoot, region), **record})


def worker(shoot: RehearsedShoot, region: str) -> list[Raw]:
    """Secret, Worker: one pool with one machine."""
    config = {"apiVersion": API_VERSION, "kind": "WorkerConfig", "ami": _AMI}
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
        "providerConfig": config,
    }
    return [
        _secret(shoot, shoot.technical_id, _USER_DATA, {"cloud_config": "#!/bin/sh\n"}),
        _object(v1alpha1.Worker, shoot, {**_spec(shoot, region), "pools": [pool]}),
    ]


def bastion(shoot: RehearsedShoot) -> Raw:
    """Return a Bastion for a network for documentation."""
    config = {"apiVersion": API_VERSION, "kind": "BastionConfig", "ami": _AMI}
    spec = {
        "type": shoot.type,
        "userData": Base64.encode_bytes(b"#!/bin/sh\n"),
        "ingress": [{"ipBlock": {"cidr": "198.51.100.0/24"}}],
        "providerConfig": config,
    }
    return _object(v1alpha1.Bastion, shoot, spec)


def _spec(shoot: RehearsedShoot, region: str) -> Raw:
    return {
        "type": shoot.type,
        "region": region,
        "secretRef": {"name": CLOUD_PROVIDER, "namespace": shoot.technical_id},
    }


def _keys(credentials: Credentials) -> dict[str, str]:
    return {
        ACCESS_KEY_ID: credentials.access_key_id,
        SECRET_ACCESS_KEY: credentials.secret_access_key,
    }


def _secret(shoot: RehearsedShoot, namespace: str, name: str, data: dict[str, str]) -> Raw:
    encoded = {key: Base64.encode_bytes(value.encode()) for key, value in data.items()}
    return manifest("v1", "Secret", name, namespace, shoot.labels, data=encoded)


def _object(cls: type[Object], shoot: RehearsedShoot, spec: Raw, *, name: str = "") -> Raw:
    named = name or shoot.technical_id
    return manifest_of(cls, named, shoot.technical_id, shoot.labels, spec=spec)
