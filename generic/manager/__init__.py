"""Composes and runs a process: options and flags, registration, wiring, start and stop.

Start reading at `manager` (the author's interface), then `registry` (registrations), `wiring` (how
the parts are connected) and `running` (start, leader election, shutdown). `options` and `flags` are
the command line of a manager, `probes` its health server, `rbac` the roles that it needs.

Not here: code for rehearsals or tests (`generic.testing`), and the commands of an operator
(`generic.tools`). This room imports neither.
"""
