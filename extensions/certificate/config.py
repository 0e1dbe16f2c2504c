"""CertificateConfig: the providerConfig of this extension. Pure."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import attrs

from actuator import FieldProblem, ProviderConfig
from actuator.meta import Schema

API_VERSION = "certificate.extensions.gardener.cloud/v1alpha1"
_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"


@attrs.frozen(kw_only=True)
class IssuerConfig:
    """A requested account at a certificate authority."""

    name: Annotated[str, Schema(pattern=_LABEL, example="letsencrypt")]
    """A DNS label, unique among the issuers."""
    server: Annotated[
        str, Schema(pattern="https://.+", example="https://acme-v02.api.letsencrypt.org/directory")
    ]
    """The directory of the certificate authority."""
    email: str = ""
    """The address for messages of the certificate authority."""


@attrs.frozen(kw_only=True)
class CertificateConfig(ProviderConfig):
    """The issuers that the shoot may use."""

    api_version: str = API_VERSION
    kind: str = "CertificateConfig"
    issuers: list[IssuerConfig] = attrs.field(factory=list)
    """The requested accounts."""

    def problems(self) -> Iterator[FieldProblem]:
        """Yield names that are there more than once."""
        for name, count in Counter(issuer.name for issuer in self.issuers).items():
            if count > 1:
                detail = f"{name!r} is there {count} times; keep one of them"
                yield FieldProblem(field="issuers", detail=detail)
