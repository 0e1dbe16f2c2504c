"""Rehearses extensions: the embedded cluster, simulated components, drills, crash tests.

Start reading at `rehearsal` (the interface of an extension), then `drill` (a force deletion from
end to end, judged by invariants) and `explorer` (crash tests at every API call). `envtest` starts
etcd and kube-apiserver; `garden`, `resourcemanager` and `machinecontroller` simulate Gardener's
components. `fixtures`, `recording` and `assertions` are for the tests of authors.

Not here: anything that a running extension imports. Commands are in `generic.tools`.
"""

from actuator.facade import public_names

__all__, __getattr__ = public_names(__name__, __file__)
