"""The drill `migration`: shoots move from one seed to another while managers are being killed.

`run` tells it; each seed's manager is a process of its own (`child`), so that it can be killed
(`victim`). What was seen is `evidence`, what to think of it say the `rules`, `breaks` show that
each rule can fail, `page` writes it down.
"""
