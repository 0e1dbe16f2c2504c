"""The contract between an extension and the framework, without network or threads.

Read in this order: `interface` (the methods that an author implements), `errors` (the exceptions to
raise), `meta` and `v1alpha1` (the objects), `cluster` (the state of a shoot), `codec` (JSON).
"""

from actuator.cluster import Cluster
from actuator.errors import (
    ActuatorError,
    ApiError,
    ConfigurationError,
    ErrorCode,
    RequeueAfter,
    ShootUnreachable,
)
from actuator.interface import (
    Actuator,
    Client,
    Clock,
    Context,
    ExternalResource,
    FieldProblem,
    Permission,
    ProviderConfig,
    Provisioned,
    Resource,
    Result,
    SeedObjects,
)
from actuator.meta import (
    Condition,
    ConditionedStatus,
    DefaultSpec,
    DefaultStatus,
    Kind,
    LastError,
    LastOperation,
    Object,
    ObjectMeta,
    ReadyReasons,
)
from actuator.shared_names import share_names

__all__ = [
    "Actuator",
    "ActuatorError",
    "ApiError",
    "Client",
    "Clock",
    "Cluster",
    "Condition",
    "ConditionedStatus",
    "ConfigurationError",
    "Context",
    "DefaultSpec",
    "DefaultStatus",
    "ErrorCode",
    "ExternalResource",
    "FieldProblem",
    "Kind",
    "LastError",
    "LastOperation",
    "Object",
    "ObjectMeta",
    "Permission",
    "ProviderConfig",
    "Provisioned",
    "ReadyReasons",
    "RequeueAfter",
    "Resource",
    "Result",
    "SeedObjects",
    "ShootUnreachable",
]

share_names()
