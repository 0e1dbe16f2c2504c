"""Objects and finalizers of other controllers in a drill: placed before, checked after it."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from actuator.errors import NotFound
from actuator.interface import Client, Resource
from generic.kube.finalizers import take_off
from generic.kube.patches import add
from generic.library.manifests import manifest
from generic.testing.drill.evidence import Bystander

WITNESS = "drill.actuator.extensions.gardener.cloud/witness"
_CONFIGMAPS = Resource("v1", "configmaps")
_NAME = "bystander"
DISTURBANCE = "DrillHealthy"
"""Type of the condition that another controller reports."""
_LONG_AGO = "2026-01-01T00:00:00Z"


def place(client: Client, namespace: str, labels: Mapping[str, str]) -> None:
    """Create an unrelated object with an external finalizer."""
    witnessed = manifest("v1", "ConfigMap", _NAME, namespace, labels)
    witnessed["metadata"]["finalizers"] = [WITNESS]
    client.create(_CONFIGMAPS, witnessed)


def report_health(client: Client, resource: Resource, namespace: str, name: str) -> None:
    """Add a condition with special characters, as another controller's health check does."""
    condition = {
        "type": DISTURBANCE,
        "status": "False",
        "reason": "Drill",
        "message": "GET /?a=1&b=2: <html>für</html>",
        "lastTransitionTime": _LONG_AGO,
        "lastUpdateTime": _LONG_AGO,
    }
    with suppress(NotFound):
        patch = [add("/status/conditions/-", condition)]
        client.patch(resource, name, namespace, patch, subresource="status")


def look_at(
    client: Client, namespace: str, ours: Iterator[tuple[Resource, str, str]]
) -> Iterator[Bystander]:
    """Yield the state of that object and of the external finalizers; then release them.

    `ours`: resource, namespace and name of each of our objects with the external finalizer.
    """
    yield _look(client, _CONFIGMAPS, namespace, _NAME, may_be_deleting=False)
    for resource, where, name in ours:
        yield _look(client, resource, where, name, may_be_deleting=True)


def _look(
    client: Client, resource: Resource, namespace: str, name: str, *, may_be_deleting: bool
) -> Bystander:
    problem = None
    try:
        meta = client.get(resource, name, namespace)["metadata"]
        finalizers = meta.get("finalizers") or []
        if WITNESS not in finalizers:
            problem = f"finalizer {WITNESS} was removed"
        elif meta.get("deletionTimestamp") and not may_be_deleting:
            problem = "it was deleted"
        else:
            patch = take_off([WITNESS], meta["uid"], finalizers)
            client.patch(resource, name, namespace, patch)
    except NotFound:
        problem = "it was deleted, although it has a finalizer of another controller"
    where = f"{namespace}/{name}" if namespace else name
    return Bystander(name=f"{resource.plural} {where}", problem=problem)
