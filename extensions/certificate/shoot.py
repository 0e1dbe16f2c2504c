"""Manifests for the shoot. Deploying them by ManagedResources does not belong here. Pure."""

from collections.abc import Iterable

from actuator.meta import Raw
from extensions.certificate.config import IssuerConfig
from generic.library.manifests import manifest

_RBAC = "rbac.authorization.k8s.io"
_ROLE = "extensions.gardener.cloud:certificate-service"


def manifests(issuers: Iterable[IssuerConfig]) -> list[Raw]:
    """Return the issuers' names for the shoot's users, and the right to request certificates."""
    names = "".join(f"{issuer.name}\n" for issuer in issuers)
    users = {"kind": "Group", "name": "system:authenticated", "apiGroup": _RBAC}
    verbs = ["get", "list", "watch", "create", "delete"]
    group = "certificates.example.org"
    rule = {"apiGroups": [group], "resources": ["certificates"], "verbs": verbs}
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": _ROLE}
    version = f"{_RBAC}/v1"
    return [
        manifest("v1", "ConfigMap", "certificate-issuers", "kube-system", data={"issuers": names}),
        manifest(version, "ClusterRole", _ROLE, rules=[rule]),
        manifest(version, "ClusterRoleBinding", _ROLE, roleRef=role, subjects=[users]),
    ]
