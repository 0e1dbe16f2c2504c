"""ShootAccess: a token for the shoot's API server, for a component in the seed.

The Secret is a request: gardener-resource-manager creates the ServiceAccount in the shoot and keeps
a valid token in the Secret (Gardener documentation, "gardener-resource-manager",
"TokenRequestor"). The kubeconfig for that token is Gardener's, one for all components.
"""

import attrs

from actuator.cluster import Cluster
from actuator.errors import ActuatorError, Conflict, NotFound
from actuator.interface import SECRETS, Client
from actuator.meta import Raw
from generic.kube.writing import write
from generic.library.lookup import find
from generic.library.manifests import manifest

_PREFIX = "shoot-access-"
_GENERIC = "generic-token-kubeconfig"
_GENERIC_NAME = "generic-token-kubeconfig.secret.gardener.cloud/name"
_PURPOSE = ("resources.gardener.cloud/purpose", "token-requestor")
_CLASS = ("resources.gardener.cloud/class", "shoot")
_ACCOUNT = "serviceaccount.resources.gardener.cloud"
_RENEWED = f"{_ACCOUNT}/token-renew-timestamp"
"""gardener-resource-manager writes it, with the token."""

PERMISSIONS = (SECRETS.permission("get", "create", "patch", "delete"),)
"""The permissions for requesting access."""


def generic_kubeconfig_name(cluster: Cluster) -> str:
    """Return the Secret name of the kubeconfig that reads a token file; it changes on rotation."""
    return cluster.metadata.annotations.get(_GENERIC_NAME) or _GENERIC


@attrs.frozen(kw_only=True)
class ShootAccess:
    """Access for `name`, by a ServiceAccount of that name in the shoot's kube-system."""

    name: str

    @property
    def secret_name(self) -> str:
        """The Secret for the token."""
        return f"{_PREFIX}{self.name.removeprefix(_PREFIX)}"

    def ensure(self, client: Client, namespace: str) -> None:
        """Request access; an existing token stays.

        Raises ActuatorError if a Secret of that name has another owner, and ApiError.
        """
        wanted = self._manifest(namespace)
        found = self._find(client, namespace)
        if found is None or not _asks_the_same(found["metadata"], wanted["metadata"]):
            write(client, SECRETS, wanted, found)

    def delete(self, client: Client, namespace: str) -> None:
        """Delete the request. A deleted one, or one of another owner, counts as success."""
        try:
            found = self._find(client, namespace)
            if found is not None:
                uid = found["metadata"]["uid"]
                client.delete(SECRETS, self.secret_name, namespace, uid=uid)
        except (NotFound, Conflict, ActuatorError):
            return

    def _find(self, client: Client, namespace: str) -> Raw | None:
        found = find(client, SECRETS, self.secret_name, namespace)
        key, value = _PURPOSE
        if found is not None and (found["metadata"].get("labels") or {}).get(key) != value:
            raise ActuatorError(
                f"Secret {namespace}/{self.secret_name} exists but requests no token, so "
                f"it belongs to another owner; delete it, or add the label {key}={value}"
            )
        return found

    def _manifest(self, namespace: str) -> Raw:
        annotations = {
            f"{_ACCOUNT}/name": self.name.removeprefix(_PREFIX),
            f"{_ACCOUNT}/namespace": "kube-system",
        }
        where = self.secret_name, namespace, dict([_PURPOSE, _CLASS])
        secret = manifest("v1", "Secret", *where, type="Opaque")
        secret["metadata"]["annotations"] = annotations
        return secret


def _asks_the_same(found: Raw, wanted: Raw) -> bool:
    annotations: Raw = found.get("annotations") or {}
    asked = {key: text for key, text in annotations.items() if key.startswith(_ACCOUNT)}
    asked.pop(_RENEWED, None)
    labels: Raw = found.get("labels") or {}
    is_labelled: bool = wanted["labels"].items() <= labels.items()
    return is_labelled and asked == wanted["annotations"]
