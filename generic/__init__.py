"""The framework that turns an Actuator into a running extension.

An event goes through the rooms from below: `kube` (watch, cache), `controller` (predicates, queue,
workers), `reconciler` (the decision, the call, the writes). `serving` has metrics, health and logs;
`manager` composes all into a process.
`library` holds building blocks for authors, `testing` rehearsals, `tools` the command line. The
docstring of each room names its first module; docs/architecture.md follows one event.
"""

from actuator.facade import public_names

__all__, __getattr__ = public_names(__name__, __file__)
