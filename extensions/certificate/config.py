"""CertificateConfig: the providerConfig of this extension. Pure."""

from typing import Annotated

import attrs

from actuator import ProviderConfig, Schema

API_VERSION = "certificate.extensions.gardener.cloud/v1alpha1"


@attrs.frozen(kw_only=True)
class IssuerConfig:
    """A requested account at a certificate authority."""

    name: Annotated[str, Schema(format="dns-label", example="letsencrypt")]
    """The name of the Issuer."""
    server: Annotated[str, Schema(pattern="https://.+", example="https://acme.example.org/dir")]
    """The directory of the certificate authority."""
    email: str = ""
    """The address for messages of the certificate authority."""


Issuers = Annotated[list[IssuerConfig], Schema(key="name", max_length=64)]


@attrs.frozen(kw_only=True)
class CertificateConfig(ProviderConfig):
    """The issuers that the shoot may use."""

    api_version: str = API_VERSION
    kind: str = "CertificateConfig"
    issuers: Issuers = attrs.field(factory=list)
    """The requested accounts."""
