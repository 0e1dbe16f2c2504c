"""Referenced resources: what a shoot's spec.resources names, as gardenlet copies it to the seed.

A Secret or ConfigMap `x` of the project arrives in the shoot's namespace as `ref-x`, a
WorkloadIdentity as `workload-identity-ref-x` (Gardener documentation, "Referenced Resources").
"""

from __future__ import annotations

from actuator.cluster import Cluster
from actuator.errors import ConfigurationError
from actuator.interface import Client, Resource
from actuator.meta import Raw

__all__ = ["get_referenced", "locate_referenced"]

_PREFIXES = {
    "Secret": (Resource("v1", "secrets"), "ref-"),
    "ConfigMap": (Resource("v1", "configmaps"), "ref-"),
    "WorkloadIdentity": (
        Resource("security.gardener.cloud/v1alpha1", "workloadidentities"),
        "workload-identity-ref-",
    ),
}


def locate_referenced(cluster: Cluster, name: str) -> tuple[Resource, str]:
    """Where in the seed the resource is that the shoot calls `name`: its type, and its name there.

    Raises ConfigurationError where the shoot has none of that name, or of a type not copied.
    """
    entries = (cluster.shoot.get("spec") or {}).get("resources") or []
    entry = next((e for e in entries if isinstance(e, dict) and e.get("name") == name), None)
    if entry is None:
        raise ConfigurationError(
            f"Shoot {cluster.shoot_key}: spec.resources has no entry {name!r}; add it"
        )
    reference = entry.get("resourceRef") or {}
    kind = str(reference.get("kind"))
    if kind not in _PREFIXES:
        raise ConfigurationError(
            f"Shoot {cluster.shoot_key}: spec.resources {name!r} is of kind {kind}; "
            f"Gardener copies {', '.join(_PREFIXES)}"
        )
    resource, prefix = _PREFIXES[kind]
    return resource, f"{prefix}{reference.get('name')}"


def get_referenced(client: Client, cluster: Cluster, namespace: str, name: str) -> Raw:
    """The resource that the shoot calls `name`, from its namespace in the seed.

    Raises ConfigurationError, or ApiError (NotFound where gardenlet has not copied it yet).
    """
    resource, actual = locate_referenced(cluster, name)
    return client.get(resource, actual, namespace)
