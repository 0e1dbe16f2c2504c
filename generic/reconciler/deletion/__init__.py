"""Deletions: retries, force deletions, and the watchdog that acts while calls are unresponsive.

Start reading at `force_deletion` (a force deletion within its budget), then `watchdog` (beside
the workers) and `late_cleanup` (another party removed our finalizer).

Not here: the default force_delete (`stripping`) and the record of what remains (`orphans`).
"""
