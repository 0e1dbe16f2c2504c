"""Requests and observations of the tests of the ExternalDatabase sample."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import attrs
import pytest

from actuator.codec import decode
from actuator.errors import NotFound
from actuator.interface import Client
from actuator.meta import Raw
from extensions.externaldatabase.connection import SECRETS
from extensions.externaldatabase.endpoint import DatabaseEndpoint
from extensions.externaldatabase.kind import Engine, ExternalDatabase
from extensions.externaldatabase.server import Claim, ClaimState, DatabaseServer
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL, Orphan
from tests.support.cluster.harness import Seed, eventually

GROUNDS = ("session_ground", "mysql_ground")
"""Fixtures: PostgreSQL and MariaDB; a simulator of MySQL 8."""
_EVERY_SERVER = {
    "postgres": (GROUNDS[0], Engine.POSTGRES),
    "mariadb": (GROUNDS[0], Engine.MYSQL),
    "mysql": (GROUNDS[1], Engine.MYSQL),
}
on_every_server = pytest.mark.parametrize(
    ("ground", "engine"), _EVERY_SERVER.values(), ids=_EVERY_SERVER.keys(), indirect=True
)
"""For a test of which MySQL 8 needs a run of its own: other tests have PostgreSQL and MariaDB."""
NOTHING = ClaimState(holder=None, has_login=False)


class Ground(Protocol):
    """The servers, and the rights of the extension's accounts on them."""

    def administrator(self, engine: Engine, /) -> DatabaseEndpoint: ...
    def endpoint(self, engine: Engine, /) -> DatabaseEndpoint: ...
    def inject_failure(self, scenario: str, /) -> None: ...
    def repair_failure(self) -> None: ...


@contextmanager
def connected(engine: Engine, there: DatabaseEndpoint, database: str = "") -> Iterator[Any]:
    """A cursor on a server."""
    from extensions.externaldatabase import mysql, postgres  # drivers: only for those who connect

    if engine is Engine.POSTGRES:
        connection = postgres.connect(there, database or "postgres")
    else:
        connection = mysql.connect(there, database or None)
    with connection as connected:
        yield connected.cursor()


def run(engine: Engine, there: DatabaseEndpoint, statement: str, database: str = "") -> list[Any]:
    """The rows that a statement yields, if it yields any."""
    with connected(engine, there, database) as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []


def quoted(engine: Engine, name: str) -> str:
    """For names of tests' own choosing."""
    return f'"{name}"' if engine is Engine.POSTGRES else f"`{name}`"


def names_on(engine: Engine, there: DatabaseEndpoint) -> set[str]:
    """All databases of a server."""
    postgres = "SELECT datname FROM pg_database"
    statement = postgres if engine is Engine.POSTGRES else "SHOW DATABASES"
    return {row[0] for row in run(engine, there, statement)}


def free() -> None:
    """A step that may be taken."""


def provision(server: DatabaseServer, claim: Claim, password: str = "secret") -> None:
    server.provision(claim, password, server.look(claim), free)


def enter(
    ground: Ground, engine: Engine, claim: Claim, database: str, password: str = "secret"
) -> list[Any]:
    """Connects as the claim's login."""
    there = attrs.evolve(ground.administrator(engine), user=claim.login, password=password)
    return run(engine, there, "SELECT 1", database)


class Databases(Seed):
    """The ExternalDatabases of one namespace, as users and administrators see them."""

    def __init__(self, client: Client, namespace: str, ground: Ground) -> None:
        super().__init__(client, namespace, ExternalDatabase, "orders")
        self.ground = ground

    def ask_for(self, engine: Engine, database: str = "", /, **spec: Any) -> str:
        """Creates the object; returns the name of the database."""
        wanted = database or f"db-{secrets.token_hex(5)}"
        self.create(
            {
                "apiVersion": self.kind.api_version,
                "kind": self.kind.name,
                "metadata": {"name": self.name, "namespace": self.namespace},
                "spec": {"name": wanted, "engine": engine.value, **spec},
            }
        )
        return wanted

    def provision(self, engine: Engine, **spec: Any) -> str:
        """The same, and waits until it is ready."""
        name = self.ask_for(engine, **spec)
        self.wait_for("True", "Provisioned")
        return name

    def ready(self) -> Raw:
        """The condition."""
        conditions = self.status().get("conditions") or []
        return next(condition for condition in conditions if condition["type"] == "Ready")

    def wait_for(self, status: str, reason: str) -> Raw:
        """The condition Ready, once it has this status and reason."""

        def said() -> Raw:
            try:
                found = self.ready()
            except (NotFound, StopIteration) as error:
                raise AssertionError("it is not there, or says nothing yet") from error
            assert (found["status"], found["reason"]) == (status, reason), found
            return found

        return eventually(said)

    def connection(self) -> dict[str, str]:
        """The data of the connection Secret."""
        secret = self.client.get(SECRETS, "orders-connection", self.namespace)
        return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}

    def door(self) -> DatabaseEndpoint:
        """The address in the Secret."""
        said = self.connection()
        return DatabaseEndpoint(
            host=said["host"],
            port=int(said["port"]),
            user=said["username"],
            password=said["password"],
            ca=said["ca.crt"],
        )

    def administrator(self, engine: Engine) -> DatabaseEndpoint:
        return self.ground.administrator(engine)

    def as_administrator(self, engine: Engine, statement: str) -> list[Any]:
        return run(engine, self.administrator(engine), statement)

    def has(self, engine: Engine, name: str) -> bool:
        """Whether the server has a database of that name."""
        return name in names_on(engine, self.administrator(engine))

    def has_login(self, engine: Engine, login: str) -> bool:
        table = "pg_roles WHERE rolname" if engine is Engine.POSTGRES else "mysql.user WHERE User"
        return bool(self.as_administrator(engine, f"SELECT 1 FROM {table} = '{login}'"))

    def look_again(self) -> None:
        """Something about the object changes, so that it is looked at."""
        policy = self.get()["spec"]["deletionPolicy"]
        for item in ("Retain" if policy == "Delete" else "Delete", policy):
            self.patch({"spec": {"deletionPolicy": item}})

    def orphans(self) -> dict[str, str]:
        """The recorded external resources: type and id."""
        found = self.client.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={self.namespace}")
        mine = [decode(Orphan, raw).spec.resource for raw in found]
        return {item.type: item.id for item in mine}
