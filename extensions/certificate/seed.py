"""The Issuers of a shoot in its namespace of the seed: all carry our label, and the finalizer of
their controller.
"""

from __future__ import annotations

from actuator import SeedObjects
from actuator.meta import Raw
from extensions.certificate.config import IssuerConfig
from extensions.certificate.issuers import ISSUERS, Issuer
from generic.library.manifests import manifest_of

GROUP = SeedObjects(
    ISSUERS.api_version,
    ISSUERS.plural,
    [Issuer.KIND.finalizer],
    label_selector="app.kubernetes.io/managed-by=certificate-service",
)


def manifest(namespace: str, issuer: IssuerConfig) -> Raw:
    """The Issuer as asked for."""
    spec = {"server": issuer.server, "email": issuer.email}
    return manifest_of(Issuer, issuer.name, namespace, spec=spec)
