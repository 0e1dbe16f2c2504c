"""FilterConfig: the providerConfig of this extension. Pure."""

from typing import Annotated

import attrs

from actuator import ProviderConfig, Schema

API_VERSION = "networkfilter.extensions.gardener.cloud/v1alpha1"


@attrs.frozen(kw_only=True)
class FilterConfig(ProviderConfig):
    """The network filter of a shoot."""

    api_version: str = API_VERSION
    kind: str = "FilterConfig"
    blocked: list[Annotated[str, Schema(format="cidr", example="203.0.113.0/24")]] = attrs.field(
        factory=list
    )
    """Ranges to which access from the shoot is blocked."""

    @property
    def text(self) -> str:
        """The ranges, one a line."""
        return "".join(f"{blocked}\n" for blocked in self.blocked)
