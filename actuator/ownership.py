"""Owner references, by which the garbage collector deletes children with their owners. Pure.

An owner is in the namespace of its child or cluster-scoped, and a child has at most one controller
(Kubernetes documentation, "Owners and Dependents"). The API server accepts an owner in another
namespace, but its garbage collector then deletes the child. This module refuses such an owner.
"""

from typing import Any

from actuator.codec import encode
from actuator.errors import ActuatorError
from actuator.interface import Permission, resource_of
from actuator.meta import Kind, Object, OwnerReference, Raw


class CannotOwn(ActuatorError):
    """Kubernetes forbids the owner reference; the message names child, owner and remedy."""


def with_owner(child: Raw, owner: Object, *, controller: bool = True) -> Raw:
    """Return the child's manifest with `owner` among its owners; repeating it changes nothing.

    The one `controller` is triggered by its children (`generic.owns`), and its foreground deletion
    waits for them. Plain owners have neither effect: a child is deleted with its last owner. Raises
    CannotOwn.
    """
    _check(child, owner)
    others = [item for item in _owners(child) if item.get("uid") != owner.metadata.uid]
    controlling = next((other for other in others if other.get("controller")), None)
    if controller and controlling is not None:
        raise CannotOwn(
            f"{_name(child)} already has the controller {controlling.get('kind')} "
            f"{controlling.get('name')}; make {_title(owner)} a plain owner, or rename the child"
        )
    reference = OwnerReference(
        api_version=owner.KIND.api_version,
        kind=owner.KIND.name,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True if controller else None,
        block_owner_deletion=True if controller else None,
    )
    owners = [*others, encode(reference)]
    return {**child, "metadata": {**child["metadata"], "ownerReferences": owners}}


def owner_permission(kind: Kind) -> Permission:
    """Return the permission to set objects of `kind` as controllers of others.

    A controller's reference blocks the deletion of the owner, which requires this permission if the
    admission plugin OwnerReferencesPermissionEnforcement is enabled (Kubernetes documentation,
    "Admission Controllers"). The plugin also requires `delete` on a child that exists already.
    """
    return resource_of(kind).permission("update", subresource="finalizers")


def is_owned_by(child: Raw, owner: Object) -> bool:
    """Whether `owner`, identified by its uid, is among the child's owners."""
    return any(item.get("uid") == owner.metadata.uid for item in _owners(child))


def _check(child: Raw, owner: Object) -> None:
    """Raise CannotOwn if the garbage collector would not find the owner."""
    if not owner.metadata.uid:
        raise CannotOwn(f"{_title(owner)} has no uid; create it before its children")
    if not owner.KIND.namespaced:
        return
    namespace = child["metadata"].get("namespace") or ""
    if not namespace:
        raise CannotOwn(
            f"{_name(child)} is cluster-scoped, and the namespaced {_title(owner)} cannot own it; "
            "label it and delete it in your code"
        )
    if namespace != owner.metadata.namespace:
        raise CannotOwn(
            f"{_name(child)} is not in the namespace of {_title(owner)}, which cannot own it; "
            "create it there, or label it and delete it in your code"
        )


def _owners(child: Raw) -> list[dict[str, Any]]:
    return child["metadata"].get("ownerReferences") or []


def _name(child: Raw) -> str:
    meta = child["metadata"]
    key = "/".join(filter(None, (meta.get("namespace"), meta.get("name"))))
    return f"{child.get('kind', 'object')} {key}"


def _title(owner: Object) -> str:
    return f"{owner.KIND.name} {owner.key}"
