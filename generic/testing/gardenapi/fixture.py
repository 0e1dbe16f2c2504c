"""The fixture `garden`: an admission on a real API server with the garden's types.

It has an embedded cluster of its own, because an admission judges all objects of a cluster.

PYTEST_DONT_REWRITE: a conftest.py may import this module before pytest does.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from typing import TypeVar

import attrs
import pytest

from actuator.codec import decode
from actuator.errors import ApiError, NotFound
from actuator.interface import Client, resource_of
from actuator.meta import Object, Raw
from generic.kube.client import HttpClient, connect, path_of
from generic.library.manifests import manifest_of
from generic.library.webhooks.configurations import MUTATING, VALIDATING
from generic.manager.manager import Manager
from generic.manager.rbac import grant
from generic.manager.webhooks import endpoint_of
from generic.testing.envtest.environment import Environment
from generic.testing.envtest.servers import free_port
from generic.testing.gardenapi.admission import admission_options, apply_policies, remove_policies
from generic.testing.gardenapi.controllers import serve_garden
from generic.testing.gardenapi.install import install_garden
from generic.testing.gardenapi.kinds import GARDEN_KINDS
from generic.testing.polling import polling

K = TypeVar("K", bound=Object)
_USER = "admission"


@attrs.frozen
class GardenUnderTest:
    """A cluster with the garden's types, and its users."""

    _admin: HttpClient
    _environment: Environment
    _stack: ExitStack

    @property
    def client(self) -> Client:
        """The administrator."""
        return self._admin

    def serve(self, admission: Callable[[Manager], object]) -> Manager:
        """Serve the policies and webhooks of an admission until the end of the test.

        The API server uses them some time later: call `refusal` until it has the expected result.
        """
        kubeconfig = self._environment.user_kubeconfig(_USER)
        manager = Manager(admission_options("test", kubeconfig, "127.0.0.1", free_port()))
        admission(manager)
        apply_policies(self._admin, manager.admissions)
        self._stack.callback(remove_policies, self._admin)
        if manager.webhooks:
            grant(self._admin, manager, _USER)
            self._stack.callback(self._end, manager)
            manager.start()
        return manager

    def create(self, cls: type[K], name: str, **fields: Raw) -> K:
        """Create an object with these fields by their JSON names. Raises ApiError."""
        return decode(cls, self._admin.create(resource_of(cls.KIND), _object(cls, name, fields)))

    def refusal(self, cls: type[Object], name: str = "refused", **fields: Raw) -> str:
        """Return the reason for which such an object would be refused, or ""; nothing is stored."""
        obj = _object(cls, name, fields)
        path = path_of(resource_of(cls.KIND), obj["metadata"].get("namespace", ""))
        try:
            self._admin.send("POST", path, query={"dryRun": "All"}, body=json.dumps(obj).encode())
        except ApiError as error:
            return str(error)
        return ""

    def _end(self, manager: Manager) -> None:
        for resource in (MUTATING, VALIDATING):
            with suppress(NotFound):
                self._admin.delete(resource, endpoint_of(manager.options).service)
        manager.stop()


def _object(cls: type[Object], name: str, fields: Raw) -> Raw:
    namespace = "default" if cls.KIND.namespaced else ""
    return manifest_of(cls, name, namespace, **fields)


@pytest.fixture(scope="module")
def _garden() -> Iterator[tuple[Environment, HttpClient]]:
    with Environment() as environment:
        client = connect(environment.kubeconfig)
        install_garden(client)
        with polling(partial(serve_garden, client), "garden"):
            yield environment, client


@pytest.fixture
def garden(_garden: tuple[Environment, HttpClient]) -> Iterator[GardenUnderTest]:
    """A cluster with Shoots, CloudProfiles and the other types that an admission judges."""
    environment, client = _garden
    with ExitStack() as stack:
        stack.callback(_clear, client)
        yield GardenUnderTest(client, environment, stack)


def _clear(client: HttpClient) -> None:
    """Remove the objects of the test."""
    for cls in GARDEN_KINDS:
        resource = resource_of(cls.KIND)
        for found in client.list(resource):
            meta = found["metadata"]
            client.delete(resource, meta["name"], meta.get("namespace", ""))
