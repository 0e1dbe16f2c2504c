"""Evidence outside the cluster: records as a file that shows changes, and as a page for auditors.

Start reading at `chain` (the format of an export, and its verification), then `gather` (records in
a cluster) and `summary` (the page).

Not here: writing records while objects are deleted (`generic.reconciler.orphans`).
"""
