"""A real Gardener on this machine, without containers.

Here: programs.py (Gardener's components as one binary), clusters.py (the clusters under garden and
seed), processes.py (named child processes) and garden.py (the garden).
"""
