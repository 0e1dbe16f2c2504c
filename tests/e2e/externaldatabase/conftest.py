"""Two real servers for all tests, and a manager that serves the databases of one namespace."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from actuator.meta import Object
from extensions.externaldatabase import server_for
from extensions.externaldatabase.actuator import DatabaseActuator
from extensions.externaldatabase.kind import Engine, ExternalDatabase
from extensions.externaldatabase.rehearsal import DatabaseRehearsal
from extensions.externaldatabase.server import Claim, DatabaseServer, Traffic
from generic.manager.manager import Manager
from generic.testing import fixtures
from tests.support.samples.databases import GROUNDS, Databases, Ground
from tests.support.samples.mysql_simulator import MySqlGround

if TYPE_CHECKING:
    from extensions.externaldatabase.rehearsal import DatabaseRehearsal

manager = fixtures.manager
seed = fixtures.seed
shoot = fixtures.shoot
shoot_settings = fixtures.shoot_settings
_seed = fixtures._seed


@pytest.fixture(scope="session")
def session_ground() -> Iterator[DatabaseRehearsal]:
    # drivers: only for those who connect
    from extensions.externaldatabase.rehearsal import DatabaseRehearsal

    ground = DatabaseRehearsal()
    ground.start(Path())
    yield ground
    ground.stop()


@pytest.fixture(scope="session")
def mysql_ground() -> Iterator[MySqlGround]:
    ground = MySqlGround()
    try:
        ground.start()
        yield ground
    finally:
        ground.simulator.close()


@pytest.fixture
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    """The servers; rights that a test revoked from the extension's accounts are granted again."""
    found: Ground = request.getfixturevalue(getattr(request, "param", GROUNDS[0]))
    yield found
    found.repair_failure()


@pytest.fixture(params=list(Engine))
def engine(request) -> Engine:
    return request.param


@pytest.fixture
def servers(ground) -> dict[Engine, DatabaseServer]:
    """As the extension has them."""
    there = {engine: ground.endpoint(engine) for engine in Engine}
    return {
        engine: server_for(engine, item.url("server"), Traffic(500), item.ca)
        for engine, item in there.items()
    }


@pytest.fixture
def server(servers, engine) -> DatabaseServer:
    return servers[engine]


@pytest.fixture
def claim() -> Claim:
    """A claim that no other test makes."""
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
