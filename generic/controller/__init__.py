"""Schedules work: which object a worker handles next, and when it handles it again.

Start reading at `controller` (events in, requests to workers, results back), then `workqueue`,
`predicates` (which events count), and `watch` with `mappers` (which changes of other objects
count). `metrics` holds every metric of a manager; `health` its health and readiness; `logs` its log
lines.

Not here: what a worker does with an object (`generic.reconciler`).
"""
