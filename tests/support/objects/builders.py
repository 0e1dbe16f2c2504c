"""Objects for tests, each made by one call with only the fields that matter to the test."""

from __future__ import annotations

from actuator.cluster import FORCE_DELETION
from actuator.meta import GROUP, VERSION, Raw

API = f"{GROUP}/{VERSION}"


def infrastructure(namespace: str, type: str, name: str = "infra", **more: object) -> Raw:
    """An Infrastructure; `annotations`, `finalizers` and `provider_config` as wanted."""
    meta: Raw = {"name": name, "namespace": namespace}
    for field in ("annotations", "finalizers", "labels"):
        if more.get(field):
            meta[field] = more[field]
    spec: Raw = {"type": type, "region": "eu-1", "secretRef": {"name": "cloudprovider"}}
    if "provider_config" in more:
        spec["providerConfig"] = more["provider_config"]
    return {"apiVersion": API, "kind": "Infrastructure", "metadata": meta, "spec": spec}


def cluster(name: str, *, force: str | None = None, failed: bool = False, **spec: object) -> Raw:
    """A Cluster with a shoot inside; `shoot=…` replaces it whole."""
    shoot: Raw = {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": "shoot", "namespace": "garden-tests"},
        "spec": {"region": "eu-1"},
        "status": {"technicalID": name},
    }
    if force is not None:
        shoot["metadata"]["annotations"] = {FORCE_DELETION: force}
    if failed:
        shoot["status"]["lastOperation"] = {"type": "Reconcile", "state": "Failed"}
    parts = {"cloudProfile": {}, "seed": {}, "shoot": shoot, **spec}
    return {"apiVersion": API, "kind": "Cluster", "metadata": {"name": name}, "spec": parts}
