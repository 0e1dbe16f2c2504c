"""A small simulated gardenlet, for drills and tests. It is not Gardener.

It implements the other side of the extension contract: it creates the namespace, the Cluster and
the extension objects of a shoot, requests operations, migrates, restores and deletes in
gardenlet's order, with its annotations and waits (Gardener documentation, "Extension contract",
"Control Plane Migration", "Force Deletion").
"""

from generic.kube.clusters import NAMESPACES
from generic.testing.garden.flows import GardenletFlows
from generic.testing.garden.gardenlet import SHOOT, Garden, SeedShoot, resource_of_manifest
from generic.testing.garden.readiness import error_of, not_migrated_because, not_ready_because
from generic.testing.garden.state import ExtensionState, ShootState

__all__ = [
    "NAMESPACES",
    "SHOOT",
    "ExtensionState",
    "Garden",
    "GardenletFlows",
    "SeedShoot",
    "ShootState",
    "error_of",
    "not_migrated_because",
    "not_ready_because",
    "resource_of_manifest",
]
