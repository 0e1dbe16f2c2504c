"""Fixtures for pytest: an extension on a real API server, with a simulated gardenlet.

A project gets them by `pytest_plugins = ["generic.testing.fixtures"]` in its top-level conftest.py.
The managers of a test serve only its own shoot, so tests can run in parallel.

PYTEST_DONT_REWRITE: a conftest.py may import this module before pytest does.
"""

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import attrs
import pytest
from msgspec.structs import replace

from actuator.codec import decode
from actuator.errors import NotFound
from actuator.interface import Actuator, Client, Resource, object_class, resource_of
from actuator.meta import Object, Raw
from actuator.v1alpha1 import KINDS, Cluster
from generic.controller import logs
from generic.kube.client import connect
from generic.kube.crds import crd
from generic.kube.headers import Event, Header
from generic.library.managedresources import ManagedResource
from generic.library.manifests import manifest, manifest_of
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.rbac import grant
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL, Orphan
from generic.testing import polling
from generic.testing.envtest.access import Access
from generic.testing.garden import SHOOT, Flow, Garden, Shoot, not_ready_because
from generic.testing.garden.flows import still_there
from generic.testing.seed import install_crds, resource_of_crd

__all__ = ["Seed", "ShootSettings", "ShootUnderTest"]
pytest_plugins = ["generic.testing.envtest.pytest_plugin"]

K = TypeVar("K", bound=Object)
_QUIET = Options(metrics_bind_address="0", health_bind_address="0", shutdown_timeout=5.0)


@attrs.frozen
class Seed:
    """The embedded cluster, as its administrator; `resources` are those of its CRDs."""

    client: Client
    kubeconfig: Path
    environment: Access
    resources: Sequence[Resource]


@attrs.frozen(kw_only=True)
class ShootSettings:
    """The settings of a test's shoot."""

    type: str = "test"
    """The extension type, also of actuators and objects that name no other."""
    region: str = "region"
    credentials: dict[str, str] = attrs.field(factory=dict)
    """The content of the Secret `cloudprovider`."""
    spec: Raw = attrs.field(factory=dict)
    """Merged into the spec of the Shoot in the Cluster."""


class ShootUnderTest:
    """A shoot in the seed, and the acts of gardenlet and of the shoot's owner."""

    def __init__(self, seed: Seed, settings: ShootSettings) -> None:
        """Create the namespace, the Cluster and the Secret `cloudprovider`."""
        name = secrets.token_hex(5)
        self.namespace = f"shoot--test--{name}"
        self.settings = settings
        self.types: dict[type[Object], str] = {}
        """The types that the managers of this test serve."""
        self._seed, self._client, self._garden = seed, seed.client, Garden(seed.client)
        self._labels = {SHOOT: self.namespace}
        names = {"technical_id": self.namespace, "name": name, "project": "test"}
        self._shoot = Shoot(**names, region=settings.region, labels=self._labels)
        self._garden.create_namespace(self._shoot)
        self._garden.sync(self._shoot, "Create", spec=settings.spec)
        secret = manifest("v1", "Secret", "cloudprovider", self.namespace)
        self._garden.deploy(secret | {"stringData": settings.credentials})

    def deploy(self, cls: type[K], name: str = "test", /, **spec: Any) -> K:
        """Create an object as gardenlet does, and return it.

        `spec` has fields by their JSON names; type, region and secretRef are set by default.
        """
        usual = {
            "type": self.types.get(cls, self.settings.type),
            "region": self.settings.region,
            "secretRef": {"name": "cloudprovider", "namespace": self.namespace},
        }
        given: Any = decode(cls, {"spec": usual | spec})
        known = {field: one for field, one in usual.items() if field not in given.spec.extra}
        wanted = manifest_of(cls, name, self.namespace, self._labels, spec=known | spec)
        return decode(cls, self._garden.deploy(wanted))

    def get(self, obj: K) -> K:
        """Return the object as it is now. Raises NotFound."""
        return decode(type(obj), self._get(obj))

    def ready(self, obj: K) -> K:
        """Return the object as it is now; raise AssertionError unless gardenlet calls it ready."""
        found = self._get(obj)
        if problem := not_ready_because(found):
            raise AssertionError(f"{obj.KIND.name} {obj.key} is not ready: {problem}")
        return decode(type(obj), found)

    def gone(self, obj: Object) -> bool:
        """Return True if the object is deleted; otherwise raise AssertionError with its error."""
        try:
            raise AssertionError(f"{obj.KIND.name} {obj.key} is {still_there(self._get(obj))}")
        except NotFound:
            return True

    def request(self, obj: Object, operation: str = "reconcile", **spec: Any) -> None:
        """Merge these fields into the spec, and request reconcile, migrate or restore."""
        name, namespace = obj.metadata.name, obj.metadata.namespace
        self._client.patch(resource_of(obj.KIND), name, namespace, {"spec": spec})
        self._garden.ask(obj.KIND, namespace, name, operation)

    def hibernate(self, *, enabled: bool = True) -> None:
        """Write into the Cluster that the shoot hibernates, or wakes up."""
        self._garden.sync(self._shoot, "Reconcile", spec={"hibernation": {"enabled": enabled}})

    def delete(self, obj: Object, *, force: bool = False) -> None:
        """Delete the object as gardenlet does, without waiting; `force`: see `force_delete`."""
        self._garden.delete(obj.KIND, obj.metadata.namespace, obj.metadata.name, force=force)

    def force_delete(self, obj: Object) -> None:
        """Confirm the force deletion of the shoot, and delete the object."""
        self._garden.force(self._shoot)
        self.delete(obj, force=True)

    def orphans(self) -> list[Orphan]:
        """Return the recorded external resources of the shoot."""
        found = self._client.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={self.namespace}")
        return [decode(Orphan, one) for one in found]

    def clear(self) -> None:
        """Remove the shoot and all its objects, also those with finalizers."""
        for resource in self._seed.resources:
            where = self.namespace if resource.namespaced else ""
            label = "" if where else f"{SHOOT}={self.namespace}"
            for obj in self._client.list(resource, where, label_selector=label):
                found = (resource, obj["metadata"]["name"], where)
                with suppress(NotFound):
                    self._client.delete(*found)
                    self._client.patch(*found, {"metadata": {"finalizers": None}})
        Flow(self._garden, self._shoot, ()).clear()

    def owns(self, event: Event[Header]) -> bool:
        """Whether the event is about an object of this shoot."""
        header = event.new or event.old
        labels = {} if header is None else header.labels
        return self.namespace in (event.request.namespace, labels.get(SHOOT))

    def _get(self, obj: Object) -> Raw:
        return self._client.get(resource_of(obj.KIND), obj.metadata.name, obj.metadata.namespace)


@pytest.fixture(scope="session")
def seed_crds() -> Sequence[type[Object] | Raw]:
    """Your own kinds, and CRDs of other controllers that your extension needs: override it."""
    return ()


@pytest.fixture(scope="session")
def seed(environment: Access, seed_crds: Sequence[type[Object] | Raw]) -> Seed:
    """The embedded cluster with the CRDs of Gardener, Orphan and `seed_crds`."""
    kinds = (*KINDS, Cluster, Orphan, ManagedResource, *seed_crds)
    crds = [one if isinstance(one, dict) else crd(one) for one in kinds]
    client = connect(environment.kubeconfig)
    install_crds(client, crds)
    return Seed(client, environment.kubeconfig, environment, [*map(resource_of_crd, crds)])


@pytest.fixture
def shoot_settings() -> ShootSettings:
    """The settings of `shoot`: override it."""
    return ShootSettings()


@pytest.fixture
def shoot(seed: Seed, shoot_settings: ShootSettings) -> Iterator[ShootUnderTest]:
    """A shoot for this test alone."""
    made = ShootUnderTest(seed, shoot_settings)
    yield made
    made.clear()


@pytest.fixture
def manager(
    request: pytest.FixtureRequest, seed: Seed, shoot: ShootUnderTest
) -> Iterator[Callable[..., Manager]]:
    """Starts a manager under its generated Role, and stops it after the test.

    It takes an extension function, or an Actuator and the arguments of `Manager.add`.
    """
    with ExitStack() as stack:
        if plugin := request.config.pluginmanager.get_plugin("logging-plugin"):
            stack.enter_context(_readable(plugin.report_handler))
        yield partial(_start, seed, shoot, stack)


@contextmanager
def _readable(handler: logging.Handler) -> Iterator[None]:
    """Write each line with its fields, and once: a failed operation is retried."""
    seen: set[str] = set()
    before = handler.formatter
    formatter = logs.TextFormatter(tracebacks=True, colour=False)

    def is_new(record: logging.LogRecord) -> bool:
        count = len(seen)
        seen.add(formatter.format(record).partition(" ")[2])  # without the time
        return len(seen) > count

    handler.addFilter(is_new)
    handler.setFormatter(formatter)
    yield
    handler.removeFilter(is_new)
    handler.setFormatter(before)


def _start(
    seed: Seed,
    shoot: ShootUnderTest,
    stack: ExitStack,
    extension: Actuator[Any] | Callable[[Manager], object],
    **added: Any,
) -> Manager:
    """Start a manager that serves only the shoot."""
    manager = Manager(_QUIET)
    if isinstance(extension, Actuator):
        typed = object_class(extension).KIND.has_operation_annotation
        manager.add(extension, **{"type": shoot.settings.type if typed else ()} | added)
    else:
        extension(manager)
    if not manager.registrations:
        raise ValueError(f"{extension!r} added no actuator; pass an Actuator or a function")
    for number, one in enumerate(manager.registrations):
        manager.registrations[number] = replace(one, predicates=(*one.predicates, shoot.owns))
        shoot.types[one.cls] = next(iter(one.types), "")
    user = f"{shoot.namespace}-{id(manager):x}"
    grant(seed.client, manager, user)
    for kind in ("clusterrolebindings", "clusterroles"):
        role = Resource("rbac.authorization.k8s.io/v1", kind, namespaced=False)
        stack.callback(seed.client.delete, role, user)
    manager.options = attrs.evolve(_QUIET, kubeconfig=seed.environment.user_kubeconfig(user))
    stack.callback(manager.stop)
    manager.start()
    manager.wait_synced()
    return manager


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """`generic.testing.polling.eventually`."""
    return polling.eventually
