"""Two real servers for all tests, and a manager that serves the databases of one namespace."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import attrs
import pytest
from database_objects import Databases
from harness import BINDINGS, ROLES

from extensions.externaldatabase import server_for
from extensions.externaldatabase.actuator import DatabaseActuator
from extensions.externaldatabase.kind import Engine, ExternalDatabase
from extensions.externaldatabase.rehearsal import Ground
from extensions.externaldatabase.server import Claim, Server, Traffic
from generic.controller.predicates import has_namespace
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.rbac import grant
from generic.testing.seed import install_kinds

if TYPE_CHECKING:
    from extensions.externaldatabase.rehearsal import Ground


@pytest.fixture(scope="session")
def session_ground() -> Iterator[Ground]:
    from extensions.externaldatabase.rehearsal import Ground  # drivers: only for those who connect

    ground = Ground(print)
    ground.start()
    yield ground
    ground.stop()


@pytest.fixture
def ground(session_ground) -> Iterator[Ground]:
    """The servers; what a test took from the extension's accounts they get back."""
    yield session_ground
    session_ground.give_back()


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


@pytest.fixture
def databases(admin, namespace, ground) -> Databases:
    """The ExternalDatabases of a namespace."""
    install_kinds(admin, [ExternalDatabase])
    return Databases(admin, namespace, ground)


@pytest.fixture
def login(databases) -> Callable[[], str]:
    """The name of the login, once the object exists."""
    return lambda: databases.get()["metadata"]["uid"].replace("-", "")


@pytest.fixture
def serve(environment, admin, namespace, servers) -> Iterator[Callable[..., Manager]]:
    """Starts a manager for the databases of this namespace, under its generated Role."""
    started = []

    def start(**added) -> Manager:
        manager = Manager(Options(metrics_bind_address="0", health_bind_address="0"))
        actuator = DatabaseActuator(servers)
        manager.add(actuator, predicates=[has_namespace(namespace)], **added)
        name = f"databases-{id(manager):x}"
        grant(admin, manager, name)
        kubeconfig = environment.user_kubeconfig(name)
        manager.options = attrs.evolve(manager.options, kubeconfig=kubeconfig)
        manager.start()
        started.append((manager, name))
        return manager

    yield start
    for manager, name in started:
        manager.stop()
        admin.delete(BINDINGS, name)
        admin.delete(ROLES, name)
