"""ExternalDatabases: a database and a login on a server outside the cluster.

Flow of reconcile: look up the database → the connection Secret → login, database, and its
permissions → status.dbid. A database is created only while status.dbid is empty. After a crash, a
new database is found by its mark, which contains the object's UID; one with the same name and
without that mark belongs to others, and is neither adopted nor changed. Once status.dbid is set, a
missing database is *lost*: the status reports it, and no empty one replaces it.

A force deletion sends no request to a server: database and login remain, and are recorded.
"""

from collections.abc import Iterable, Iterator, Mapping

import attrs

from actuator import (
    Actuator,
    ActuatorError,
    Cluster,
    ConfigurationError,
    Context,
    ErrorCode,
    ExternalResource,
    FieldProblem,
    Result,
)
from extensions.externaldatabase.connection import (
    PERMISSIONS,
    ensure_connection,
    keep_connection,
    secret_name,
)
from extensions.externaldatabase.kind import DeletionPolicy, Engine, ExternalDatabase
from extensions.externaldatabase.names import problem_with
from extensions.externaldatabase.server import DATABASE, LOGIN, Claim, ClaimState, DatabaseServer

_LOOK_AGAIN = 300.0
"""Seconds between two checks of a healthy database."""


class DatabaseActuator(Actuator[ExternalDatabase]):
    """One database and one login for each object, on the server of its engine."""

    permissions = PERMISSIONS

    def __init__(self, servers: Mapping[Engine, DatabaseServer]) -> None:
        self._servers = servers

    def validate(
        self, ctx: Context, obj: ExternalDatabase, cluster: Cluster
    ) -> Iterable[FieldProblem]:
        """Return the problems of the spec."""
        if problem := problem_with(obj.spec.name):
            yield FieldProblem(field="spec.name", detail=problem)
        if obj.spec.engine not in self._servers:
            yield FieldProblem(field="spec.engine", detail=self._no_server(obj.spec.engine))

    def reconcile(self, ctx: Context, obj: ExternalDatabase, cluster: Cluster) -> Result:
        """Ensure that the database and its connection Secret exist."""
        server = self._server(obj)
        claim = claim_of(obj)
        found = server.look(claim)
        _refuse_lost(obj, found)
        _refuse_foreign(obj, claim, found)
        password = ensure_connection(ctx, obj, claim, server)
        server.provision(claim, password, found, ctx.check)
        if obj.status.dbid and not found.has_login:
            ctx.event("LoginRecreated", f"Login {claim.login} was gone", warning=True)
        obj.status.dbid = dbid(obj.spec.engine, claim)
        return Result(requeue_after=_LOOK_AGAIN)

    def delete(self, ctx: Context, obj: ExternalDatabase, cluster: Cluster) -> None:
        """Remove database and login, or keep both, as the deletion policy requires."""
        if problem_with(obj.spec.name):
            return  # nothing was ever created
        if obj.spec.deletion_policy is DeletionPolicy.RETAIN:
            _retain(ctx, obj)
            return
        self._server(obj).remove(claim_of(obj), ctx.check)

    def force_delete(self, ctx: Context, obj: ExternalDatabase, cluster: Cluster) -> None:
        """Send no request to a server of databases. Without Retain, the Secret is collected."""
        if obj.spec.deletion_policy is DeletionPolicy.RETAIN:
            _retain(ctx, obj)

    def external_resources(self, obj: ExternalDatabase) -> Iterator[ExternalResource]:
        """Return database and login, without id while it is unknown whether they were created.

        Return none for the deletion policy Retain: a retained database is not orphaned.
        """
        if obj.spec.deletion_policy is DeletionPolicy.RETAIN or problem_with(obj.spec.name):
            return
        server = self._servers.get(obj.spec.engine)
        for what in (DATABASE, LOGIN):
            found = external(obj.spec.engine, server, what, claim_of(obj))
            yield found if obj.status.dbid else attrs.evolve(found, id="")

    def still_exists(self, resource: ExternalResource) -> bool | None:
        """Whether the server has the resource, and it still belongs to the same object."""
        engine, _, what = resource.type.partition("::")
        server = next((server for name, server in self._servers.items() if name == engine), None)
        if server is None or "login" not in resource.tags:
            return None
        tags = resource.tags
        claim = Claim(database=tags.get("database", "?"), login=tags["login"], owner=tags["owner"])
        found = server.look(claim)
        return found.has_login if what == LOGIN else found.holder == claim.login

    def _server(self, obj: ExternalDatabase) -> DatabaseServer:
        """Return the server of the object's engine. Raises ConfigurationError if there is none."""
        server = self._servers.get(obj.spec.engine)
        if server is None:
            raise ConfigurationError(
                f"ExternalDatabase {obj.key}: spec.engine: {self._no_server(obj.spec.engine)}"
            )
        return server

    def _no_server(self, engine: Engine) -> str:
        there = ", ".join(sorted(self._servers)) or "none"
        return f"no server for {engine}; set DATABASES_{engine.upper()}_URL, or use one of: {there}"


def claim_of(obj: ExternalDatabase) -> Claim:
    """Return the object's share of its server, which is constant and unique.

    The login's name is the UID without its dashes: 32 characters, the maximum of MySQL.
    """
    login = obj.metadata.uid.replace("-", "")
    return Claim(database=obj.spec.name, login=login, owner=obj.key)


def dbid(engine: Engine, claim: Claim) -> str:
    """Return the id of a database, unique across all servers of the extension."""
    return f"{engine}/{claim.database}"


def external(
    engine: Engine, server: DatabaseServer | None, what: str, claim: Claim
) -> ExternalResource:
    """Return the record of a resource on a server; the region is the server's address."""
    there = server.endpoint if server else None
    tags = {"login": claim.login, "owner": claim.owner}
    if what == DATABASE:
        tags["database"] = claim.database
    return ExternalResource(
        type=f"{engine}::{what}",
        id=dbid(engine, claim) if what == DATABASE else claim.login,
        tags=tags,
        region=f"{there.host}:{there.port}" if there else "",
    )


def _refuse_lost(obj: ExternalDatabase, found: ClaimState) -> None:
    if obj.status.dbid and found.holder is None:
        raise ActuatorError(
            f"Database {obj.status.dbid} is missing on its server; restore it with its mark, or "
            f"delete ExternalDatabase {obj.key} and create it again",
            codes=[ErrorCode.ERR_INFRA_DEPENDENCIES],
            reason="Lost",
        )


def _refuse_foreign(obj: ExternalDatabase, claim: Claim, found: ClaimState) -> None:
    if found.holder in (None, claim.login):
        return
    raise ActuatorError(
        f"ExternalDatabase {obj.key}: spec.name: {dbid(obj.spec.engine, claim)} exists and "
        "has another owner; remove it, or create an ExternalDatabase with another name",
        codes=[ErrorCode.ERR_CONFIGURATION_PROBLEM],
        reason="Lost" if obj.status.dbid else "",
    )


def _retain(ctx: Context, obj: ExternalDatabase) -> None:
    """Keep the connection Secret, which has the password of the login, and report what remains."""
    claim = claim_of(obj)
    keep_connection(ctx, obj)
    what = f"Database {dbid(obj.spec.engine, claim)} and its login {claim.login}"
    ctx.event("Retained", f"{what} remain on the server, and Secret {secret_name(obj)} remains")
