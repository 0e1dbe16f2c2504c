"""Decides what an object needs and does it: one reconciler for all kinds.

Start reading at `reconciler` (the whole flow), then `operation` and `failure` (the decisions,
pure), `attempt` (everything that is written to the object), `invoker` with `calls` (the guarded
call of the author's actuator) and `reporter` (logs, events, metrics, listeners). `track` is all
that is remembered of an object between two attempts. Forced deletions, and what watches deletions
beside the workers, are in `deletion` and `seed_objects`; remaining external resources are recorded
by `orphans`; `behaviours` has what single kinds do beyond data.

Not here: the queue (`generic.controller`), and the composition of a process (`generic.manager`).
"""
