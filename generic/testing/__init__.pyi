# The public names of the package, for type checkers and for `__init__.py`.

from generic.kube.crds import crd as crd
from generic.manager.rbac import role_binding as role_binding
from generic.testing.admission import admit as admit
from generic.testing.assertions import (
    assert_rehearsal as assert_rehearsal,
    assert_saved_before_created as assert_saved_before_created,
)
from generic.testing.drill.landscape.world import LandscapeWorld as LandscapeWorld
from generic.testing.drill.names import DRILL_LABEL as DRILL_LABEL
from generic.testing.drill.shoots import (
    ShootRehearsal as ShootRehearsal,
    example_objects as example_objects,
    extension_object as extension_object,
)
from generic.testing.envtest.access import ClusterAccess as ClusterAccess
from generic.testing.envtest.certificates import (
    KeyPair as KeyPair,
    LocalAuthority as LocalAuthority,
)
from generic.testing.envtest.environment import Environment as Environment
from generic.testing.envtest.servers import free_port as free_port
from generic.testing.fixtures import (
    Seed as Seed,
    ShootSettings as ShootSettings,
    ShootUnderTest as ShootUnderTest,
)
from generic.testing.gardenapi.fixture import GardenUnderTest as GardenUnderTest
from generic.testing.landscape.users import (
    ShootOwner as ShootOwner,
    ShootView as ShootView,
    has_moved as has_moved,
    is_gone as is_gone,
    is_ready as is_ready,
)
from generic.testing.minimal import minimal_object as minimal_object
from generic.testing.recording import (
    RecordingClient as RecordingClient,
    RecordingContext as RecordingContext,
)
from generic.testing.rehearsal import (
    Around as Around,
    Rehearsal as Rehearsal,
    RehearsedShoot as RehearsedShoot,
)
from generic.testing.shootpart import ShootPart as ShootPart
