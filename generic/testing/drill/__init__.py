"""The drill: `scenarios` lists its procedures, `run` is that of a force deletion.

`world` is the environment, `observe` the observer. A drill collects `evidence`, `judge` checks
rules, `report` writes the result, `breaks` violates rules.
"""
