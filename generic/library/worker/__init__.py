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

from generic.library.worker.actuator import GenericWorker
from generic.library.worker.autoscaler import autoscaler_annotations
from generic.library.worker.group import (
    AMD64,
    MachineGroup,
    in_zone,
    share_of_zone,
    technical_id_of,
)
from generic.library.worker.images import ProviderImage, machine_images, use_images
from generic.library.worker.poolhash import hash_of, pool_field, pool_hash
from generic.library.worker.userdata import user_data

__all__ = [
    "AMD64",
    "GenericWorker",
    "MachineGroup",
    "ProviderImage",
    "autoscaler_annotations",
    "hash_of",
    "in_zone",
    "machine_images",
    "pool_field",
    "pool_hash",
    "share_of_zone",
    "technical_id_of",
    "use_images",
    "user_data",
]
