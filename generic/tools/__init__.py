"""The command line of operators and authors, and what its commands print.

Start reading at `cli.main`, which lists every command. `explain` shows why an object is stuck,
`drain` checks whether an extension can be removed, `packaging` writes charts, registrations and
images, and `monitoring` has rules, alerts and dashboards.

Not here: the work of drills and crash tests (`generic.testing`). Nothing imports this room.
"""
