"""Shoot access: Secrets into which the resource manager writes a token for the shoot's API server.

A pod in the seed mounts one to act in the shoot as a ServiceAccount in kube-system (Gardener
documentation, "gardener-resource-manager", TokenRequestor controller).
"""

from __future__ import annotations

from actuator.errors import ActuatorError, NotFound
from actuator.interface import Client, Permission, Resource
from actuator.meta import Raw

__all__ = ["PERMISSION", "delete_shoot_access", "ensure_shoot_access", "secret_name"]

_SECRETS = Resource("v1", "secrets")
_PURPOSE = {"resources.gardener.cloud/purpose": "token-requestor"}
_LABELS = {**_PURPOSE, "resources.gardener.cloud/class": "shoot"}
_ACCOUNT = "serviceaccount.resources.gardener.cloud"

PERMISSION = Permission(
    api_version="v1", resource="secrets", verbs=["get", "create", "patch", "delete"]
)


def secret_name(name: str) -> str:
    """What the Secret of access `name` is called."""
    return f"shoot-access-{name}"


def ensure_shoot_access(client: Client, namespace: str, name: str) -> None:
    """Afterwards the Secret asks for a token of ServiceAccount `name`; a token in it stays.

    Raises ActuatorError where something foreign has the name, and ApiError.
    """
    if _find(client, namespace, name) is not None:
        return
    annotations = {f"{_ACCOUNT}/name": name, f"{_ACCOUNT}/namespace": "kube-system"}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": secret_name(name),
            "namespace": namespace,
            "labels": _LABELS,
            "annotations": annotations,
        },
    }
    client.create(_SECRETS, secret)


def delete_shoot_access(client: Client, namespace: str, name: str) -> None:
    """Afterwards the Secret is gone; gone already, or foreign, is success. Raises ApiError."""
    try:
        found = _find(client, namespace, name)
        if found is not None:
            uid = found["metadata"]["uid"]
            client.delete(_SECRETS, secret_name(name), namespace, uid=uid)
    except (NotFound, ActuatorError):
        pass


def _find(client: Client, namespace: str, name: str) -> Raw | None:
    try:
        found = client.get(_SECRETS, secret_name(name), namespace)
    except NotFound:
        return None
    meta = found["metadata"]
    account = (meta.get("annotations") or {}).get(f"{_ACCOUNT}/name")
    if not _PURPOSE.items() <= (meta.get("labels") or {}).items() or account != name:
        raise ActuatorError(
            f"Secret {namespace}/{secret_name(name)} is there already, and asks for no token of"
            f" ServiceAccount {name}; delete it"
        )
    return found
