"""Looks up objects that may not exist."""

from actuator.errors import NotFound
from actuator.interface import Client, Resource
from actuator.meta import Raw

DEPLOYMENTS = Resource("apps/v1", "deployments")


def find(client: Client, resource: Resource, name: str, namespace: str = "") -> Raw | None:
    """Return the object, or None if it does not exist. Raises ApiError."""
    try:
        return client.get(resource, name, namespace)
    except NotFound:
        return None


def runs(client: Client, name: str, namespace: str) -> bool:
    """Whether the Deployment exists and wants at least one replica. Raises ApiError."""
    found = find(client, DEPLOYMENTS, name, namespace)
    return found is not None and bool(found["spec"].get("replicas"))


def find_all(
    client: Client, resource: Resource, namespace: str = "", label_selector: str = ""
) -> list[Raw]:
    """Return the objects, none if the cluster has no such kind. Raises ApiError."""
    try:
        return client.list(resource, namespace, label_selector=label_selector)
    except NotFound:
        return []
