"""The crash-point explorer: kills a manager at every call of every operation, and looks.

`run` tells it from start to end: each call of an operation is numbered once, then a process is
killed at each, before and after it took effect (`drill.kills`), another one finishes, and rules are
checked (`judge`). `stage` is where that takes place.
"""
