"""ShootAccess: a token for the shoot's API server, for something that runs in the seed.

The Secret is a request: gardener-resource-manager makes the ServiceAccount in the shoot and keeps
a fresh token in the Secret (Gardener documentation, "gardener-resource-manager",
"TokenRequestor"). The kubeconfig around that token is Gardener's, the same for all.
"""

from __future__ import annotations

import attrs

from actuator.cluster import Cluster
from actuator.errors import ActuatorError, Conflict, NotFound
from actuator.interface import Client, Permission, Resource
from actuator.meta import Raw
from generic.library.manifests import manifest

_SECRETS = Resource("v1", "secrets")
_PREFIX = "shoot-access-"
_GENERIC = "generic-token-kubeconfig"
_GENERIC_NAME = "generic-token-kubeconfig.secret.gardener.cloud/name"
_PURPOSE = ("resources.gardener.cloud/purpose", "token-requestor")
_CLASS = ("resources.gardener.cloud/class", "shoot")
_ACCOUNT = "serviceaccount.resources.gardener.cloud"

PERMISSIONS = (
    Permission(api_version="v1", resource="secrets", verbs=["get", "create", "patch", "delete"]),
)
"""What asking for access does in the API."""


def generic_kubeconfig_name(cluster: Cluster) -> str:
    """The Secret with the kubeconfig that reads a token from a file; it changes with rotation."""
    return cluster.metadata.annotations.get(_GENERIC_NAME) or _GENERIC


@attrs.frozen(kw_only=True)
class ShootAccess:
    """Access for `name`, by a ServiceAccount of that name in the shoot's `account_namespace`."""

    name: str
    account_name: str = ""
    account_namespace: str = "kube-system"
    token_expiration: str = ""
    """How long a token is valid, like "24h"; "" for Gardener's default."""

    @property
    def secret_name(self) -> str:
        """The Secret that the token will be in."""
        return f"{_PREFIX}{self.name.removeprefix(_PREFIX)}"

    @property
    def _account(self) -> str:
        return self.account_name or self.name.removeprefix(_PREFIX)

    def ensure(self, client: Client, namespace: str) -> None:
        """Afterwards access is asked for; a token that is there already stays.

        Raises ActuatorError where a Secret of that name is somebody else's, and ApiError.
        """
        wanted = self._manifest(namespace)
        found = self._find(client, namespace)
        if found is None or not _asks_the_same(found["metadata"], wanted["metadata"]):
            client.apply(_SECRETS, wanted)

    def delete(self, client: Client, namespace: str) -> None:
        """Afterwards there is no such request. What is gone, or somebody else's, is success."""
        try:
            found = self._find(client, namespace)
            if found is not None:
                uid = found["metadata"]["uid"]
                client.delete(_SECRETS, self.secret_name, namespace, uid=uid)
        except (NotFound, Conflict, ActuatorError):
            return

    def _find(self, client: Client, namespace: str) -> Raw | None:
        try:
            found = client.get(_SECRETS, self.secret_name, namespace)
        except NotFound:
            return None
        key, value = _PURPOSE
        if (found["metadata"].get("labels") or {}).get(key) != value:
            raise ActuatorError(
                f"Secret {namespace}/{self.secret_name} is there already and asks for no token, "
                f"so it belongs to somebody else; delete it, or put the label {key}={value} on it"
            )
        return found

    def _manifest(self, namespace: str) -> Raw:
        annotations = {
            f"{_ACCOUNT}/name": self._account,
            f"{_ACCOUNT}/namespace": self.account_namespace,
        }
        if self.token_expiration:
            annotations[f"{_ACCOUNT}/token-expiration-duration"] = self.token_expiration
        where = self.secret_name, namespace, dict([_PURPOSE, _CLASS])
        secret = manifest("v1", "Secret", *where, type="Opaque")
        secret["metadata"]["annotations"] = annotations
        return secret


def _asks_the_same(found: Raw, wanted: Raw) -> bool:
    return all(
        wanted[part].items() <= (found.get(part) or {}).items()
        for part in ("labels", "annotations")
    )
