"""Workers of any provider: machine deployments, their classes and Secrets, from birth to death.

An author derives from `GenericWorker` and says which groups of machines a Worker stands for
(`MachineGroup`, made for a pool's zone by `in_zone`); making the machines themselves is the
machine-controller-manager's business (Gardener documentation, "Worker"; extension library,
`worker/genericactuator`).

Read in this order: `group` (what an author says), `actuator` (the whole flow), `rollout` (what is
applied), `availability` (what is waited for), `inplace` (updates without new machines), `state`
(control plane migration), `removal`.

Guarantees:
- The machine objects in a shoot's namespace belong to its Worker, all of them, by Gardener's
  contract. A Secret without the label gardener.cloud/purpose=machineclass does not: it is neither
  taken over nor deleted.
- No call blocks: a step that has to wait raises RequeueAfter. The status is saved before that.
- `status.state` is read and never written: gardenlet writes it.
- Errors name the field's path and carry Gardener's codes.
"""

from generic.library.worker.actuator import GenericWorker
from generic.library.worker.group import (
    MachineGroup,
    in_zone,
    share_of_zone,
    technical_id_of,
)
from generic.library.worker.poolhash import hash_of, pool_field, pool_hash

__all__ = [
    "GenericWorker",
    "MachineGroup",
    "hash_of",
    "in_zone",
    "pool_field",
    "pool_hash",
    "share_of_zone",
    "technical_id_of",
]
