"""Managers in processes of their own that are killed: by the explorer, and by the migration drill.

`calls` records the calls that a manager makes and ends its process at one of them; `child` is the
program of these processes; `processes` starts them, kills them at random moments, and reads how
they ended.
"""
