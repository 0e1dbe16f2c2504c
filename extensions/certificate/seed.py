"""The Issuers of a shoot in its namespace of the seed: all carry our label, and the finalizer of
their controller.
"""

from __future__ import annotations

from actuator import SeedObjects
from actuator.meta import Raw
from extensions.certificate.config import IssuerConfig
from extensions.certificate.issuers import ISSUERS, Issuer

GROUP = SeedObjects(
    ISSUERS.api_version,
    ISSUERS.plural,
    [Issuer.KIND.finalizer],
    label_selector="app.kubernetes.io/managed-by=certificate-service",
)


def manifest(namespace: str, issuer: IssuerConfig) -> Raw:
    """The Issuer as asked for."""
    return {
        "apiVersion": ISSUERS.api_version,
        "kind": Issuer.KIND.name,
        "metadata": {"name": issuer.name, "namespace": namespace},
        "spec": {"server": issuer.server, "email": issuer.email},
    }
