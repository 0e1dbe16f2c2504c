"""providerConfig of the local extensions. Pure.

`actuator.provider_config` reads it, and refuses one for kinds without configuration.
"""

import re
from collections.abc import Iterator

import attrs

from actuator import FieldProblem
from actuator.provider_config import FIELD

API_VERSION = "local.provider.extensions.gardener.cloud/v1alpha1"
_CAPACITY = re.compile(r"[1-9][0-9]{0,5}[MGT]i")
_SMALLEST_MTU, _LARGEST_MTU = 1280, 9000
"""1280 is the minimum for IPv6 (RFC 8200, section 5)."""


@attrs.frozen(kw_only=True)
class NetworkConfig:
    """providerConfig of a Network; every field is optional. `mtu` is in bytes."""

    api_version: str = API_VERSION
    kind: str = "NetworkConfig"
    mtu: int = 1450

    def problems(self) -> Iterator[FieldProblem]:
        """Yield the problems that the types cannot express."""
        if not _SMALLEST_MTU <= self.mtu <= _LARGEST_MTU:
            yield FieldProblem(
                field=f"{FIELD}.mtu",
                detail=f"{self.mtu} bytes; set {_SMALLEST_MTU} to {_LARGEST_MTU}",
            )


@attrs.frozen(kw_only=True)
class ShareConfig:
    """providerConfig of an Extension.

    `capacity` is like "10Gi". `credentials` names a Secret in the shoot's spec.resources.
    """

    api_version: str = API_VERSION
    kind: str = "ShareConfig"
    capacity: str = "1Gi"
    credentials: str = ""

    def problems(self) -> Iterator[FieldProblem]:
        """Yield the problems that the types cannot express."""
        if not _CAPACITY.fullmatch(self.capacity):
            yield FieldProblem(
                field=f"{FIELD}.capacity",
                detail=f'{self.capacity!r} is no size; write one like "10Gi" (Mi, Gi or Ti)',
            )
