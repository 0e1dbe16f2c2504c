"""Orphans after their recording: listed, verified, closed, and deleted when their time is over.

Start reading at `ledger` (what the command line and tests read and close), then `verification`
(whether a resource still exists) and `keeper` (deletes old records while a manager runs).

Not here: the record itself, and when it is written (`generic.reconciler.orphans`).
"""
