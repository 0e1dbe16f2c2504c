"""Referenced resources: the entries of a shoot's spec.resources, as gardenlet copies them.

In the shoot's namespace of the seed, a Secret or ConfigMap `x` of the project is named `ref-x`, a
WorkloadIdentity `workload-identity-ref-x` (Gardener documentation, "Referenced Resources").
"""

from actuator.cluster import Cluster
from actuator.errors import ConfigurationError
from actuator.interface import Client, Resource
from actuator.meta import Raw

_PREFIXES = {
    "Secret": (Resource("v1", "secrets"), "ref-"),
    "ConfigMap": (Resource("v1", "configmaps"), "ref-"),
    "WorkloadIdentity": (
        Resource("security.gardener.cloud/v1alpha1", "workloadidentities"),
        "workload-identity-ref-",
    ),
}


def locate_referenced(cluster: Cluster, name: str) -> tuple[Resource, str]:
    """Return the type and the name in the seed of the resource that the shoot calls `name`.

    Raises ConfigurationError if the shoot has no such entry, or if its kind is not copied.
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
            f"Gardener copies only {', '.join(_PREFIXES)}"
        )
    resource, prefix = _PREFIXES[kind]
    return resource, f"{prefix}{reference.get('name')}"


def get_referenced(client: Client, cluster: Cluster, name: str, namespace: str) -> Raw:
    """Return the resource that the shoot calls `name`, from its namespace in the seed.

    Raises ConfigurationError, or ApiError (NotFound until gardenlet has copied it).
    """
    resource, actual = locate_referenced(cluster, name)
    return client.get(resource, actual, namespace)
