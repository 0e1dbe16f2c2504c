"""ExternalDatabase: what users ask for and what they are told; a kind of this sample's own."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

import attrs

from actuator import ConditionedStatus, Kind, Object, ReadyReasons
from actuator.meta import ClusterNeed, Column, ForceSource, Raw, Schema

GROUP = "database.actuator.extensions.gardener.cloud"


class Engine(StrEnum):
    """Which server has the database."""

    POSTGRES = "postgres"
    MYSQL = "mysql"


class DeletionPolicy(StrEnum):
    """What becomes of the database when its object is deleted."""

    DELETE = "Delete"
    RETAIN = "Retain"


@attrs.frozen(kw_only=True)
class ExternalDatabaseSpec:
    """The database that is asked for. Its name is unique on its server."""

    name: Annotated[str, Schema(required=True, min_length=3, immutable=True)] = ""
    engine: Annotated[Engine, Schema(required=True, immutable=True)] = Engine.POSTGRES
    deletion_policy: Annotated[DeletionPolicy, Schema(default="Delete")] = DeletionPolicy.DELETE
    extra: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class ExternalDatabaseStatus(ConditionedStatus):
    """The database that there is; `dbid` is "" as long as nobody knows of one."""

    dbid: str = ""


@attrs.define(kw_only=True)
class ExternalDatabase(Object):
    """A database with a login of its own, on a server outside the cluster."""

    KIND: ClassVar[Kind] = Kind(
        name="ExternalDatabase",
        plural="externaldatabases",
        group=GROUP,
        short_names=("edb",),
        finalizer=f"{GROUP}/externaldatabase",
        timeout=60.0,
        cluster=ClusterNeed.NEVER,
        skips_failed_shoot=False,
        force_from=ForceSource.OBJECT,
        migratable=False,
        has_operation_annotation=False,
        ready=ReadyReasons(succeeded="Provisioned", failed="ProvisionFailed"),
        columns=(
            Column("Engine", ".spec.engine"),
            Column("DbId", ".status.dbid"),
            Column("Policy", ".spec.deletionPolicy"),
            Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
            Column("Reason", '.status.conditions[?(@.type=="Ready")].reason'),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    )

    spec: Annotated[ExternalDatabaseSpec, Schema(required=True)] = attrs.field(
        factory=ExternalDatabaseSpec
    )
    status: ExternalDatabaseStatus = attrs.field(factory=ExternalDatabaseStatus)
