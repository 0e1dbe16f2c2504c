# The public names of the package, for type checkers and for `__init__.py`.

from actuator.classification import determine_error as determine_error
from actuator.cluster import (
    Cluster as Cluster,
    FORCE_DELETION as FORCE_DELETION,
    parse_bool as parse_bool,
)
from actuator.codec import (
    decode as decode,
    decode_at as decode_at,
    decode_json as decode_json,
    encode as encode,
)
from actuator.conditions import find_condition as find_condition, set_condition as set_condition
from actuator.errors import (
    ActuatorError as ActuatorError,
    AlreadyExists as AlreadyExists,
    ApiError as ApiError,
    CallAbandoned as CallAbandoned,
    Cancelled as Cancelled,
    ConfigurationError as ConfigurationError,
    Conflict as Conflict,
    CredentialsError as CredentialsError,
    DeadlineExceeded as DeadlineExceeded,
    DecodeError as DecodeError,
    ErrorCode as ErrorCode,
    Forbidden as Forbidden,
    Gone as Gone,
    Invalid as Invalid,
    LeaseLost as LeaseLost,
    NotFound as NotFound,
    NotServed as NotServed,
    RequeueAfter as RequeueAfter,
    ShootUnreachable as ShootUnreachable,
    TooManyRequests as TooManyRequests,
    Unauthorized as Unauthorized,
    Unavailable as Unavailable,
)
from actuator.interface import (
    Actuator as Actuator,
    Client as Client,
    Clock as Clock,
    Context as Context,
    ExternalResource as ExternalResource,
    FieldProblem as FieldProblem,
    Permission as Permission,
    ProviderConfig as ProviderConfig,
    Provisioned as Provisioned,
    Resource as Resource,
    Result as Result,
    SHOOT_ACCESS as SHOOT_ACCESS,
    SeedObjects as SeedObjects,
    resource_of as resource_of,
)
from actuator.meta import (
    AGE as AGE,
    Base64 as Base64,
    ClusterNeed as ClusterNeed,
    Column as Column,
    Condition as Condition,
    ConditionedStatus as ConditionedStatus,
    DefaultSpec as DefaultSpec,
    DefaultStatus as DefaultStatus,
    ForceSource as ForceSource,
    KeepsUnknownFields as KeepsUnknownFields,
    Kind as Kind,
    LastError as LastError,
    LastOperation as LastOperation,
    LastOperationState as LastOperationState,
    LastOperationType as LastOperationType,
    NamedResourceReference as NamedResourceReference,
    Object as Object,
    ObjectMeta as ObjectMeta,
    OwnerReference as OwnerReference,
    Raw as Raw,
    ReadyReasons as ReadyReasons,
    ResourceReference as ResourceReference,
    Schema as Schema,
    SecretReference as SecretReference,
    credentials_of as credentials_of,
    format_time as format_time,
    own_kind as own_kind,
    parse_time as parse_time,
)
from actuator.ownership import (
    is_owned_by as is_owned_by,
    owner_permission as owner_permission,
    with_owner as with_owner,
)
from actuator.provider_config import load_config as load_config
from actuator.provider_status import read_status as read_status, write_status as write_status
from actuator.references import (
    get_referenced as get_referenced,
    locate_referenced as locate_referenced,
)
