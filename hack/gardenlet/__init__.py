"""The simulated gardenlet held against the real one.

`player` plays all flows on a `landscape` of two seeds, while `watching` records every version of
the objects of extensions. `reduction` makes the protocol of each flow from them, without names and
times; `protocol` is its form, and `comparison` says how two of them differ. These three are pure.
`python -m hack.gardenlet` records the real gardenlet (`make record-gardenlet`),
`tests/support/drills/gardenlet_flows.py` the simulated one.
"""
