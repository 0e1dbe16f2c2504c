"""Deletions: how long they are tried, what is forced, and what must happen whatever hangs.

Start reading at `force_deletion` (a forced deletion within its budget), then `watchdog` (beside
the workers) and `late_cleanup` (another party removed our finalizer). `escalation` and
`eligibility` are pure rules.

Not here: the default force_delete (`seed_objects`) and the record of what remains (`orphans`).
"""
