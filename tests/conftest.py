"""Fixtures shared by all tests that need the embedded cluster."""

from __future__ import annotations

import gc
import json
import logging
import os
import secrets
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from actuator import Actuator
from actuator.errors import NotFound
from actuator.v1alpha1 import KINDS, Cluster
from generic.kube.client import HttpClient, connect, path_of
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.manager.manager import Manager
from generic.manager.rbac import grant, manifests
from generic.reconciler.orphans import RECORD_KINDS
from generic.reconciler.orphans.kind import ORPHANS, SHOOT_LABEL
from generic.testing.seed import install
from tests.support.cluster.harness import Script, Seed, running
from tests.support.cluster.pool import Clusters
from tests.support.objects import builders
from tests.support.pages.commands import run_command
from tests.support.suite.busy_threads import goes_on, stacks
from tests.support.suite.isolation import unchanged
from tests.support.suite.order import spread

# For the servers of embedded clusters, which take most of the CPU: fewer garbage collections, and
# no threads that wait for each other.
os.environ.setdefault("GOGC", "400")
os.environ.setdefault("GOMAXPROCS", "1")

# For moto, which would make a thousand machine images in each region: a third of the time of the
# AWS tests.
os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")

# How long an example takes says something of the machine, not of what holds. Hypothesis's own
# profile for CI would try the same examples for ever.
settings.register_profile(
    "suite",
    settings.get_profile("default"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")

# In the background of a shell Ctrl-C is ignored, and would be by the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


COLLECTIONS = (100_000, 10, 100)
"""Thresholds of the garbage collector. Python 3.11's own first one, 700 new objects, is soon
reached, and a collection of all objects takes a fifth of a second."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collects tests without collecting garbage: the collected objects stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*COLLECTIONS)
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order long tests first, so that no worker waits for them in the end."""
    items[:] = spread(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


@pytest.hookimpl(optionalhook=True)  # that of xdist
def pytest_testnodedown(node: Any, error: object) -> None:
    """Says by which signal, or with which status, a process that ran tests has crashed."""
    if error:
        print(f"\n{node.gateway.id} ended with status {node.gateway._io.popen.wait(60)}")


@pytest.fixture
def small_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    """RSA keys of 2048 bits for authorities: one of the real size takes up to a second."""
    monkeypatch.setattr("generic.kube.certificates.AUTHORITY_BITS", 2048)


@pytest.fixture(autouse=True, scope="session")
def nothing_goes_on() -> Iterator[None]:
    """Threads that a test starts end with it. Watches of clusters that had ended once sent three
    quarters of all requests of the suite. A thread that hangs, as in many tests, costs nothing."""
    yield
    assert not goes_on(), f"a test left a thread that goes on:\n{stacks()}"


@pytest.fixture(autouse=True, scope="module")
def process_of_a_module_is_unchanged() -> Iterator[None]:
    """By the fixtures of a module."""
    with unchanged():
        yield


@pytest.fixture(autouse=True)
def process_of_a_test_is_unchanged() -> Iterator[None]:
    """By a test and its fixtures."""
    with unchanged():
        yield


class _ImpossibleTransitions(logging.Handler):
    """Collects errors that a manager only logs: an intent that no code path may send."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == "impossible transition":
            self.found.append(str(getattr(record, "fields", "")))


@pytest.fixture(autouse=True)
def no_impossible_transitions(request: pytest.FixtureRequest) -> Iterator[None]:
    """A manager logs an impossible transition and goes on; here it fails the test."""
    handler = _ImpossibleTransitions()
    logger = logging.getLogger("generic.reconciler.track")
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)
    wanted = request.node.get_closest_marker("an_impossible_transition") is not None
    assert bool(handler.found) is wanted, handler.found


@cache
def administrator(kubeconfig: Path) -> HttpClient:
    """The client of a cluster's administrator, which keeps its connection: a new one costs more."""
    return connect(kubeconfig)


@pytest.fixture
def namespace(environment) -> str:
    """A namespace for this test alone. It goes with the cluster: to delete one takes a hundred
    requests, most of the time that a test takes."""
    name = f"test-{secrets.token_hex(5)}"
    administrator(environment.kubeconfig).create(NAMESPACES, {"metadata": {"name": name}})
    return name


@pytest.fixture(scope="session")
def admin(environment) -> HttpClient:
    """The embedded cluster with our kinds installed, as its administrator."""
    install(environment, [*KINDS, Cluster, *RECORD_KINDS])
    return administrator(environment.kubeconfig)


@pytest.fixture
def managers() -> list[Manager]:
    """The managers that `start` has started."""
    return []


@pytest.fixture
def seed(admin, namespace, managers) -> Iterator[Seed]:
    """A shoot namespace with its Cluster."""
    looking_at = Seed(admin, namespace, managers=managers)
    looking_at.create(builders.cluster(namespace))
    yield looking_at
    if managers:  # each manager that starts lists all Orphans
        of_shoot = {"labelSelector": f"{SHOOT_LABEL}={namespace}"}
        admin.send("DELETE", path_of(ORPHANS), query=of_shoot)
    try:
        admin.delete(CLUSTERS, namespace)
    except NotFound:
        pass


@pytest.fixture(scope="session")
def users() -> dict[tuple[Path, str], Path]:
    """The kubeconfigs of `user_for`, by cluster and Role."""
    return {}


@pytest.fixture
def user_for(environment, admin, users) -> Callable[[Manager], Path]:
    """The kubeconfig of a user with exactly the permissions of a manager.

    Managers that need the same ones share it: to make a user and to remove it takes four requests.
    """

    def find(manager: Manager) -> Path:
        needed = environment.kubeconfig, json.dumps([*manifests(manager, "")])
        if needed not in users:
            name = f"managers-{secrets.token_hex(5)}"
            grant(admin, manager, name)
            users[needed] = environment.user_kubeconfig(name)
        return users[needed]

    return find


@pytest.fixture
def start(environment, admin, namespace, managers, user_for) -> Iterator[Callable[..., Manager]]:
    """Starts managers that serve one actuator, for the type named like the namespace."""
    with ExitStack() as stack:

        def starter(actuator: Actuator[Any], **options: Any) -> Manager:
            way = running(environment, admin, namespace, actuator, user_for=user_for, **options)
            managers.append(stack.enter_context(way))
            return managers[-1]

        yield starter


@pytest.fixture(scope="session")
def clusters() -> Iterator[Clusters]:
    """The clusters that tests of this process borrow one after the other."""
    lent = Clusters()
    yield lent
    lent.close()


@pytest.fixture
def borrowed(clusters, monkeypatch) -> None:
    """Each embedded cluster that this test starts is one that other tests have used before.

    To start one takes three seconds of CPU. Drills and explorers name everything after themselves,
    so they do not mind. A test that kills servers, or needs an empty cluster, starts its own.
    """
    clusters.patch(monkeypatch)


@pytest.fixture
def command(borrowed) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `actuator` in this process, and checks its exit status, which is 0 unless given."""
    return run_command


@pytest.fixture
def short_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second in place of the minute over which a wall clock must be steady to be trusted."""
    monkeypatch.setattr("generic.kube.clock.WINDOW", 1.0)


@pytest.fixture
def processes_of() -> Callable[[Path], list[int]]:
    """List the living processes that work in a directory or name it among their arguments."""

    def find(directory: Path) -> list[int]:
        return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if uses(entry, directory)]

    def uses(entry: Path, directory: Path) -> bool:
        try:
            arguments = (entry / "cmdline").read_bytes()  # empty for zombies
            inside = str((entry / "cwd").readlink()).startswith(str(directory))
        except OSError:
            return False
        return inside or str(directory).encode() in arguments

    return find


@pytest.fixture
def script() -> Script:
    """An actuator that does nothing until a test sets its methods."""
    return Script()


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Something to hold a call up with; opened at the end of the test in any case."""
    event = threading.Event()
    yield event
    event.set()
