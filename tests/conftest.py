"""Fixtures shared by all tests that need the embedded cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import builders
import pytest
from harness import Script, Seed, running
from hypothesis import HealthCheck, settings

from actuator import Actuator
from actuator.errors import NotFound
from actuator.v1alpha1 import KINDS, Cluster
from generic.client import HttpClient, connect
from generic.clusters import CLUSTERS
from generic.manager import Manager
from generic.orphans import Orphan
from generic.seed import install

# How long an example takes says something of the machine, not of what holds.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


@pytest.fixture(scope="session")
def admin(environment) -> HttpClient:
    """The embedded cluster with our kinds installed, as its administrator."""
    install(environment, [*KINDS, Cluster, Orphan])
    return connect(environment.kubeconfig)


@pytest.fixture
def seed(admin, namespace) -> Iterator[Seed]:
    """A shoot namespace with its Cluster."""
    looking_at = Seed(admin, namespace)
    looking_at.create(builders.cluster(namespace))
    yield looking_at
    try:
        admin.delete(CLUSTERS, namespace)
    except NotFound:
        pass


@pytest.fixture
def start(environment, admin, namespace) -> Iterator[Callable[..., Manager]]:
    """Starts managers that serve one actuator, for the type named like the namespace."""
    with ExitStack() as stack:

        def starter(actuator: Actuator[Any], **options: Any) -> Manager:
            return stack.enter_context(running(environment, admin, namespace, actuator, **options))

        yield starter


@pytest.fixture
def script() -> Script:
    """An actuator that does nothing until it is told."""
    return Script()


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Something to hold a call up with; opened at the end of the test in any case."""
    event = threading.Event()
    yield event
    event.set()
