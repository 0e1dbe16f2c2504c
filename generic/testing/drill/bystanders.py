"""Objects and finalizers of other controllers in a drill: placed before, checked after it."""

from collections.abc import Mapping
from contextlib import suppress

from actuator.errors import Conflict, NotFound
from actuator.interface import CONFIG_MAPS, Client, Resource
from generic.kube.finalizers import remove_finalizers
from generic.kube.headers import as_dict
from generic.library.manifests import manifest
from generic.testing.drill.evidence import Bystander

WITNESS = "drill.actuator.extensions.gardener.cloud/witness"
NAME = "bystander"
DISTURBANCE = "DrillHealthy"
"""Type of the condition that another controller reports."""
_LONG_AGO = "2026-01-01T00:00:00Z"
_MAX_ATTEMPTS = 20


def place(client: Client, namespace: str, labels: Mapping[str, str]) -> None:
    """Create an unrelated object with an external finalizer."""
    witnessed = manifest("v1", "ConfigMap", NAME, namespace, labels)
    witnessed["metadata"]["finalizers"] = [WITNESS]
    client.create(CONFIG_MAPS, witnessed)


def report_health(client: Client, resource: Resource, namespace: str, name: str) -> None:
    """Add a condition with special characters, as another controller's health check does.

    An object that changes too often for it keeps its conditions.
    """
    condition = {
        "type": DISTURBANCE,
        "status": "False",
        "reason": "Drill",
        "message": "GET /?a=1&b=2: <html>für</html>",
        "lastTransitionTime": _LONG_AGO,
        "lastUpdateTime": _LONG_AGO,
    }
    with suppress(NotFound):
        for _ in range(_MAX_ATTEMPTS):
            obj = client.get(resource, name, namespace)
            known = as_dict(obj.get("status")).get("conditions") or []
            version = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            patch = {"metadata": version, "status": {"conditions": [*known, condition]}}
            with suppress(Conflict):
                client.patch(resource, name, namespace, patch, subresource="status")
                return


def look_at(client: Client, resource: Resource, namespace: str, name: str) -> Bystander:
    """Return the state of an object with the external finalizer; then release it.

    Only our own objects may be under deletion.
    """
    problem = None
    try:
        obj = client.get(resource, name, namespace)
        meta = obj["metadata"]
        if WITNESS not in (meta.get("finalizers") or []):
            problem = f"finalizer {WITNESS} was removed"
        elif meta.get("deletionTimestamp") and resource == CONFIG_MAPS:
            problem = "it was deleted"
        else:
            remove_finalizers(client, resource, obj, [WITNESS])
    except NotFound:
        problem = "it was deleted, although it has a finalizer of another controller"
    where = f"{namespace}/{name}" if namespace else name
    return Bystander(name=f"{resource.plural} {where}", problem=problem)
