# The names of the package, for type checkers and for `__init__.py`.

from generic.kube.clusters import NAMESPACES as NAMESPACES
from generic.testing.garden.flows import GardenletFlows as GardenletFlows
from generic.testing.garden.gardenlet import (
    Garden as Garden,
    SHOOT as SHOOT,
    SeedShoot as SeedShoot,
    resource_of_manifest as resource_of_manifest,
)
from generic.testing.garden.readiness import (
    error_of as error_of,
    not_migrated_because as not_migrated_because,
    not_ready_because as not_ready_because,
)
from generic.testing.garden.state import ExtensionState as ExtensionState, ShootState as ShootState
