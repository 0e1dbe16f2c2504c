"""The drill: `run` is the procedure, `world` the environment, `observe` the observer.

It collects `evidence`, `judge` checks rules, `report` writes the result, `breaks` violates rules.
"""
