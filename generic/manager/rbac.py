"""RBAC: the least privileges that a manager needs, generated from its registrations.

The input is the kinds, seed objects and permissions of its actuators, the output is rules; the
manager sends no other request (drills and tests run under exactly these roles). Rules of a
ClusterRole apply to all namespaces; those for Leases only to the namespaces of the Leases. Source
of the format: Kubernetes documentation, "Using RBAC Authorization".
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from actuator.interface import Client, Permission, Resource, resource_of
from actuator.meta import ClusterNeed, Kind, Raw
from actuator.ownership import owner_permission
from generic.controller.mappers import by_controller_owner, by_owner
from generic.kube import seedidentity
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.kube.events import EVENTS
from generic.manager.leaderelection import LEASES
from generic.manager.manager import Manager
from generic.manager.registry import Registration
from generic.reconciler.orphans import FORCE_DELETIONS, ORPHANS

_GROUP = "rbac.authorization.k8s.io"
_STRIP = ("get", "list", "patch", "delete")


def manifests(
    manager: Manager, name: str, user: str = "", namespace: str = "", *, watch_all: bool = True
) -> Iterator[Raw]:
    """Yield the ClusterRole `name` for everything added to `manager`, Roles, and their bindings.

    They are bound to a user or (in a namespace) a service account, if one is given. Without
    `watch_all`, watches for managers that ignore the operation annotation are left out.
    """
    places: defaultdict[str, list[Permission]] = defaultdict(list)
    for permission in _permissions(manager, watch_all=watch_all):
        places[permission.namespace].append(permission)
    for place, permissions in sorted(places.items()):
        meta = {"name": name, **({"namespace": place} if place else {})}
        head = {"apiVersion": f"{_GROUP}/v1", "kind": "Role" if place else "ClusterRole"}
        role = {**head, "metadata": meta, "rules": _rules(permissions)}
        yield from [role, role_binding(role, user, namespace)] if user else [role]


def role_binding(role: Raw, user: str, namespace: str = "") -> Raw:
    """Return the binding of a role to a user or (in a namespace) a service account."""
    subject = {"kind": "ServiceAccount", "name": user, "namespace": namespace}
    if not namespace:
        subject = {"kind": "User", "name": user, "apiGroup": _GROUP}
    kind = role["kind"]
    meta = role["metadata"]
    head = {"apiVersion": role["apiVersion"], "kind": f"{kind}Binding", "metadata": meta}
    reference = {"apiGroup": _GROUP, "kind": kind, "name": meta["name"]}
    return {**head, "roleRef": reference, "subjects": [subject]}


def grant(client: Client, manager: Manager, name: str) -> None:
    """Apply the roles `name` for `manager`, bound to the user `name`. Raises ApiError."""
    for manifest in manifests(manager, name, user=name):
        plural = f"{manifest['kind'].lower()}s"
        namespaced = "namespace" in manifest["metadata"]
        client.apply(Resource(manifest["apiVersion"], plural, namespaced=namespaced), manifest)


def _permissions(manager: Manager, *, watch_all: bool) -> Iterator[Permission]:
    yield EVENTS.permission("create", "patch")
    if manager.options.leader_election:
        where = manager.options.leader_election_namespace
        name = manager.options.leader_election_id
        yield LEASES.permission("create", namespace=where)
        yield LEASES.permission("get", "patch", namespace=where, names=[name])
    if manager.registrations:
        yield seedidentity.PERMISSION
    for registration in manager.registrations:
        yield from _of_kind(registration.kind)
        yield from _of(registration, watch_all=watch_all)
    for added in manager.health_checks:
        yield from _of_kind(added.checks.cls.KIND)
        yield from added.checks.permissions
    for runnable in manager.runnables:
        yield from runnable.permissions
    if manager.webhooks:
        from generic.manager import webhooks

        yield from webhooks.permissions(manager)


def _of_kind(kind: Kind) -> Iterator[Permission]:
    resource = resource_of(kind)
    yield resource.permission("get", "list", "watch", "patch")
    yield resource.permission("patch", subresource="status")
    if kind.cluster is not ClusterNeed.NEVER:
        yield CLUSTERS.permission("get", "list", "watch")
    if kind.cluster is ClusterNeed.IN_SHOOT_NAMESPACE:
        yield NAMESPACES.permission("get")


def _of(registration: Registration, *, watch_all: bool) -> Iterator[Permission]:
    yield ORPHANS.permission("get", "create", "patch")
    yield ORPHANS.permission("patch", subresource="status")
    yield FORCE_DELETIONS.permission("create")
    for watch in registration.watches:
        if watch_all or not watch.only_with_ignore_operation_annotation:
            yield watch.resource.permission("list", "watch")
        if watch.mapper in (by_controller_owner, by_owner):  # so its objects own children
            yield owner_permission(registration.kind)
    yield from (item.resource.permission(*_STRIP) for item in registration.actuator.seed_objects)
    yield from registration.actuator.permissions


def _rules(permissions: Iterable[Permission]) -> list[Raw]:
    """Return one rule per API group, set of verbs and names, in a stable order."""
    verbs: defaultdict[tuple[str, str, tuple[str, ...]], set[str]] = defaultdict(set)
    for permission in permissions:
        of = permission.resource
        verbs[of.group, of.plural, tuple(permission.names)].update(permission.verbs)
    rules: defaultdict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, resource, names), allowed in sorted(verbs.items()):
        rules[group, tuple(sorted(allowed)), names].append(resource)
    return [
        {"apiGroups": [group], "resources": resources, "verbs": list(allowed)}
        | ({"resourceNames": list(names)} if names else {})
        for (group, allowed, names), resources in rules.items()
    ]
