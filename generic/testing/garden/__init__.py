"""A small simulated gardenlet, for drills and tests. It is not Gardener.

It implements the other side of the extension contract: it creates the namespace, the Cluster and
the extension objects of a shoot, requests operations, migrates, restores and deletes in
gardenlet's order, with its annotations and waits (Gardener documentation, "Extension contract",
"Control Plane Migration", "Force Deletion").
"""

from actuator.facade import public_names

__all__, __getattr__ = public_names(__name__, __file__)
