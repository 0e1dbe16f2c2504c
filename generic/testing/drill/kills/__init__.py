"""Managers in separate processes that the explorer and the migration drill kill.

`calls` records the calls of a manager and kills its process at one of them; `child` is the
program of these processes; `processes.CrashRunner` starts and kills them.
"""
