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

from actuator.facade import public_names

__all__, __getattr__ = public_names(__name__, __file__)
