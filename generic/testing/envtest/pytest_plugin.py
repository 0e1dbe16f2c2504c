"""Fixtures for pytest: one embedded cluster for the session, a namespace for each test.

A project asks for them in its top-level conftest.py; without that it gets none:

    pytest_plugins = ["generic.testing.envtest.pytest_plugin"]

    def test_something(kubeconfig, namespace): ...

- `environment`: the running cluster (`ClusterAccess` of this package), started by the first test
  that asks for it. With pytest-xdist all workers share one: a separate daemon runs it, so that it
  survives the end of a worker, and it stops when the session ends or its controller process dies.
- `kubeconfig`: the path of the administrator's kubeconfig.
- `namespace`: the name of a new namespace, deleted after the test without waiting.

This module imports the embedded cluster only when a test uses a fixture.
"""

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from generic.testing.envtest.access import ClusterAccess

WORKER_INPUT = "actuator_envtest_directory"


SHARED = pytest.StashKey[tuple[Path, contextlib.ExitStack]]()
"""The xdist controller's state for its workers: a directory, and what ends with the session."""


def session_lock(directory: Path) -> Path:
    """Return the lock file that the controller holds while it lives."""
    return directory / "session.lock"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """In the controller of xdist: pass the directory of the shared environment to a new worker."""
    stash = node.config.stash
    if SHARED not in stash:
        stash[SHARED] = _shared()
    node.workerinput[WORKER_INPUT] = str(stash[SHARED][0])


def pytest_unconfigure(config: pytest.Config) -> None:
    """At the end of the session, in the controller of xdist: stop the shared environment."""
    if SHARED in config.stash:
        config.stash[SHARED][1].close()


def _shared() -> tuple[Path, contextlib.ExitStack]:
    """Make the directory of an environment that a worker can start, and hold its lock."""
    from generic.library.programs.cache import open_lock, try_lock
    from generic.testing.envtest.detached import down

    directory = Path(tempfile.mkdtemp(prefix="actuator-pytest-"))
    stack = contextlib.ExitStack()
    stack.callback(shutil.rmtree, directory, ignore_errors=True)
    try_lock(stack.enter_context(open_lock(session_lock(directory))))
    stack.callback(down, directory)
    return directory, stack


@pytest.fixture(scope="session")
def environment(request: pytest.FixtureRequest) -> "Iterator[ClusterAccess]":
    """The embedded cluster of this session."""
    from generic.library.programs.errors import EnvtestError
    from generic.testing.envtest.detached import up
    from generic.testing.envtest.environment import Environment, silent

    shared = getattr(request.config, "workerinput", {}).get(WORKER_INPUT)
    with contextlib.ExitStack() as stack:
        try:
            if shared is None:
                terminal = request.config.pluginmanager.get_plugin("terminalreporter")
                progress = terminal.write_line if terminal else silent
                access: ClusterAccess = stack.enter_context(Environment(progress))
            else:
                directory = Path(shared)
                access, _ = up(directory, silent, while_locked=session_lock(directory))
        except EnvtestError as error:
            pytest.fail(str(error), pytrace=False)
        yield access


@pytest.fixture(scope="session")
def kubeconfig(environment: "ClusterAccess") -> Path:
    """The kubeconfig of the embedded cluster's administrator."""
    return environment.kubeconfig


@pytest.fixture
def namespace(environment: "ClusterAccess") -> Iterator[str]:
    """A namespace for this test alone."""
    from actuator.errors import Conflict, NotFound

    name = f"test-{secrets.token_hex(5)}"
    environment.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    with contextlib.suppress(NotFound, Conflict):  # the test deleted it
        environment.request("DELETE", f"/api/v1/namespaces/{name}")
