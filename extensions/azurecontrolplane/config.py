"""ControlPlaneConfig: what a user may write into providerConfig. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from actuator import FieldProblem

API_VERSION = "azure.provider.extensions.gardener.cloud/v1alpha1"


@attrs.frozen(kw_only=True)
class ControlPlaneConfig:
    """`remedy_controller`: whether stuck addresses and machines are put right by it."""

    api_version: str = API_VERSION
    kind: str = "ControlPlaneConfig"
    remedy_controller: bool = True

    def problems(self) -> Iterable[FieldProblem]:
        """None: the types say it all."""
        return ()
