"""Shoot: what gardenlet tells a seed about one, and how its objects are found there."""

from __future__ import annotations

import attrs

from actuator.cluster import Cluster
from actuator.meta import Raw

__all__ = ["SHOOT", "Shoot"]

SHOOT = "shoot.gardener.cloud/technical-id"
"""Label of this double: the shoot of an object that lives in no shoot namespace."""
_CORE = "core.gardener.cloud/v1beta1"


@attrs.frozen(kw_only=True)
class Shoot:
    """A shoot as far as a seed sees it. `technical_id` names its namespace and its Cluster."""

    technical_id: str
    name: str
    project: str
    region: str
    labels: dict[str, str] = attrs.field(factory=dict)

    def cluster(self) -> Raw:
        """The Cluster manifest, with the shoot inside; it is being created."""
        shoot = {
            "apiVersion": _CORE,
            "kind": "Shoot",
            "metadata": {"name": self.name, "namespace": f"garden-{self.project}"},
            "spec": {"region": self.region, "kubernetes": {"version": "1.36.3"}},
            "status": {
                "technicalID": self.technical_id,
                "lastOperation": {"type": "Create", "state": "Processing"},
            },
        }
        return {
            "apiVersion": Cluster.KIND.api_version,
            "kind": "Cluster",
            "metadata": {"name": self.technical_id, "labels": self.labels},
            "spec": {
                "cloudProfile": {"apiVersion": _CORE, "kind": "CloudProfile"},
                "seed": {"apiVersion": _CORE, "kind": "Seed"},
                "shoot": shoot,
            },
        }
