"""Schedules work: which object a worker handles next, and when it is requeued.

Start reading at `controller` (events in, requests to workers, results back), then `workqueue`,
`predicates` (filters for events), and `watch` with `mappers` (triggers by other objects).

Not here: the reconciliation of an object (`generic.reconciler`).
"""
