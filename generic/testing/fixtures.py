"""Fixtures for pytest: an extension on a real API server, with a simulated gardenlet.

A project gets them by `pytest_plugins = ["generic.testing.fixtures"]` in its top-level conftest.py.
The managers of a test serve only its own shoot, so tests can run in parallel.

PYTEST_DONT_REWRITE: a conftest.py may import this module before pytest does.
"""

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import attrs
import pytest
from msgspec.structs import replace

from actuator.codec import decode
from actuator.errors import NotFound
from actuator.interface import Actuator, Client, Resource, object_class, resource_of
from actuator.meta import Object, Raw
from actuator.v1alpha1 import KINDS
from generic.kube.client import connect
from generic.kube.clusters import CLUSTERS
from generic.kube.headers import Event, Header
from generic.library.manifests import manifest, manifest_of
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.orphans.ledger import read_orphans
from generic.manager.rbac import grant
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL, Orphan
from generic.serving import logs
from generic.testing import polling
from generic.testing.controllers import SEED_KINDS, seed_controllers
from generic.testing.envtest.access import ClusterAccess
from generic.testing.garden import SHOOT, Garden, GardenletFlows, SeedShoot, not_ready_because
from generic.testing.garden.cleanup import ALL, Own
from generic.testing.garden.flows import still_there
from generic.testing.seed import OneShoot, install_crds
from generic.testing.shootapi import ShootServers
from generic.testing.shoots import Shoots

__all__ = ["Seed", "ShootSettings", "ShootUnderTest"]
pytest_plugins = ["generic.testing.envtest.pytest_plugin", "generic.testing.gardenapi.fixture"]

K = TypeVar("K", bound=Object)
_QUIET = Options(metrics_bind_address="0", health_bind_address="0", shutdown_timeout=5.0)


@attrs.frozen
class Seed:
    """The embedded cluster, as its administrator; `resources` are those of its CRDs."""

    client: Client
    kubeconfig: Path
    resources: Sequence[Resource]


@attrs.frozen(kw_only=True)
class ShootSettings:
    """The settings of a test's shoot."""

    type: str = "test"
    """The extension type of actuators and objects that name no other."""
    region: str = "region"
    credentials: dict[str, str] = attrs.field(factory=dict, repr=False)
    """The content of the Secret `cloudprovider`; the output of a failed test does not show it."""
    cluster: Raw = attrs.field(factory=dict)
    """Fields of the spec of the Cluster: cloudProfile, seed, shoot."""
    with_shoot_api: bool = False
    """Whether the shoot has an API server, which takes some seconds to start."""


class ShootUnderTest:
    """A shoot in the seed, and the acts of gardenlet and of the shoot's owner."""

    def __init__(self, seed: Seed, settings: ShootSettings) -> None:
        """Create the namespace, the Cluster and the Secret `cloudprovider`."""
        name = secrets.token_hex(5)
        self.namespace: str = f"shoot--test--{name}"
        self.settings = settings
        self.types: dict[type[Object], set[str]] = {}
        """The first type of each actuator that the managers of this test run."""
        self.managers: list[Manager] = []
        self.api: Client
        """The shoot's API server, as administrator, if the settings ask for one."""
        self._seed = seed
        self._client = seed.client
        self._garden = Garden(seed.client)
        self._labels = {SHOOT: self.namespace}
        names = {"technical_id": self.namespace, "name": name, "project": "test"}
        self._shoot = SeedShoot(
            **names, region=settings.region, labels=self._labels, documents=settings.cluster
        )
        self._garden.create_namespace(self._shoot)
        secret = manifest("v1", "Secret", "cloudprovider", self.namespace)
        self._garden.deploy(secret | {"stringData": settings.credentials})

    def deploy(self, cls: type[K], name: str = "test", /, **spec: Any) -> K:
        """Create an object as gardenlet does, and return it.

        `spec` has fields by their JSON names; type, region and secretRef are set by default. Raises
        ValueError without a type if several actuators serve the kind.
        """
        types = self.types.get(cls, {self.settings.type})
        if len(types) > 1 and "type" not in spec:
            served = ", ".join(sorted(types))
            raise ValueError(f"deploy({cls.__name__}): actuators serve {served}; set type=…")
        usual = {
            "type": next(iter(types)),
            "region": self.settings.region,
            "secretRef": {"name": "cloudprovider", "namespace": self.namespace},
        }
        given: Any = decode(cls, {"spec": usual | spec})
        known = {field: item for field, item in usual.items() if field not in given.spec.extra}
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
        name = obj.metadata.name
        namespace = obj.metadata.namespace
        self._client.patch(resource_of(obj.KIND), name, namespace, {"spec": spec})
        self._garden.ask(obj.KIND, namespace, name, operation)

    def hibernate(self, *, enabled: bool = True) -> None:
        """Write into the Cluster that the shoot hibernates, or wakes up; the managers know it then.

        A reconcile that is requested at once may otherwise read the Cluster of before.
        """
        self._garden.sync(self._shoot, "Reconcile", spec={"hibernation": {"enabled": enabled}})
        written = int(self._client.get(CLUSTERS, self.namespace)["metadata"]["resourceVersion"])
        polling.eventually(
            lambda: all(item.has_seen(self.namespace, written) for item in self.managers)
        )

    def delete(self, obj: Object) -> None:
        """Delete the object as gardenlet does, without waiting."""
        self._garden.delete(obj.KIND, obj.metadata.namespace, obj.metadata.name)

    def force_delete(self, obj: Object) -> None:
        """Confirm the force deletion of the shoot, and delete the object."""
        self._garden.force(self._shoot)
        self._garden.delete(obj.KIND, obj.metadata.namespace, obj.metadata.name, force=True)

    def orphans(self) -> list[Orphan]:
        """Return the recorded external resources of the shoot."""
        return read_orphans(self._client, label_selector=f"{SHOOT_LABEL}={self.namespace}")

    def clear(self) -> None:
        """Remove the shoot and all its objects, also those with finalizers."""
        inside = [resource for resource in self._seed.resources if resource.namespaced]
        outside = [resource for resource in self._seed.resources if not resource.namespaced]
        Own(of=inside, strips=ALL).act(self._client, self.namespace)
        Own(of=outside, strips=ALL, selector=f"{SHOOT}={self.namespace}").act(self._client, "")
        recorded = f"{SHOOT_LABEL}={self.namespace}"
        Own(of=[ORPHANS], strips=ALL, selector=recorded).act(self._client, "")
        GardenletFlows(self._garden, self._shoot, ()).clear()

    def owns(self, event: Event[Header]) -> bool:
        """Whether the event is about an object of this shoot."""
        header = event.new or event.old
        return self.namespace in (event.request.namespace, header and header.labels.get(SHOOT))

    def _get(self, obj: Object) -> Raw:
        return self._client.get(resource_of(obj.KIND), obj.metadata.name, obj.metadata.namespace)


@pytest.fixture(scope="session")
def seed_crds() -> Sequence[type[Object] | Raw]:
    """Your own kinds, and CRDs of other controllers that your extension needs: override it."""
    return ()


@pytest.fixture(scope="session")
def _seed(environment: ClusterAccess, seed_crds: Sequence[type[Object] | Raw]) -> Seed:
    """Returns the seed of `shoot` and `manager`, also if a project has another fixture `seed`."""
    kinds = (*KINDS, *SEED_KINDS, *seed_crds)
    client = connect(environment.kubeconfig)
    return Seed(client, environment.kubeconfig, install_crds(client, kinds))


@pytest.fixture(scope="session")
def seed(_seed: Seed) -> Seed:
    """The embedded cluster with the CRDs of Gardener, Orphan and `seed_crds`."""
    return _seed


@pytest.fixture
def shoot_settings() -> ShootSettings:
    """The settings of `shoot`: override it."""
    return ShootSettings()


@pytest.fixture
def shoot(_seed: Seed, shoot_settings: ShootSettings) -> Iterator[ShootUnderTest]:
    """A shoot for this test alone, which the simulated controllers of a seed serve."""
    made = ShootUnderTest(_seed, shoot_settings)
    with ShootServers() as servers:
        shoots = servers if shoot_settings.with_shoot_api else Shoots()
        with seed_controllers(OneShoot(_seed.client, made.namespace), shoots):
            if shoot_settings.with_shoot_api:
                servers.open(made.namespace)
                made.api = servers.client(made.namespace)
            yield made
        made.clear()


@pytest.fixture
def manager(
    request: pytest.FixtureRequest, environment: ClusterAccess, _seed: Seed, shoot: ShootUnderTest
) -> Iterator[Callable[..., Manager]]:
    """Starts a manager under its generated Role, and stops it after the test.

    It takes an extension function, or an Actuator and the arguments of `Manager.add`.
    """

    def start(extension: Actuator[Any] | Callable[[Manager], object], **added: Any) -> Manager:
        __tracebackhide__ = True  # pytest shows the caller's line
        user = f"{shoot.namespace}-{secrets.token_hex(3)}"
        manager = Manager(attrs.evolve(_QUIET, kubeconfig=environment.user_kubeconfig(user)))
        if isinstance(extension, Actuator):
            typed = object_class(extension).KIND.has_operation_annotation
            manager.add(extension, **{"type": shoot.settings.type if typed else ()} | added)
        else:
            extension(manager)
        if not manager.registrations:
            raise ValueError(f"{extension!r} added no actuator; pass an Actuator or a function")
        for number, registration in enumerate(manager.registrations):
            manager.registrations[number] = replace(registration, scope=shoot.owns)
            shoot.types.setdefault(registration.cls, set()).add(next(iter(registration.types), ""))
        stack.callback(_end, manager, _seed.client, user)
        grant(_seed.client, manager, user)
        shoot.managers.append(manager)
        manager.start()
        if not manager.wait_synced():
            problems = filter(None, (check() for check in manager.check_ready().values()))
            raise AssertionError(f"the manager is not ready: {'; '.join(problems)}")
        return manager

    with ExitStack() as stack:
        if plugin := request.config.pluginmanager.get_plugin("logging-plugin"):
            stack.enter_context(_readable(plugin.report_handler))
        yield start


def _end(manager: Manager, client: Client, user: str) -> None:
    """Stop the manager, and remove its Role. Raises AssertionError if an operation continues."""
    stopped = manager.stop()
    for kind in ("clusterrolebindings", "clusterroles"):
        with suppress(NotFound):
            client.delete(Resource("rbac.authorization.k8s.io/v1", kind, namespaced=False), user)
    if not stopped:
        raise AssertionError("an actuator still runs after the test; let its operation end before")


@contextmanager
def _readable(handler: logging.Handler) -> Iterator[None]:
    """Write each line with its fields, and once: a failed operation is retried."""
    formatter = logs.TextFormatter(tracebacks=True, colour=False)
    seen = set[str]()

    def is_new(record: logging.LogRecord) -> bool:
        count = len(seen)
        seen.add(formatter.format(record).partition(" ")[2])  # without the time
        return len(seen) > count

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handler, "formatter", formatter)
        patch.setattr(handler, "filters", [is_new])
        yield


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """`generic.testing.polling.eventually`."""
    return polling.eventually
