"""The drill: `run` tells it, in a `world`, under an `observe`r, sometimes with a `breaks`.

What it saw is `evidence`, what to think of it says the `judge`, `report` writes it down.
"""
