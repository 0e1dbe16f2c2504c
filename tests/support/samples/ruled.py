"""The configuration of the certificate sample, with its rule in Python instead of in `Schema`."""

from collections import Counter
from collections.abc import Iterator

import attrs

from actuator import FieldProblem, ProviderConfig
from actuator.v1alpha1 import Extension
from extensions.certificate.config import API_VERSION, IssuerConfig
from generic.library.webhooks import ConfigAdmission


@attrs.frozen(kw_only=True)
class RuledConfig(ProviderConfig):
    """The issuers that the shoot may use."""

    api_version: str = API_VERSION
    kind: str = "CertificateConfig"
    issuers: list[IssuerConfig] = attrs.field(factory=list)

    def problems(self) -> Iterator[FieldProblem]:
        """Yield names that are there more than once."""
        for name, count in Counter(issuer.name for issuer in self.issuers).items():
            if count > 1:
                detail = f"{name!r} is there {count} times; keep one of them"
                yield FieldProblem(field="issuers", detail=detail)


RULED = ConfigAdmission(
    kind=Extension, type="certificate-service", config=RuledConfig, defaults=True
)
