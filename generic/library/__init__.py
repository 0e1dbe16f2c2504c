"""What authors build actuators on: generic actuators and the helpers that they use.

Start reading at `controlplane`, `worker` or `backupentry`, the generic actuators. They use
`managedresources`, `charts`, `secrets` and `machines`; `seedobjects` makes and deletes more objects
in the seed; `healthchecks` reports conditions; `imagevector` chooses images; `programs` provides
helm and other programs that are not Python.

Not here: anything that a manager needs to run an actuator (`generic.reconciler`).
"""
