"""Configurations for a SecretsManager, phases of a rotation, and a look at the issued Secrets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from cryptography import x509

from actuator.codec import decode
from actuator.interface import Client, Resource
from actuator.v1alpha1 import Cluster
from generic.library.secrets import (
    Authority,
    Certificate,
    Issued,
    SecretRotation,
    Usage,
    rotation_of,
)

SECRETS = Resource("v1", "secrets")
CA = Authority(name="ca-provider")
SERVER = Certificate(name="server", authority="ca-provider", common_name="s", dns_names=["s"])
CLIENT = Certificate(name="client", authority="ca-provider", common_name="c", usage=Usage.CLIENT)
CONFIGS: list[Authority | Certificate] = [CA, SERVER, CLIENT]
ASKED = datetime(2026, 3, 1, tzinfo=UTC)


def in_phase(phase: str) -> SecretRotation:
    told = {"phase": phase, "lastInitiationTime": f"{ASKED:%FT%TZ}"}
    status = {"credentials": {"rotation": {"certificateAuthorities": told}}}
    return rotation_of(decode(Cluster, {"spec": {"shoot": {"status": status}}}))


PREPARING = in_phase("Preparing")
COMPLETING = in_phase("Completing")


class Clock:
    """A time of day that a test moves forward."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()


def secret_names(client: Client, namespace: str) -> list[str]:
    return sorted(secret["metadata"]["name"] for secret in client.list(SECRETS, namespace))


def names_of(issued: Mapping[str, Issued]) -> list[str]:
    names = {item.bundle_secret_name for item in issued.values()} - {""}
    return sorted({item.secret_name for item in issued.values()} | names)


def loaded(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def is_signed_by(issued: Issued, authority: bytes) -> bool:
    try:
        loaded(issued["tls.crt"]).verify_directly_issued_by(loaded(authority))
    except Exception:
        return False
    return True


def leave_as_go_does(admin: Client, namespace: str, issued: Issued, name: str) -> str:
    """The same key pair in a Secret as Gardener's secrets manager makes it; returns its name."""
    made = admin.get(SECRETS, issued.secret_name, namespace)
    admin.delete(SECRETS, issued.secret_name, namespace)
    labels = {**made["metadata"]["labels"], "checksum-of-config": "12345678901234567890"}
    secret_name = f"{name}-0a1b2c3d"
    meta = {"name": secret_name, "namespace": namespace, "labels": labels}
    admin.create(SECRETS, {**made, "metadata": meta})
    return secret_name
