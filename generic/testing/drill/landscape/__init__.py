"""Drills in a landscape: Shoots of a real Gardener are deleted by their users, and get stuck.

`world` starts a landscape with a rehearsal's outside world, `run` is the procedure, `rules` what it
sees and the invariants, `page` the report.
"""
