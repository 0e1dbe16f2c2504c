# The public names of the package, for type checkers and for `__init__.py`.

from generic.library.managedresources.actuator import (
    ManagedResourceActuator as ManagedResourceActuator,
)
from generic.library.managedresources.deletion import (
    check_deleted as check_deleted,
    delete as delete,
    is_deployed as is_deployed,
    set_keep_objects as set_keep_objects,
    wait_until_healthy as wait_until_healthy,
)
from generic.library.managedresources.deployment import (
    deploy_for_seed as deploy_for_seed,
    deploy_for_shoot as deploy_for_shoot,
    update as update,
)
from generic.library.managedresources.kind import (
    GroupKind as GroupKind,
    ManagedObject as ManagedObject,
    ManagedResource as ManagedResource,
    ManagedResourceSpec as ManagedResourceSpec,
    ManagedResourceStatus as ManagedResourceStatus,
    SecretName as SecretName,
    is_healthy as is_healthy,
)
from generic.library.managedresources.ours import PERMISSIONS as PERMISSIONS
