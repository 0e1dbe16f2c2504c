"""Building blocks for authors: generic actuators and the helpers that they use.

Start reading at `controlplane`, `worker` or `backupentry`, the generic actuators. They use
`managedresources`, `charts`, `secrets` and `machines`; `seedobjects` creates and deletes other
objects in the seed; `lookup` finds one that may not exist; `healthchecks` reports conditions;
`webhooks` changes and checks objects before the API server stores them; `imagevector` chooses
images; `bastion` reads ranges of addresses; `programs` provides helm and other programs that are
not Python.

Not here: code that a manager needs to run an actuator (`generic.reconciler`).
"""

from actuator.facade import public_names

__all__, __getattr__ = public_names(__name__, __file__)
