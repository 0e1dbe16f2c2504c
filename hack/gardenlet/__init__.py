"""The simulated gardenlet held against the real one.

`watching` records every version of the objects of extensions in a seed. `reduction` makes the
protocol of each flow from them, without names and times; `protocol` is its form, and `comparison`
says how two of them differ. All three are pure. `python -m hack.gardenlet` records the real
gardenlet on a landscape (`make record-gardenlet`), `tests/gardenlet_flows.py` the simulated one.
"""
