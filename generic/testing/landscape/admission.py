"""The webhooks of gardener-admission-controller: one that authorizes gardenlets, and admission.

Real: the SeedAuthorizer decides on requests that RBAC does not allow; SeedRestriction and its
neighbours admit objects. Faked: the way to the program. The cluster reaches its Service through
the router, so the cluster can start first.

Not here: webhooks for gardenlets of self-hosted shoots, and the one that limits sizes of objects;
the process (garden.py). Source: Gardener documentation, "Gardener Admission Controller".
"""

import base64
from collections.abc import Sequence
from pathlib import Path

from actuator.meta import Raw
from generic.kube.kubeconfig import write_kubeconfig
from generic.testing.envtest.certificates import save_private
from generic.testing.landscape.gardenobjects import (
    ADMISSION_CONTROLLER,
    CORE,
    GARDEN,
    ROLE,
    service,
)

ADMISSION_ADDRESS = "10.9.0.11"
"""The address of its Service, chosen so that the router knows it."""
ADMISSION_HOST = f"{ADMISSION_CONTROLLER}.{GARDEN}.svc"
_EACH = "CREATE UPDATE DELETE"
_CHANGE = "CREATE UPDATE"


def _rule(operations: str, api_version: str, resources: str) -> Raw:
    group, _, version = api_version.rpartition("/")
    return {
        "operations": operations.split(),
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": resources.split(),
    }


_PROJECT = {"matchLabels": {ROLE: "project"}}
_NOT_GARDEN = [{"key": "app", "operator": "NotIn", "values": ["gardener"]}]
_PROJECTS: Raw = {"namespaceSelector": _PROJECT}
_PROJECTS_OF_USERS: Raw = {"namespaceSelector": {**_PROJECT, "matchExpressions": _NOT_GARDEN}}
_DOMAINS: Raw = {"objectSelector": {"matchLabels": {ROLE: "internal-domain"}}}
_PROTECTED: Raw = {"objectSelector": {"matchLabels": {"gardener.cloud/update-restriction": "true"}}}
_NAMESPACES = [_rule("DELETE", "v1", "namespaces")]
_SECRETS = [_rule(_CHANGE, "v1", "secrets")]
_EACH_SECRET = [_rule(_EACH, "v1", "secrets")]
_EACH_OBJECT = [_rule(_EACH, "v1", "configmaps secrets")]
_SHOOTS = [_rule(_CHANGE, CORE, "shoots"), _rule("UPDATE", "v1", "configmaps")]
_LABELLED = [_rule(_CHANGE, "v1", "secrets"), _rule(_CHANGE, CORE, "internalsecrets")]
_OF_SEEDS = [
    _rule("CREATE", "v1", "configmaps secrets serviceaccounts"),
    _rule("CREATE", "rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    _rule("CREATE", "coordination.k8s.io/v1", "leases"),
    _rule("CREATE", "certificates.k8s.io/v1", "certificatesigningrequests"),
    _rule("CREATE", CORE, "backupentries internalsecrets shootstates"),
    _rule("CREATE DELETE", CORE, "backupbuckets"),
    _rule(_EACH, CORE, "seeds"),
    _rule("CREATE", "operations.gardener.cloud/v1alpha1", "bastions"),
]
_Webhook = tuple[str, str, Raw, Sequence[Raw]]
_MUTATING: Sequence[_Webhook] = [
    ("sync-provider-secret-labels", "sync-provider-secret-labels", _PROJECTS, _LABELLED),
]
_VALIDATING: Sequence[_Webhook] = [
    ("validate-namespace-deletion", "validate-namespace-deletion", _PROJECTS, _NAMESPACES),
    ("validate-kubeconfig-secrets", "validate-kubeconfig-secrets", _PROJECTS_OF_USERS, _SECRETS),
    ("internal-domain-secret", "admission/validate-internal-domain", _DOMAINS, _EACH_SECRET),
    ("audit-policies", "audit-policies", _PROJECTS, _SHOOTS),
    ("authentication-configuration", "authentication-configuration", _PROJECTS, _SHOOTS),
    ("authorization-configuration", "authorization-configuration", _PROJECTS, _SHOOTS),
    ("shoot-kubeconfig-secret-ref", "validate-shoot-kubeconfig-secret-ref", _PROJECTS, _SECRETS),
    ("update-restriction", "update-restriction", _PROTECTED, _EACH_OBJECT),
    ("seed-restriction", "admission/seedrestriction", {}, _OF_SEEDS),
]
"""Name, path below /webhooks, selectors and rules of each webhook."""


def authorization_flags(directory: Path, proxy: str, ca: bytes) -> list[str]:
    """Return the API server's flags that ask the SeedAuthorizer after RBAC.

    `proxy` is the router's URL with its credential. Answers are not cached, because a new object
    gives its seed permissions at once. While the webhook cannot be reached, requests that RBAC does
    not allow get the status 500.
    """
    file = directory / "authorization.json"
    cluster = {
        "server": f"https://{ADMISSION_HOST}/webhooks/auth/seed",
        "certificate-authority-data": ca,
        "proxy-url": proxy,
    }
    save_private(file, write_kubeconfig(cluster, {}, "seed-authorizer"))
    return [
        "--authorization-mode=Webhook",
        f"--authorization-webhook-config-file={file}",
        "--authorization-webhook-version=v1",
        "--authorization-webhook-cache-authorized-ttl=0s",
        "--authorization-webhook-cache-unauthorized-ttl=0s",
    ]


def admission_registration(ca: bytes) -> list[Raw]:
    """Return the objects that make the cluster call the webhooks; one that fails refuses."""
    kinds = {
        "MutatingWebhookConfiguration": _MUTATING,
        "ValidatingWebhookConfiguration": _VALIDATING,
    }
    bundle = base64.b64encode(ca).decode()
    registrations: list[Raw] = [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": ADMISSION_CONTROLLER},
            "webhooks": [_registered(webhook, bundle) for webhook in webhooks],
        }
        for kind, webhooks in kinds.items()
    ]
    return [service(ADMISSION_CONTROLLER, GARDEN, ADMISSION_ADDRESS), *registrations]


def _registered(webhook: _Webhook, bundle: str) -> Raw:
    name, path, selectors, rules = webhook
    service = {"name": ADMISSION_CONTROLLER, "namespace": GARDEN, "path": f"/webhooks/{path}"}
    return {
        "name": f"{name}.gardener.cloud",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"caBundle": bundle, "service": service},
        "failurePolicy": "Fail",
        "rules": rules,
        "sideEffects": "None",
        **selectors,
    }
