"""Manifests of what gets into the shoot. How they get there is ManagedResources' business. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from actuator.meta import Raw
from extensions.certificate.config import IssuerConfig

_RBAC = "rbac.authorization.k8s.io"
_ROLE = "extensions.gardener.cloud:certificate-service"


def manifests(issuers: Iterable[IssuerConfig]) -> list[Raw]:
    """The names of the issuers, for the shoot's users, and their right to ask for certificates."""
    names = "".join(f"{issuer.name}\n" for issuer in issuers)
    users = {"kind": "Group", "name": "system:authenticated", "apiGroup": _RBAC}
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "certificate-issuers", "namespace": "kube-system"},
            "data": {"issuers": names},
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": _ROLE},
            "rules": [
                {
                    "apiGroups": ["certificates.example.org"],
                    "resources": ["certificates"],
                    "verbs": ["get", "list", "watch", "create", "delete"],
                }
            ],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": _ROLE},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": _ROLE},
            "subjects": [users],
        },
    ]
