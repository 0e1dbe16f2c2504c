"""The kinds of extensions.gardener.cloud/v1alpha1, one file each."""

from actuator.cluster import Cluster, ClusterSpec
from actuator.v1alpha1.controlplane import ControlPlane, ControlPlaneSpec
from actuator.v1alpha1.infrastructure import (
    Infrastructure,
    InfrastructureNetworking,
    InfrastructureSpec,
    InfrastructureStatus,
)

__all__ = [
    "Cluster",
    "ClusterSpec",
    "ControlPlane",
    "ControlPlaneSpec",
    "Infrastructure",
    "InfrastructureNetworking",
    "InfrastructureSpec",
    "InfrastructureStatus",
]
