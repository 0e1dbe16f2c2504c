"""The least ClusterRole with which a manager can do its work, made from what it was given.

Kinds, seed objects and permissions of its actuators go in, rules come out; nothing else is
asked of the API anywhere (drills and tests run under exactly this role). Source of the shape:
Kubernetes documentation, "Using RBAC Authorization".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from actuator.interface import Permission, SeedObjects
from actuator.meta import ClusterNeed, Kind, Raw
from generic.manager import Manager, Registration
from generic.orphans import ORPHANS

__all__ = ["cluster_role", "role_binding"]

_STRIP = ("get", "list", "patch", "delete")


def cluster_role(manager: Manager, name: str) -> Raw:
    """The ClusterRole `name` for all that was added to `manager`."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": _rules(_permissions(manager)),
    }


def role_binding(name: str, user: str, namespace: str = "") -> Raw:
    """The ClusterRoleBinding of ClusterRole `name`, to a user or (in a namespace) an account."""
    subject = {"kind": "ServiceAccount", "name": user, "namespace": namespace}
    if not namespace:
        subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": name,
        },
        "subjects": [subject],
    }


def _permissions(manager: Manager) -> Iterator[Permission]:
    yield Permission(api_version="v1", resource="events", verbs=["create", "patch"])
    if manager.options.leader_election:
        verbs = ["get", "create", "patch"]
        yield Permission(api_version="coordination.k8s.io/v1", resource="leases", verbs=verbs)
    for registration in manager.registrations:
        yield from _of_kind(registration.kind)
        yield from _of(registration)
    for added in manager.health_checks:
        yield from _of_kind(added.checks.cls.KIND)
        yield from added.checks.permissions
    for runnable in manager.runnables:
        yield from runnable.permissions


def _of_kind(kind: Kind) -> Iterator[Permission]:
    version = kind.api_version
    verbs = ["get", "list", "watch", "patch"]
    yield Permission(api_version=version, resource=kind.plural, verbs=verbs)
    yield Permission(api_version=version, resource=f"{kind.plural}/status", verbs=["patch"])
    if kind.cluster is not ClusterNeed.NEVER:
        verbs = ["get", "list", "watch"]
        yield Permission(
            api_version="extensions.gardener.cloud/v1alpha1", resource="clusters", verbs=verbs
        )
    if kind.cluster is ClusterNeed.IN_SHOOT_NAMESPACE:
        yield Permission(api_version="v1", resource="namespaces", verbs=["get"])


def _of(registration: Registration) -> Iterator[Permission]:
    version = ORPHANS.api_version
    yield Permission(api_version=version, resource=ORPHANS.plural, verbs=["create"])
    yield Permission(api_version=version, resource=f"{ORPHANS.plural}/status", verbs=["patch"])
    yield from (watch.permission for watch in registration.watches)
    yield from (_strips(group) for group in registration.actuator.seed_objects)
    yield from registration.actuator.permissions


def _strips(group: SeedObjects) -> Permission:
    return Permission(api_version=group.api_version, resource=group.plural, verbs=_STRIP)


def _rules(permissions: Iterable[Permission]) -> list[Raw]:
    """One rule for each API group and set of verbs, in a stable order."""
    verbs: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for permission in permissions:
        group = permission.api_version.rpartition("/")[0]
        verbs[group, permission.resource].update(permission.verbs)
    rules: defaultdict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, resource), allowed in sorted(verbs.items()):
        rules[group, tuple(sorted(allowed))].append(resource)
    return [
        {"apiGroups": [group], "resources": resources, "verbs": list(allowed)}
        for (group, allowed), resources in rules.items()
    ]
