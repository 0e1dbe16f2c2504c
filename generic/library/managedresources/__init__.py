"""ManagedResource: manifests that gardener-resource-manager applies to a seed or a shoot.

A ManagedResource names Secrets, and these hold the manifests (Gardener documentation,
"gardener-resource-manager"). Here are its class, and how one is deployed, kept, deleted and
waited for. What plays the resource manager's part in tests is not here.

Guarantees:
- A Secret is immutable and named after its content; a changed one is another Secret. The old one
  is left to Gardener's garbage collector, which its label asks for.
- What exists without our label `origin` is never adopted, changed or deleted, except what
  Gardener's Go library leaves (`GO_LIBRARY`).
- Nothing waits: what is not gone yet is a RequeueAfter.
"""

from generic.library.managedresources.deletion import (
    check_deleted,
    check_healthy,
    delete,
    is_deployed,
    set_keep_objects,
)
from generic.library.managedresources.deployment import deploy_for_seed, deploy_for_shoot
from generic.library.managedresources.kind import (
    GARBAGE_COLLECTABLE,
    MANAGED_RESOURCES,
    NO_CLEANUP,
    ORIGIN,
    SEED_CLASS,
    SEED_FINALIZER,
    SHOOT_FINALIZER,
    GroupKind,
    ManagedObject,
    ManagedResource,
    ManagedResourceSpec,
    ManagedResourceStatus,
    SecretName,
    is_healthy,
)
from generic.library.managedresources.ours import GO_LIBRARY, PERMISSIONS

__all__ = [
    "GARBAGE_COLLECTABLE",
    "GO_LIBRARY",
    "MANAGED_RESOURCES",
    "NO_CLEANUP",
    "ORIGIN",
    "PERMISSIONS",
    "SEED_CLASS",
    "SEED_FINALIZER",
    "SHOOT_FINALIZER",
    "GroupKind",
    "ManagedObject",
    "ManagedResource",
    "ManagedResourceSpec",
    "ManagedResourceStatus",
    "SecretName",
    "check_deleted",
    "check_healthy",
    "delete",
    "deploy_for_seed",
    "deploy_for_shoot",
    "is_deployed",
    "is_healthy",
    "set_keep_objects",
]
