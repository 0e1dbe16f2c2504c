"""ExternalDatabase: a kind of this sample, its spec and its status."""

from enum import StrEnum
from typing import Annotated, ClassVar

import attrs

from actuator import (
    Column,
    ConditionedStatus,
    KeepsUnknownFields,
    Kind,
    Object,
    ReadyReasons,
    Schema,
    own_kind,
)

GROUP = "database.actuator.extensions.gardener.cloud"


class Engine(StrEnum):
    """The type of the server that has the database."""

    POSTGRES = "postgres"
    MYSQL = "mysql"  # or MariaDB: a server's version says which


class DeletionPolicy(StrEnum):
    """Whether the database is deleted with its object."""

    DELETE = "Delete"
    RETAIN = "Retain"


@attrs.frozen(kw_only=True)
class ExternalDatabaseSpec(KeepsUnknownFields):
    """The requested database. Its name is unique on its server."""

    name: Annotated[str, Schema(required=True, min_length=3, immutable=True)] = ""
    engine: Annotated[Engine, Schema(required=True, immutable=True)] = Engine.POSTGRES
    deletion_policy: Annotated[DeletionPolicy, Schema(default="Delete")] = DeletionPolicy.DELETE


@attrs.define(kw_only=True)
class ExternalDatabaseStatus(ConditionedStatus):
    """The actual database; `dbid` is "" until it is known to exist."""

    dbid: str = ""


@attrs.define(kw_only=True)
class ExternalDatabase(Object):
    """A database with a login of its own, on a server outside the cluster."""

    KIND: ClassVar[Kind] = own_kind(
        "ExternalDatabase",
        GROUP,
        Column("Engine", ".spec.engine"),
        Column("DbId", ".status.dbid"),
        Column("Policy", ".spec.deletionPolicy"),
        short_names=("edb",),
        timeout=60.0,
        ready=ReadyReasons(succeeded="Provisioned", failed="ProvisionFailed"),
    )

    spec: Annotated[ExternalDatabaseSpec, Schema(required=True)] = attrs.field(
        factory=ExternalDatabaseSpec
    )
    status: ExternalDatabaseStatus = attrs.field(factory=ExternalDatabaseStatus)
