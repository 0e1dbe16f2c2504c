"""Decides which operation an object needs and runs it: one reconciler for all kinds.

Start reading at `reconciler` (the whole flow), then `operation` and `failure` (the decisions,
pure), `attempt` (every write to the object), `invoker` with `calls` (the guarded call of the
author's actuator) and `reporter` (logs, events, metrics, listeners). `track` holds the state of an
object between two attempts. `deletion` and `stripping` have forced deletions and the watchdog of
deletions; `orphans` records remaining external resources; `behaviours` has the behaviour of single
kinds beyond data.

Not here: the queue (`generic.controller`), and the composition of a process (`generic.manager`).
"""
