"""providerConfig of the local extensions. Pure."""

from typing import Annotated

import attrs

from actuator import ProviderConfig, Schema

API_VERSION = "local.provider.extensions.gardener.cloud/v1alpha1"


@attrs.frozen(kw_only=True)
class NetworkConfig(ProviderConfig):
    """providerConfig of a Network."""

    api_version: str = API_VERSION
    kind: str = "NetworkConfig"
    mtu: Annotated[int, Schema(minimum=1280, maximum=9000)] = 1450
    """The largest packet in bytes; 1280 is the minimum for IPv6 (RFC 8200, section 5)."""


@attrs.frozen(kw_only=True)
class ShareConfig(ProviderConfig):
    """providerConfig of an Extension."""

    api_version: str = API_VERSION
    kind: str = "ShareConfig"
    capacity: Annotated[str, Schema(pattern="[1-9][0-9]{0,5}[MGT]i", example="10Gi")] = "1Gi"
    """The size of the share."""
    credentials: str = ""
    """The name of a Secret in the shoot's spec.resources."""
