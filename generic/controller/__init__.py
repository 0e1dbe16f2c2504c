"""Schedules work: which object a worker handles next, and when it is requeued.

Start reading at `controller` (events in, requests to workers, results back), then `workqueue`,
`predicates` (filters for events), and `watch` with `mappers` (triggers by other objects).
`metrics` holds every metric of a manager; `health` its health and readiness, which `httpserver`
serves; `logs` its log lines.

Not here: the reconciliation of an object (`generic.reconciler`).
"""
