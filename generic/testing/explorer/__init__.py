"""The explorer: crash-tests the manager at every call of every operation.

`run` is the whole procedure: it numbers each call of an operation, then kills a process at each
call, before and after its effect (`drill.kills`), lets another process finish, and checks rules
(`judge`). `stage` prepares the shoots.
"""
