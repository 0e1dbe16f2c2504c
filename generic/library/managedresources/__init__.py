"""ManagedResource: manifests that gardener-resource-manager applies to a seed or a shoot.

A ManagedResource names Secrets, and these hold the manifests (Gardener documentation,
"gardener-resource-manager"). `ManagedResourceActuator` is the base class of actuators that deploy
one; functions deploy, keep, delete and await one. Not here: the simulated resource manager.

Guarantees:
- A Secret is immutable and named after its content; a change creates another Secret. Gardener's
  garbage collector deletes the old one, because of its label.
- Objects without our label `origin` are never adopted, changed or deleted, except those deployed by
  Gardener's Go library (`GO_LIBRARY`).
- No call waits: an unfinished deletion, or deployment, raises RequeueAfter.
"""

from generic.library.managedresources.actuator import ManagedResourceActuator
from generic.library.managedresources.deletion import (
    check_deleted,
    delete,
    is_deployed,
    set_keep_objects,
    wait_until_healthy,
)
from generic.library.managedresources.deployment import deploy_for_seed, deploy_for_shoot, update
from generic.library.managedresources.kind import GroupKind, ManagedResource, is_healthy
from generic.library.managedresources.ours import PERMISSIONS

__all__ = [
    "PERMISSIONS",
    "GroupKind",
    "ManagedResource",
    "ManagedResourceActuator",
    "check_deleted",
    "delete",
    "deploy_for_seed",
    "deploy_for_shoot",
    "is_deployed",
    "is_healthy",
    "set_keep_objects",
    "update",
    "wait_until_healthy",
]
