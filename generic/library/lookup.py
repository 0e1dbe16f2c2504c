"""Looks up objects that may not exist."""

from actuator.errors import NotFound
from actuator.interface import Client, Resource
from actuator.meta import Raw


def find(client: Client, resource: Resource, name: str, namespace: str = "") -> Raw | None:
    """Return the object, or None if it does not exist. Raises ApiError."""
    try:
        return client.get(resource, name, namespace)
    except NotFound:
        return None
