"""What the tests of the ExternalDatabase sample ask for, and what they look at."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harness import Seed, eventually

from actuator.codec import decode
from actuator.errors import NotFound
from actuator.interface import Client
from actuator.meta import Raw
from extensions.externaldatabase.connection import SECRETS
from extensions.externaldatabase.endpoint import Endpoint
from extensions.externaldatabase.kind import Engine, ExternalDatabase
from extensions.externaldatabase.rehearsal import DatabaseRehearsal
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL, Orphan

if TYPE_CHECKING:
    from extensions.externaldatabase.rehearsal import DatabaseRehearsal


@contextmanager
def connected(engine: Engine, there: Endpoint, database: str = "") -> Iterator[Any]:
    """A cursor on a server."""
    from extensions.externaldatabase import mysql, postgres  # drivers: only for those who connect

    if engine is Engine.POSTGRES:
        connection = postgres.connect(there, database or "postgres")
    else:
        connection = mysql.connect(there, database or None)
    with connection as connected:
        yield connected.cursor()


def run(engine: Engine, there: Endpoint, statement: str, database: str = "") -> list[Any]:
    """The rows that a statement yields, if it yields any."""
    with connected(engine, there, database) as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []


def quoted(engine: Engine, name: str) -> str:
    """For names of tests' own choosing."""
    return f'"{name}"' if engine is Engine.POSTGRES else f"`{name}`"


def names_on(engine: Engine, there: Endpoint) -> set[str]:
    """All databases of a server."""
    postgres = "SELECT datname FROM pg_database"
    statement = postgres if engine is Engine.POSTGRES else "SHOW DATABASES"
    return {row[0] for row in run(engine, there, statement)}


class Databases(Seed):
    """The ExternalDatabases of one namespace, as users and administrators see them."""

    def __init__(self, client: Client, namespace: str, ground: DatabaseRehearsal) -> None:
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
        return next(one for one in conditions if one["type"] == "Ready")

    def wait_for(self, status: str, reason: str) -> Raw:
        """The condition Ready, once it says so."""

        def said() -> Raw:
            try:
                found = self.ready()
            except (NotFound, StopIteration) as error:
                raise AssertionError("it is not there, or says nothing yet") from error
            assert (found["status"], found["reason"]) == (status, reason), found
            return found

        return eventually(said)

    def connection(self) -> dict[str, str]:
        """What the connection Secret says."""
        secret = self.client.get(SECRETS, "orders-connection", self.namespace)
        return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}

    def door(self) -> Endpoint:
        """Where the Secret leads."""
        said = self.connection()
        return Endpoint(
            host=said["host"],
            port=int(said["port"]),
            user=said["username"],
            password=said["password"],
            ca=said["ca.crt"],
        )

    def administrator(self, engine: Engine) -> Endpoint:
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
        for one in ("Retain" if policy == "Delete" else "Delete", policy):
            self.patch({"spec": {"deletionPolicy": one}})

    def orphans(self) -> dict[str, str]:
        """What is on record as left outside: type and id."""
        found = self.client.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={self.namespace}")
        mine = [decode(Orphan, raw).spec.resource for raw in found]
        return {one.type: one.id for one in mine}
