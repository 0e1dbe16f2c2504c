"""Permissions in a garden, as data: RBAC of Gardener's programs and of users of Projects.

Real Gardener: gardener-operator or a chart creates these objects; here we do, and each list has
only what the garden of this package uses. gardener-controller-manager binds the roles of Projects
to their members. gardenlets have no permissions of RBAC, except those of every user: the
SeedAuthorizer decides (admission.py).

Not here: roles for bootstrap tokens of gardenlets, and for operators, who are in system:masters.
Source: Gardener documentation, "Projects" and "Scoped API Access for gardenlets and Extensions".
"""

from collections.abc import Mapping, Sequence

from actuator.meta import Raw

_RBAC = "rbac.authorization.k8s.io"
_API_VERSION = f"{_RBAC}/v1"
_CORE = "core.gardener.cloud"
_OPERATIONS = "operations.gardener.cloud"
_SECURITY = "security.gardener.cloud"
_READ = ("get", "list", "watch")
_WRITE = (*_READ, "create", "delete", "deletecollection", "patch", "update")

Rule = tuple[str, str, Sequence[str]]
"""An API group, the names of its resources with spaces between, and the verbs."""

_ALL: list[Rule] = [("*", "*", ("*",))]
PROGRAMS: Mapping[str, Sequence[Rule]] = {
    "gardener-admission-controller": [
        (_CORE, "backupbuckets backupentries controllerdeployments controllerinstallations", _READ),
        (_CORE, "internalsecrets projects secretbindings seeds shoots shootstates", _READ),
        ("seedmanagement.gardener.cloud", "gardenlets managedseeds", _READ),
        (_OPERATIONS, "bastions", _READ),
        (_SECURITY, "credentialsbindings", _READ),
        ("", "configmaps namespaces secrets serviceaccounts", _READ),
        ("coordination.k8s.io", "leases", _READ),
        ("certificates.k8s.io", "certificatesigningrequests", _READ),
        ("authorization.k8s.io", "subjectaccessreviews", ("create",)),
    ],
    "gardener-apiserver": _ALL,
    "gardener-controller-manager": _ALL,
    "gardener-scheduler": [
        ("", "events", ("create", "patch", "update")),
        ("events.k8s.io", "events", ("create", "patch", "update")),
        ("", "configmaps", _READ),
        (_CORE, "cloudprofiles namespacedcloudprofiles projects seeds", _READ),
        (_CORE, "shoots shoots/status", (*_READ, "patch", "update")),
        (_CORE, "shoots/binding", ("update",)),
    ],
}
"""Permissions of the programs. Two have all, as in a real garden."""
PROJECT_ROLES: Mapping[str, Sequence[Rule]] = {
    "project-member": [
        ("", "configmaps secrets", _WRITE),
        ("", "events resourcequotas serviceaccounts", _READ),
        ("events.k8s.io", "events", _READ),
        (_CORE, "namespacedcloudprofiles quotas secretbindings shoots", _WRITE),
        (_CORE, "shoots/adminkubeconfig shoots/viewerkubeconfig", ("create",)),
        (_CORE, "shoots/finalizers", ("update",)),
        (_SECURITY, "credentialsbindings workloadidentities", _WRITE),
        (_OPERATIONS, "bastions", _WRITE),
        (_RBAC, "rolebindings roles", _WRITE),
    ],
    "project-serviceaccountmanager": [
        ("", "serviceaccounts", _WRITE),
        ("", "serviceaccounts/token", ("create",)),
    ],
    "project-viewer": [
        ("", "configmaps events resourcequotas serviceaccounts", _READ),
        ("events.k8s.io", "events", _READ),
        (_CORE, "namespacedcloudprofiles quotas secretbindings shoots", _READ),
        (_CORE, "shoots/viewerkubeconfig", ("create",)),
        (_SECURITY, "credentialsbindings", _READ),
        (_OPERATIONS, "bastions", _READ),
        (_RBAC, "rolebindings roles", _READ),
    ],
}
"""Permissions of members in the namespace of their Project; others may aggregate more to them."""
_EVERY_USER: Sequence[Rule] = [
    (_CORE, "cloudprofiles controllerregistrations exposureclasses seeds", _READ),
]


def permissions(namespace: str) -> list[Raw]:
    """Return the objects; the programs are service accounts in the namespace."""
    users = {"apiGroup": _RBAC, "kind": "Group", "name": "system:authenticated"}
    objects = _granted("read-global-resources", _EVERY_USER, users)
    for name, rules in PROGRAMS.items():
        account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        objects += _granted(name.removeprefix("gardener-"), rules, account)
    for name, rules in PROJECT_ROLES.items():
        selected = {f"rbac.gardener.cloud/aggregate-to-{name}": "true"}
        rule = {"clusterRoleSelectors": [{"matchLabels": selected}]}
        objects.append(_cluster_role(f"{name}-aggregation", rules, selected))
        objects.append({**_object("ClusterRole", name), "aggregationRule": rule})
    return objects


def _granted(name: str, rules: Sequence[Rule], subject: Raw) -> list[Raw]:
    role = _cluster_role(name, rules, {})
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role["metadata"]["name"]}
    binding = _object("ClusterRoleBinding", name)
    return [role, {**binding, "roleRef": reference, "subjects": [subject]}]


def _cluster_role(name: str, rules: Sequence[Rule], labels: Mapping[str, str]) -> Raw:
    role = _object("ClusterRole", name)
    role["metadata"]["labels"] = dict(labels)
    role["rules"] = [
        {"apiGroups": [group], "resources": resources.split(), "verbs": list(verbs)}
        for group, resources, verbs in rules
    ]
    return role


def _object(kind: str, name: str) -> Raw:
    metadata = {"name": f"gardener.cloud:system:{name}"}
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata}
