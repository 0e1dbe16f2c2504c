"""Two real servers for all tests, and a manager that serves the databases of one namespace."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from database_objects import Databases

from actuator.meta import Object
from extensions.externaldatabase import server_for
from extensions.externaldatabase.actuator import DatabaseActuator
from extensions.externaldatabase.kind import Engine, ExternalDatabase
from extensions.externaldatabase.rehearsal import DatabaseRehearsal
from extensions.externaldatabase.server import Claim, Server, Traffic
from generic.manager.manager import Manager
from generic.testing import fixtures

if TYPE_CHECKING:
    from extensions.externaldatabase.rehearsal import DatabaseRehearsal

manager, seed, shoot = fixtures.manager, fixtures.seed, fixtures.shoot
shoot_settings, _seed = fixtures.shoot_settings, fixtures._seed


@pytest.fixture(scope="session")
def session_ground() -> Iterator[DatabaseRehearsal]:
    # drivers: only for those who connect
    from extensions.externaldatabase.rehearsal import DatabaseRehearsal

    ground = DatabaseRehearsal()
    ground.start(Path())
    yield ground
    ground.stop()


@pytest.fixture
def ground(session_ground) -> Iterator[DatabaseRehearsal]:
    """The servers; what a test took from the extension's accounts they get back."""
    yield session_ground
    session_ground.mend_outside()


@pytest.fixture(params=list(Engine))
def engine(request) -> Engine:
    return request.param


@pytest.fixture
def servers(ground) -> dict[Engine, Server]:
    """As the extension has them."""
    there = {engine: ground.endpoint(engine) for engine in Engine}
    return {
        engine: server_for(engine, one.url("server"), Traffic(500), one.ca)
        for engine, one in there.items()
    }


@pytest.fixture
def server(servers, engine) -> Server:
    return servers[engine]


@pytest.fixture
def claim() -> Claim:
    """One that nobody else makes."""
    login = secrets.token_hex(16)
    return Claim(database=f"db-{login[:10]}", login=login, owner=f"shop/{login[:10]}")


@pytest.fixture(scope="session")
def seed_crds() -> list[type[Object]]:
    return [ExternalDatabase]


@pytest.fixture
def databases(seed, shoot, ground) -> Databases:
    """The ExternalDatabases of a namespace."""
    return Databases(seed.client, shoot.namespace, ground)


@pytest.fixture
def login(databases) -> Callable[[], str]:
    """The name of the login, once the object exists."""
    return lambda: databases.get()["metadata"]["uid"].replace("-", "")


@pytest.fixture
def serve(manager, servers) -> Callable[..., Manager]:
    """Starts a manager for the databases of this namespace, under its generated Role."""
    return partial(manager, DatabaseActuator(servers))
