"""CertificateConfig: the providerConfig of this extension. Pure."""

import re
from collections import Counter
from collections.abc import Iterator

import attrs

from actuator import FieldProblem
from actuator.provider_config import FIELD

API_VERSION = "certificate.extensions.gardener.cloud/v1alpha1"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@attrs.frozen(kw_only=True)
class IssuerConfig:
    """A requested account: `server` is an https URL, `name` a DNS label."""

    name: str
    server: str
    email: str = ""

    def problems(self, field: str) -> Iterator[FieldProblem]:
        """Yield the problems that the types cannot express; `field` is this issuer's path."""
        if not _NAME.fullmatch(self.name):
            detail = f'{self.name!r} is no DNS label; write one like "letsencrypt"'
            yield FieldProblem(field=f"{field}.name", detail=detail)
        if not self.server.startswith("https://"):
            detail = f"{self.server!r} is no https URL; write the directory of the authority"
            yield FieldProblem(field=f"{field}.server", detail=detail)


@attrs.frozen(kw_only=True)
class CertificateConfig:
    """The issuers that the shoot may use."""

    api_version: str = API_VERSION
    kind: str = "CertificateConfig"
    issuers: list[IssuerConfig] = attrs.field(factory=list)

    def problems(self) -> Iterator[FieldProblem]:
        """Yield the problems that the types cannot express."""
        for index, issuer in enumerate(self.issuers):
            yield from issuer.problems(f"{FIELD}.issuers[{index}]")
        for name, count in Counter(issuer.name for issuer in self.issuers).items():
            if count > 1:
                detail = f"{name!r} is there {count} times; keep one of them"
                yield FieldProblem(field=f"{FIELD}.issuers", detail=detail)
