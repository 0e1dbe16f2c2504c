"""The drill `migration`: shoots move from one seed to another while managers are killed.

`run` is the procedure; each seed's manager is a separate process (`kills.child`), so that it can
be killed (`kills.processes.Victim`). It collects evidence, `rules` check it, `breaks` prove that
each rule can fail, `page` renders the report.
"""
