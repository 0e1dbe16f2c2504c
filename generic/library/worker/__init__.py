"""Workers of any provider: creates, updates and deletes machine deployments, classes and Secrets.

An author derives from `GenericWorker` and returns the groups of machines of a Worker
(`MachineGroup`, built for a pool's zone by `in_zone`). The machine-controller-manager creates the
machines themselves (Gardener documentation, "Worker"; extension library,
`worker/genericactuator`).

Read in this order: `group` (the author's input), `actuator` (the whole flow), `rollout` (applied
objects), `availability` (conditions of completion), `inplace` (updates without new machines),
`state` (control plane migration), `removal`. For authors: `images` (by `capabilities`),
`userdata`, `autoscaler`, `poolhash`.

Guarantees:
- All machine objects in a shoot's namespace belong to its Worker, by Gardener's contract. A Secret
  without the label gardener.cloud/purpose=machineclass does not: it is neither adopted nor
  deleted.
- No call blocks: a step that must wait raises RequeueAfter. The status is saved before that.
- `status.state` is read and never written: gardenlet writes it.
- Errors name the field's path and carry Gardener's codes.
"""

from actuator.facade import public_names

__all__, __getattr__ = public_names(__name__, __file__)
